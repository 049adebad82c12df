// Marks what the shared library exports; everything else stays hidden.
#pragma once

#if defined(__GNUC__)
#define SHARDBUS_EXPORT __attribute__((visibility("default")))
#else
#define SHARDBUS_EXPORT
#endif
