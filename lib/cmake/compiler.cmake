# Flags that every target of the project shares, as one interface target: shardbus_flags.

find_program(SHARDBUS_CCACHE ccache)
if(SHARDBUS_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${SHARDBUS_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SHARDBUS_CCACHE})
endif()

add_library(shardbus_flags INTERFACE)
target_compile_features(shardbus_flags INTERFACE cxx_std_20)
# msgpack must be seen with the same settings by every translation unit, ours and the user's.
target_compile_definitions(shardbus_flags INTERFACE MSGPACK_NO_BOOST)
target_compile_options(shardbus_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false overlaps inside std::string operator+ (GCC bug 105651).
  target_compile_options(shardbus_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

if(SHARDBUS_SANITIZER STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(SHARDBUS_SANITIZER STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread)
elseif(SHARDBUS_SANITIZER)
  message(FATAL_ERROR "SHARDBUS_SANITIZER is '${SHARDBUS_SANITIZER}'; use '', address or thread")
endif()
if(SHARDBUS_SANITIZER)
  # Instrumented code confuses flow analysis, so its guess at uninitialised reads is noise here.
  target_compile_options(shardbus_flags INTERFACE ${sanitizer_flags} -fno-omit-frame-pointer
                         -Wno-maybe-uninitialized)
  target_link_options(shardbus_flags INTERFACE ${sanitizer_flags})
  if(SHARDBUS_SANITIZER STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(shardbus_flags INTERFACE -Wno-tsan)
  endif()
endif()
