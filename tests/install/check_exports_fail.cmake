# check_exports.cmake finds what a new version may not do: each of these faults is planted in the header
# that plays the one released last, or in the list of functions.
# Run: cmake -DLIBRARY=libsinter.so -DHEADER=sinter_c.h -DWORK=<scratch> -P check_exports_fail.cmake
cmake_policy(VERSION 3.25)
file(MAKE_DIRECTORY ${WORK})
file(READ ${HEADER} text)

function(expect_failure header released message)
  execute_process(COMMAND ${CMAKE_COMMAND} -DLIBRARY=${LIBRARY} -DHEADER=${header} -DRELEASED=${released}
                          -P ${CMAKE_CURRENT_LIST_DIR}/check_exports.cmake
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  string(REGEX REPLACE "[ \n]+" " " errors "${output}${errors}")
  if(status EQUAL 0 OR NOT errors MATCHES "${message}")
    message(FATAL_ERROR "\"${message}\" was expected, got ${status}: ${errors}")
  endif()
endfunction()

# plant(NAME FROM TO MESSAGE): the released header had TO where this one has FROM.
function(plant name from to message)
  string(REPLACE "${from}" "${to}" planted "${text}")
  if(planted STREQUAL text)
    message(FATAL_ERROR "${HEADER} has no \"${from}\"")
  endif()
  file(WRITE ${WORK}/${name}.h "${planted}")
  expect_failure(${HEADER} ${WORK}/${name}.h "${message}")
endfunction()
plant(removed "SINTER_API void sinter_free(void* memory)"
      "SINTER_API void sinter_gone(void); SINTER_API void sinter_free(void* memory)"
      "changed or gone: .*sinter_gone")
plant(parameter "sinter_kernel_numbers(sinter_kernel* kernel, size_t count)" "sinter_kernel_numbers(sinter_kernel* kernel, int count)"
      "changed or gone: .*sinter_kernel_numbers")
plant(result "SINTER_API int64_t sinter_costs_launches" "SINTER_API int32_t sinter_costs_launches"
      "changed or gone: .*sinter_costs_launches")
plant(callback "typedef int (*sinter_progress)(void* user" "typedef int (*sinter_progress)(int user"
      "changed or gone: .*sinter_progress")
plant(number "SINTER_CODE_DEVICE = 5" "SINTER_CODE_DEVICE = 9" "changed or gone: SINTER_CODE_DEVICE=9")

# A function that the header does not have, or that the library does not export.
file(READ ${HEADER} text)
string(REPLACE "SINTER_API void sinter_free(void* memory);" "" planted "${text}")
file(WRITE ${WORK}/undeclared.h "${planted}")
expect_failure(${WORK}/undeclared.h ${HEADER} "exported, not declared: sinter_free")
string(REPLACE "SINTER_API void sinter_free(void* memory);" "SINTER_API void sinter_free(void* memory); SINTER_API void sinter_new(void);"
       planted "${text}")
file(WRITE ${WORK}/unexported.h "${planted}")
expect_failure(${WORK}/unexported.h ${HEADER} "declared, not exported: sinter_new")
