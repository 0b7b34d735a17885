# Run: cmake -DBUILD=<build folder> -DWORK=<scratch> -DCONSUMER=<project> -DMODEL=<folder>
#      -DFLAGS=<compiler flags> -P check_install.cmake
cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(NOTICE "${output}")
    message(FATAL_ERROR "failed: ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# What is installed is moved, so that a path into the place it was made for shows.
file(RENAME ${WORK}/prefix ${WORK}/moved)

# Installed headers name no type of LLVM and need none of its headers.
file(GLOB_RECURSE headers ${WORK}/moved/include/*)
foreach(header IN LISTS headers)
  file(STRINGS ${header} lines REGEX "llvm")
  if(lines)
    message(FATAL_ERROR "${header} mentions LLVM: ${lines}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/moved
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer ${MODEL})
message(STATUS "${output}")
