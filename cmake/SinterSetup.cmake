# Compiler settings and the libraries that every folder may use.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

# LLVM: ADT headers and libLLVMSupport, statically; nothing else of LLVM.
find_path(SINTER_LLVM_INCLUDE llvm/ADT/SmallVector.h HINTS /usr/lib/llvm-19/include REQUIRED)
find_library(SINTER_LLVM_SUPPORT libLLVMSupport.a HINTS /usr/lib/llvm-19/lib REQUIRED)
find_library(SINTER_LLVM_DEMANGLE libLLVMDemangle.a HINTS /usr/lib/llvm-19/lib REQUIRED)
add_library(sinter_llvm INTERFACE)
target_include_directories(sinter_llvm SYSTEM INTERFACE ${SINTER_LLVM_INCLUDE})
target_link_libraries(sinter_llvm INTERFACE ${SINTER_LLVM_SUPPORT} ${SINTER_LLVM_DEMANGLE}
                      Threads::Threads ${CMAKE_DL_LIBS})

# One static library a folder; sources are the folder's *.cpp.
function(sinter_folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(sinter_${name} STATIC ${sources})
  target_include_directories(sinter_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>)
  # -ffp-contract=off: host arithmetic is the reference of the numerics contract.
  target_compile_options(sinter_${name} PRIVATE -Wall -Wextra -Werror -ffp-contract=off)
  target_link_libraries(sinter_${name} PUBLIC ${ARGN} tl::expected fmt::fmt sinter_llvm)
endfunction()
