# Installs Sinter, moves the tree, and builds and runs samples/embed against it: with the compiler of
# the build, with clang where there is one, and with the headers that were released last.
# Run: cmake -DBUILD=<build folder> -DWORK=<scratch> -DSAMPLES=<folder> -DTESTS=<this folder>
#      -DCXX=<c++> -DCC=<cc> -DFLAGS=<compiler flags> -P check_install.cmake
cmake_policy(VERSION 3.25)

# run([SKIPS] command...): SKIPS: the program may say with code 77 that it was skipped.
function(run)
  cmake_parse_arguments(ARG "SKIPS" "" "" ${ARGN})
  execute_process(COMMAND ${ARG_UNPARSED_ARGUMENTS} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  set(output "${output}" PARENT_SCOPE)
  if(status EQUAL 0 OR (ARG_SKIPS AND status EQUAL 77))
    return()
  endif()
  list(JOIN ARG_UNPARSED_ARGUMENTS " " command)
  message(NOTICE "${output}${errors}")
  message(FATAL_ERROR "failed (${status}): ${command}")
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# The installed tree is moved, so that a path into the place it was made for shows.
file(RENAME ${WORK}/prefix ${WORK}/moved)

# Installed headers include each other and headers of the languages alone.
file(GLOB_RECURSE headers ${WORK}/moved/include/*)
list(LENGTH headers count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "${count} installed headers: ${headers}")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${header} lines REGEX "#[ ]*include")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "#include (<[a-z_]+(\\.h)?>|\"sinter_c\\.h\")$")
      message(FATAL_ERROR "${header}: ${line}")
    endif()
  endforeach()
endforeach()

# build_and_run(NAME CXX CC FLAGS): all samples, outside the repository.
function(build_and_run name cxx cc flags)
  file(REMOVE_RECURSE ${WORK}/${name}_source)
  file(COPY ${SAMPLES}/embed/ DESTINATION ${WORK}/${name}_source)
  run(${CMAKE_COMMAND} -S ${WORK}/${name}_source -B ${WORK}/${name} -G Ninja
      -DCMAKE_PREFIX_PATH=${WORK}/moved -DCMAKE_CXX_COMPILER=${cxx} -DCMAKE_C_COMPILER=${cc}
      "-DCMAKE_CXX_FLAGS=${flags} -Werror" "-DCMAKE_C_FLAGS=${flags} -Werror")
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  foreach(sample layer_norm_residual layer_norm_residual_c own_kernel two_sessions)
    run(${WORK}/${name}/${sample})
    message(STATUS "${name}: ${sample}\n${output}")
  endforeach()
  run(${WORK}/${name}/language_model ${SAMPLES}/tiny-llama)
  message(STATUS "${name}: language_model\n${output}")
  execute_process(COMMAND ldd ${WORK}/${name}/gpu_stream OUTPUT_VARIABLE needed ERROR_QUIET)
  if(needed MATCHES "libcuda" AND NOT needed MATCHES "libcuda[^\n]*not found")
    run(SKIPS ${WORK}/${name}/gpu_stream)
    message(STATUS "${name}: gpu_stream\n${output}")
  else()
    message(STATUS "${name}: gpu_stream skipped, there is no driver")
  endif()
endfunction()

build_and_run(own ${CXX} ${CC} "${FLAGS}")
find_program(clang NAMES clang++ clang++-19 clang++-14)
if(clang AND NOT FLAGS)
  string(REPLACE "clang++" "clang" clang_c "${clang}")
  build_and_run(clang ${clang} ${clang_c} "")
endif()
# Programs that were compiled against the released headers run with this library.
build_and_run(released ${CXX} ${CC} "${FLAGS} -I${TESTS}/released/include")
run(ninja -C ${WORK}/released -t deps)
if(NOT output MATCHES "released/include/sinter/sinter_c.h" OR output MATCHES "moved/include")
  message(FATAL_ERROR "not compiled against the released headers:\n${output}")
endif()
