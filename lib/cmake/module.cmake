# How a folder of lib becomes part of the library.

# shardbus_dependency(<target> PACKAGE <name> [PC <module>])   found by find_package
# shardbus_dependency(PkgConfig::<module> PC <module>)         found by pkg-config
#
# Finds a third-party library and remembers it, so that the installed shardbusConfig.cmake and
# shardbus.pc look for it too when somebody links the static library.
function(shardbus_dependency target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE;PC" "")
  if(arg_PACKAGE)
    find_package(${arg_PACKAGE} REQUIRED GLOBAL)
    set_property(GLOBAL APPEND_STRING PROPERTY SHARDBUS_FIND_CODE
                 "find_dependency(${arg_PACKAGE})\n")
  else()
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(${arg_PC} REQUIRED GLOBAL IMPORTED_TARGET ${arg_PC})
    string(CONCAT find_code "find_dependency(PkgConfig)\n"
           "pkg_check_modules(${arg_PC} REQUIRED IMPORTED_TARGET ${arg_PC})\n")
    set_property(GLOBAL APPEND_STRING PROPERTY SHARDBUS_FIND_CODE "${find_code}")
  endif()
  if(arg_PC)
    set_property(GLOBAL APPEND PROPERTY SHARDBUS_PC_REQUIRES ${arg_PC})
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "shardbus_dependency: ${target} was not defined by its package")
  endif()
endfunction()

# shardbus_module(<name> [SOURCES a.cpp ...] [DEPS <targets named by shardbus_dependency> ...])
#
# Makes shardbus_<name>: an object library whose objects go into both forms of the library, or an
# interface library if there are only headers.
function(shardbus_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "shardbus_module(${name}): write SOURCES before ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target shardbus_${name})
  if(arg_SOURCES)
    add_library(${target} OBJECT ${arg_SOURCES})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/lib)
    target_compile_definitions(${target} PRIVATE SHARDBUS_BUILDING_LIBRARY)
    target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE shardbus_flags)
    set_property(GLOBAL APPEND PROPERTY SHARDBUS_OBJECT_MODULES ${target})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_DEPS})
  endif()
  set_property(GLOBAL APPEND PROPERTY SHARDBUS_MODULE_DEPS ${arg_DEPS})
endfunction()
