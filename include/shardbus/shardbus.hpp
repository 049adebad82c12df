// All of the public C++ API. Start with node.hpp.
#pragma once

#include <iostream>  // IWYU pragma: export: the first program prints what it was answered

#include "shardbus/client.hpp"      // IWYU pragma: export
#include "shardbus/entity.hpp"      // IWYU pragma: export
#include "shardbus/entity_ref.hpp"  // IWYU pragma: export
#include "shardbus/node.hpp"        // IWYU pragma: export
#include "shardbus/options.hpp"     // IWYU pragma: export
#include "shardbus/status.hpp"      // IWYU pragma: export
#include "shardbus/version.hpp"     // IWYU pragma: export
