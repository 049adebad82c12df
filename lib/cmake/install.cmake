# Installation: headers, both libraries, a CMake package and a pkg-config file.
# The static targets are a component of their own, because only they need our dependencies again.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardbus)

if(EXISTS ${PROJECT_SOURCE_DIR}/include)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc")
endif()
install(TARGETS shardbus EXPORT shardbusTargets)
install(TARGETS shardbus_static EXPORT shardbusStaticTargets)
install(EXPORT shardbusTargets NAMESPACE shardbus:: DESTINATION ${package_dir})
install(EXPORT shardbusStaticTargets NAMESPACE shardbus:: DESTINATION ${package_dir})

get_property(SHARDBUS_FIND_CODE GLOBAL PROPERTY SHARDBUS_FIND_CODE)
get_property(pc_requires GLOBAL PROPERTY SHARDBUS_PC_REQUIRES)
list(JOIN pc_requires ", " SHARDBUS_PC_REQUIRES)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/shardbusConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/shardbusConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Below 1.0 a minor version may break the interface, so only the same minor version is offered.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/shardbusConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/shardbus.pc.in ${CMAKE_CURRENT_BINARY_DIR}/shardbus.pc
               @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shardbusConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/shardbusConfigVersion.cmake
        DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shardbus.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
