# Installs the program, the library and a package that find_package(Sinter) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Relative to the root. They include each other and installed libraries only, and nothing of LLVM.
set(SINTER_PUBLIC_HEADERS driver/sinter.h ir/error.h)

# The rooms' objects and fmt's as one archive. Archives that they need and that other machines do
# not have lie beside it, in lib/sinter.
set(SINTER_ARCHIVES ${SINTER_LLVM_SUPPORT} ${SINTER_LLVM_DEMANGLE} ${SINTER_XXHASH} ${SINTER_PCRE2}
    ${SINTER_UTF8PROC})
set(objects $<TARGET_OBJECTS:sinter_fmt>)
foreach(room IN LISTS SINTER_ROOMS)
  list(APPEND objects $<TARGET_OBJECTS:sinter_${room}>)
endforeach()
add_library(sinter_all STATIC ${objects})
set_target_properties(sinter_all PROPERTIES OUTPUT_NAME sinter LINKER_LANGUAGE CXX)

install(TARGETS sinter_all ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${SINTER_ARCHIVES} DESTINATION ${CMAKE_INSTALL_LIBDIR}/sinter)
foreach(header IN LISTS SINTER_PUBLIC_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sinter/${folder})
endforeach()
if(TARGET sinter)
  install(TARGETS sinter RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(SINTER_ARCHIVE_NAMES "")
foreach(archive IN LISTS SINTER_ARCHIVES)
  get_filename_component(name ${archive} NAME)
  list(APPEND SINTER_ARCHIVE_NAMES ${name})
endforeach()
get_filename_component(SINTER_OPENBLAS_NAME ${SINTER_OPENBLAS} NAME)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Sinter)
configure_package_config_file(cmake/SinterConfig.cmake.in SinterConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(SinterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SinterConfig.cmake
              ${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake DESTINATION ${package})
