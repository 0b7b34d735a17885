# Fails where a source other than cli/output.cpp writes to standard output or standard error. Such
# text would escape the check that results were written, or end the program where stderr is closed.
# ir/error.cpp may, for broken invariants of the compiler; driver/check_command.cpp gives the streams of
# a command that it starts to that command.
# Run: cmake -DSOURCES=/path/to/sources "-DFOLDERS=driver;cli;..." -P check_streams.cmake
cmake_policy(VERSION 3.25)

set(writes "(std::(cout|cerr|clog|puts|putchar|perror)|[^a-z_]v?printf\\(|fmt::v?print(ln)?\\(|STD(OUT|ERR)_FILENO|[(,] *std(out|err) *[,)]|llvm::(outs|errs)\\()")

set(found "")
set(checked 0)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${SOURCES} ${SOURCES}/${folder}/*.h ${SOURCES}/${folder}/*.cpp)
  list(REMOVE_ITEM files cli/output.cpp ir/error.cpp driver/check_command.cpp)
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${SOURCES}/${file} lines REGEX "${writes}")
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      string(APPEND found "${file} writes to a standard stream: ${line}\n")
    endforeach()
  endforeach()
endforeach()

if(checked EQUAL 0)
  message(FATAL_ERROR "no sources under ${SOURCES}")
elseif(found)
  message(NOTICE "${found}")
  message(FATAL_ERROR "use cli/output.h")
endif()
message(STATUS "${checked} files leave the standard streams to cli/output.cpp")
