# Compiler settings, the libraries that every folder may use, and how a folder becomes a target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-fPIC)  # in programs too: with the same flags they can share precompiled headers
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(SINTER_PORTABLE "link everything but glibc statically and strip the programs" OFF)
option(SINTER_FUZZ "build the fuzzers of tests/fuzz in place of the tests; needs clang" OFF)
set(SINTER_SANITIZE "" CACHE STRING "sanitizers to build with, e.g. address,undefined")

find_program(CCACHE ccache)
if(CCACHE)
  # Without this ccache keeps nothing that is compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

if(SINTER_PORTABLE)
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libstdc++>
                   $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libgcc>
                   $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-s>
                   $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-static-libstdc++>
                   $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-static-libgcc>)
endif()
if(SINTER_SANITIZE)
  add_compile_options(-fsanitize=${SINTER_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's checks of uninitialized values are known to err on instrumented code.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  add_link_options(-fsanitize=${SINTER_SANITIZE})
endif()
if(SINTER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang; configure with --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# libNAME.a in a portable build or where `linkage` says STATIC, whatever is there otherwise.
function(sinter_find_library variable name linkage)
  if(SINTER_PORTABLE OR linkage STREQUAL "STATIC")
    find_library(${variable} NAMES lib${name}.a ${ARGN} REQUIRED)
  else()
    find_library(${variable} NAMES ${name} ${ARGN} REQUIRED)
  endif()
endfunction()
sinter_find_library(SINTER_OPENBLAS openblas SHARED)
include(${CMAKE_CURRENT_LIST_DIR}/SinterOpenBlas.cmake)
sinter_find_library(SINTER_XXHASH xxhash STATIC)
sinter_find_library(SINTER_PCRE2 pcre2-8 STATIC)
sinter_find_library(SINTER_UTF8PROC utf8proc STATIC)

# fmt: headers from the system, the compiled half from fmt.cpp.
find_package(fmt REQUIRED)
get_target_property(SINTER_FMT_INCLUDE fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
add_library(sinter_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_include_directories(sinter_fmt SYSTEM PUBLIC ${SINTER_FMT_INCLUDE})

# LLVM: ADT headers and libLLVMSupport, statically; nothing else of LLVM. The compression libraries
# that LLVM was built with are referenced by members of the archive that nothing here pulls in.
find_path(SINTER_LLVM_INCLUDE llvm/ADT/SmallVector.h HINTS /usr/lib/llvm-19/include REQUIRED)
find_library(SINTER_LLVM_SUPPORT libLLVMSupport.a HINTS /usr/lib/llvm-19/lib REQUIRED)
find_library(SINTER_LLVM_DEMANGLE libLLVMDemangle.a HINTS /usr/lib/llvm-19/lib REQUIRED)
add_library(sinter_llvm INTERFACE)
target_include_directories(sinter_llvm SYSTEM INTERFACE ${SINTER_LLVM_INCLUDE})
target_link_libraries(sinter_llvm INTERFACE ${SINTER_LLVM_SUPPORT} ${SINTER_LLVM_DEMANGLE}
                      Threads::Threads ${CMAKE_DL_LIBS})
if(SINTER_PORTABLE)
  add_library(sinter_older_glibc STATIC ${CMAKE_CURRENT_LIST_DIR}/older_glibc.cpp)
  target_link_libraries(sinter_llvm INTERFACE sinter_older_glibc)
endif()

# -ffp-contract=off: host arithmetic is the reference of the numerics contract.
set(SINTER_COMPILE_OPTIONS -Wall -Wextra -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 finds faults in its own std::string, which it tells of once that is precompiled.
  list(APPEND SINTER_COMPILE_OPTIONS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  # GCC 13 takes an element of a view that a function returns for a part of a temporary.
  list(APPEND SINTER_COMPILE_OPTIONS -Wno-dangling-reference)
endif()

# sinter_precompile(TARGET): headers of others that most sources use are read once, for this target and
# those that sinter_compile_options gets from here on. A source includes what it uses all the same.
function(sinter_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional>
    <set> <span> <sstream> <string> <string_view> <vector>
    <fmt/format.h> <llvm/ADT/DenseMap.h> <llvm/ADT/STLExtras.h> <llvm/ADT/SmallVector.h>
    <tl/expected.hpp>)
  target_include_directories(${target} SYSTEM PRIVATE ${SINTER_FMT_INCLUDE})
  target_link_libraries(${target} PRIVATE tl::expected sinter_llvm)
  target_compile_options(${target} PRIVATE ${SINTER_COMPILE_OPTIONS})
  set(SINTER_PRECOMPILED ${target} PARENT_SCOPE)
endfunction()
sinter_precompile(sinter_fmt)

function(sinter_compile_options target)
  target_compile_options(${target} PRIVATE ${SINTER_COMPILE_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${SINTER_PRECOMPILED})
endfunction()

# sinter_units(TARGET): a unity build makes units of about equally many sources, at most SINTER_UNIT_SOURCES
# each. Half of what a small unit takes is code of headers that the room's other units compile too.
set(SINTER_UNIT_SOURCES 60 CACHE STRING "the most sources that a unity build compiles as one")
function(sinter_units target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR units "(${count} + ${SINTER_UNIT_SOURCES} - 1) / ${SINTER_UNIT_SOURCES}")
  math(EXPR size "(${count} + ${units} - 1) / ${units}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# sinter_room(FOLDER libraries...): the static library sinter_NAME of all *.cpp below the folder, whose
# name has _ for each /; adds NAME to SINTER_ROOMS, FOLDER to SINTER_FOLDERS, and to SINTER_PLANTED_SOURCES the sources that ask for planted faults
# (ir/fault.h). Each of those is an object of its own, so that a test may link another in its place.
set(SINTER_ROOMS "")
set(SINTER_FOLDERS "")
set(SINTER_PLANTED_SOURCES "")
function(sinter_room folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  file(GLOB ops CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*/op.cpp)
  file(GLOB evaluations CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*/host.cpp)
  if(folder STREQUAL "kernels")
    list(REMOVE_ITEM sources ${ops} ${evaluations})
  elseif(folder STREQUAL "ir")
    list(APPEND sources ${ops})
  elseif(folder STREQUAL "runtime")
    list(APPEND sources ${evaluations})
  endif()
  add_library(sinter_${name} STATIC ${sources})
  sinter_units(sinter_${name})
  target_include_directories(sinter_${name} PUBLIC
    ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  sinter_compile_options(sinter_${name})
  target_link_libraries(sinter_${name} PUBLIC ${ARGN} tl::expected sinter_fmt sinter_llvm)
  set(SINTER_ROOMS ${SINTER_ROOMS} ${name} PARENT_SCOPE)
  set(SINTER_FOLDERS ${SINTER_FOLDERS} ${folder} PARENT_SCOPE)
  foreach(source IN LISTS sources)
    # Records of families use the same names for the same fields.
    if(source MATCHES "/family\\.cpp$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    file(STRINGS ${source} found REGEX "#include \"ir/fault.h\"" LIMIT_COUNT 1)
    if(found)
      list(APPEND SINTER_PLANTED_SOURCES ${source})
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set(SINTER_PLANTED_SOURCES ${SINTER_PLANTED_SOURCES} PARENT_SCOPE)
endfunction()

# sinter_program(NAME FOLDER libraries...): the program bin/NAME of the folder's *.cpp.
function(sinter_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  sinter_units(${name})
  sinter_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARGN})
endfunction()

# sinter_embed_headers(TARGET OUTPUT patterns...): the matching files as array rows in OUTPUT, which
# sources of TARGET include; made again when one of the files changes.
function(sinter_embed_headers target output)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  list(SORT files)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_headers.cmake)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${output})
  add_custom_command(OUTPUT ${output} VERBATIM DEPENDS ${files} ${script}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DSOURCES=${CMAKE_CURRENT_SOURCE_DIR} -DOUTPUT=${output} -P ${script})
  target_sources(${target} PRIVATE ${output})
endfunction()
