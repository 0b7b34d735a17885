# The suite's record of a pass (`run`, --record), on a machine without a device: a tree with one model,
# one module of each kind, and programs that only end with the exit code that the suite expects.
#
# Run: cmake -DRUN=<tests/gpu/run> -DWORK=<scratch> -P check_record.cmake
cmake_policy(VERSION 3.25)

set(tree ${WORK}/tree)
set(build ${WORK}/build)
set(usual ${tree}/bench/results/gpu_suite.json)
set(path "${WORK}/tools:$ENV{PATH}")
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${tree}/tests/gpu ${tree}/bench)
file(COPY ${RUN} DESTINATION ${tree}/tests/gpu)
file(WRITE ${tree}/tests/gpu/plans "#!/bin/sh\n")
file(CHMOD ${tree}/tests/gpu/plans PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE ${tree}/tests/gpu/modules/sums.sir "")
file(WRITE ${tree}/tests/gpu/outside/rows.sir "")
file(WRITE ${tree}/tests/golden/gpt2/config.json "")
file(WRITE ${tree}/tests/golden/gpt2/reference.safetensors "")

# program(PATH BODY): a shell script.
function(program path body)
  file(WRITE ${path} "#!/bin/sh\n${body}\n")
  file(CHMOD ${path} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
program(${build}/bin/sinter "case \"$*\" in *gpu/outside/*) exit 4 ;; esac")
foreach(name test_repeat_gpu test_scalar_math_gpu sinter_differential_gpu sinter_gpu_faults)
  program(${build}/tests/gpu/${name} "exit 0")
endforeach()
set(machine "{\"device\":\"NVIDIA H200\",\"compute_capability\":\"9.0\",\"cuda\":\"13.0\",\"nvrtc\":\"libnvrtc.so.13.0.88\",\"cublaslt\":130100}")
program(${build}/tests/test_gemm_gpu "if [ \"$1\" = --machine ]; then echo '${machine}'; fi")
program(${WORK}/tools/nvidia-smi "echo 580.65.06")
# Finds the planted faults and nothing else.
program(${WORK}/tools/compute-sanitizer
        "case \"$*\" in *sinter_gpu_faults\\ sound) ;; *sinter_gpu_faults*) exit 9 ;; *gpu/outside/*) exit 4 ;; esac")

# suite(CODE arguments...): runs the suite, which ends with this code; sets `output` and `errors`.
function(suite code)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "PATH=${path}" GIT_CEILING_DIRECTORIES=${WORK}
                          ${tree}/tests/gpu/run ${build} ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL code)
    message(FATAL_ERROR "the suite ended with ${status}, expected ${code}:\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# expect(FILE VALUE member...): the member of the record has this value.
function(expect file value)
  file(READ ${file} json)
  string(JSON got GET "${json}" ${ARGN})
  if(NOT "${got}" STREQUAL "${value}")
    message(FATAL_ERROR "${ARGN} is '${got}', expected '${value}', in\n${json}")
  endif()
endfunction()

function(expect_no file)
  if(EXISTS ${file})
    message(FATAL_ERROR "${file} was written")
  endif()
endfunction()

# In a tree without git, quick or not, where FILE says.
suite(0 --quick)
expect_no(${usual})
suite(0 --quick --record ${WORK}/quick.json --commit 123abc)
expect(${WORK}/quick.json 123abc commit)
expect(${WORK}/quick.json ON quick)
expect(${WORK}/quick.json 500 graphs)
suite(0)
if(NOT output MATCHES "gpu: ([0-9]+) passed, 0 failed\n$")
  message(FATAL_ERROR "the last line is not the count:\n${output}")
endif()
expect(${usual} ${CMAKE_MATCH_1} passed)
expect(${usual} 0 skipped)
expect(${usual} "" commit)
expect(${usual} "" dirty)
expect(${usual} OFF quick)
expect(${usual} 20000 graphs)
expect(${usual} 580.65.06 driver)
expect(${usual} "NVIDIA H200" machine device)
expect(${usual} 9.0 machine compute_capability)
expect(${usual} 13.0 machine cuda)
expect(${usual} libnvrtc.so.13.0.88 machine nvrtc)
expect(${usual} 130100 machine cublaslt)
file(READ ${usual} json)
string(JSON date GET "${json}" date)
if(NOT date MATCHES "^20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]+Z$")
  message(FATAL_ERROR "date ${date}")
endif()

# A place that cannot be written is a message; the pass remains one.
suite(0 --record ${usual}/record.json)
if(NOT errors MATCHES "gpu: no record of this pass: .*; give --record FILE")
  message(FATAL_ERROR "no message of the record that could not be written:\n${errors}")
endif()

# A check that did not test anything is counted apart.
program(${build}/tests/gpu/test_repeat_gpu "echo 'skipped: no such thing'")
suite(0)
expect(${usual} 1 skipped)
program(${build}/tests/gpu/test_repeat_gpu "exit 0")

# In a git tree: its commit, and whether files differ from it, the record itself aside.
find_program(GIT git)
if(GIT)
  function(git)
    execute_process(COMMAND ${GIT} -C ${tree} -c user.name=test -c user.email=test@localhost ${ARGN}
                    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(git_output "${output}" PARENT_SCOPE)
  endfunction()
  git(init --quiet)
  git(add .)
  git(commit --quiet -m tree)
  git(rev-parse HEAD)
  foreach(run 1 2)  # the first run changes the record, which is a file of the tree
    suite(0)
    expect(${usual} ${git_output} commit)
    expect(${usual} OFF dirty)
  endforeach()
  file(WRITE ${tree}/tests/gpu/modules/another.sir "")
  suite(0)
  expect(${usual} ON dirty)
endif()

# A failure leaves the record of the last pass as it is.
file(READ ${usual} before)
program(${build}/tests/gpu/test_repeat_gpu "exit 1")
suite(1)
file(READ ${usual} after)
if(NOT before STREQUAL after)
  message(FATAL_ERROR "a failed run changed the record:\n${after}")
endif()
