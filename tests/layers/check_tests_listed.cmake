# Fails where a file of test cases, NAME_test.cpp, is compiled into no test: no CMakeLists.txt under
# tests names it. Run: cmake -DTESTS=/path/to/tests -P check_tests_listed.cmake
cmake_policy(VERSION 3.25)

file(GLOB_RECURSE lists ${TESTS}/CMakeLists.txt)
set(listed "")
foreach(list IN LISTS lists)
  file(READ ${list} text)
  string(APPEND listed "${text}\n")
endforeach()

file(GLOB_RECURSE files RELATIVE ${TESTS} ${TESTS}/*_test.cpp)
list(FILTER files EXCLUDE REGEX "^layers/planted")  # of the test of this check
set(absent "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  if(NOT listed MATCHES "[ (/\n]${name}[ )\n]")
    string(APPEND absent "  ${file}\n")
  endif()
endforeach()

list(LENGTH files count)
if(count EQUAL 0)
  message(FATAL_ERROR "no tests under ${TESTS}")
elseif(absent)
  message(FATAL_ERROR "no CMakeLists.txt names\n${absent}")
endif()
message(STATUS "${count} files of test cases are listed")
