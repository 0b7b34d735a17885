# Makes the reference elsewhere; a warning is an error.
# Run: cmake -DDOXYGEN=<program> -DSOURCES=<root> -DWORK=<scratch> -P check_docs.cmake
cmake_policy(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
file(READ ${SOURCES}/docs/Doxyfile settings)
file(WRITE ${WORK}/Doxyfile "${settings}\nOUTPUT_DIRECTORY = ${WORK}\n")
execute_process(COMMAND ${DOXYGEN} ${WORK}/Doxyfile WORKING_DIRECTORY ${SOURCES} RESULT_VARIABLE status
                ERROR_VARIABLE errors OUTPUT_VARIABLE output)
if(NOT status EQUAL 0 OR NOT errors STREQUAL "")
  message(FATAL_ERROR "doxygen: ${errors}${output}")
endif()
if(NOT EXISTS ${WORK}/html/sinter__c_8h.html)
  message(FATAL_ERROR "the reference lacks sinter_c.h")
endif()
