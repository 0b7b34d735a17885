# The library libsinter.so of all rooms, and what is installed: it, its two headers, the program, and a
# package that find_package(Sinter) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Relative to the root. They include each other and headers of the language alone.
set(SINTER_PUBLIC_HEADERS api/sinter.h api/sinter_c.h)

set(objects $<TARGET_OBJECTS:sinter_fmt>)
foreach(room IN LISTS SINTER_ROOMS)
  list(APPEND objects $<TARGET_OBJECTS:sinter_${room}>)
endforeach()
add_library(sinter_library SHARED ${objects})
set(exports ${PROJECT_SOURCE_DIR}/api/exports.map)
set_target_properties(sinter_library PROPERTIES OUTPUT_NAME sinter LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${exports})
target_link_options(sinter_library PRIVATE -Wl,--version-script=${exports})
target_link_libraries(sinter_library PRIVATE sinter_llvm ${SINTER_XXHASH} ${SINTER_PCRE2} ${SINTER_UTF8PROC}
                      ${SINTER_OPENBLAS_LINKED})
target_include_directories(sinter_library INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/api>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS sinter_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(header IN LISTS SINTER_PUBLIC_HEADERS)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sinter)
endforeach()
if(TARGET sinter)
  install(TARGETS sinter RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Sinter)
set(SINTER_LIBRARY_NAME libsinter.so.${PROJECT_VERSION})
set(SINTER_LIBRARY_SONAME libsinter.so.${PROJECT_VERSION_MAJOR})
configure_package_config_file(cmake/SinterConfig.cmake.in SinterConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(SinterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SinterConfig.cmake
              ${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake DESTINATION ${package})
