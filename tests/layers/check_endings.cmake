# Fails where a thread that works while the process ends, or that ends itself, would end the process
# with a signal: a static object has a destructor, which exit() runs under working threads; or a
# `catch (...)` stops the unwinding of a thread's stack.
# Run: cmake -DSOURCES=/path/to/sources "-DFOLDERS=driver;..." "-DARCHIVES=libsinter_ir.a;..." -P check_endings.cmake
cmake_policy(VERSION 3.25)

set(found "")
set(checked 0)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${SOURCES} ${SOURCES}/${folder}/*.h ${SOURCES}/${folder}/*.cpp)
  list(REMOVE_ITEM files ir/catch_all.h)
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${SOURCES}/${file} lines REGEX "catch *\\( *\\.\\.\\. *\\)")
    foreach(line IN LISTS lines)
      # The public header has a macro of its own, and names the handler in its comment.
      if(NOT line MATCHES "^(//.*|  catch \\(\\.\\.\\.\\)|#define [A-Z_]*_CATCH_ALL catch \\(\\.\\.\\.\\))$")
        string(APPEND found "${file} has a catch (...): use SINTER_CATCH_ALL (ir/catch_all.h)\n")
      endif()
    endforeach()
  endforeach()
endforeach()

# A compiler registers the destructor of a static object with __cxa_atexit.
foreach(archive IN LISTS ARCHIVES)
  math(EXPR checked "${checked} + 1")
  execute_process(COMMAND nm -A -u ${archive} OUTPUT_VARIABLE imports COMMAND_ERROR_IS_FATAL ANY)
  if(NOT imports MATCHES "__cxa_atexit")
    continue()
  endif()
  execute_process(COMMAND nm -A -C ${archive} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+ U __cxa_atexit" users "${imports}")
  foreach(user IN LISTS users)
    string(REGEX REPLACE "^.*\\.a:([^:]+):.*$" "\\1" object "${user}")
    string(APPEND found "${archive}: ${object} has a static object with a destructor: use "
                        "never_destroyed (ir/never_destroyed.h). Guards of its static objects:\n")
    string(REGEX MATCHALL ":${object}:[^\n]* guard variable for [^\n]+" guards "${symbols}")
    foreach(guard IN LISTS guards)
      string(REGEX REPLACE "^.* guard variable for " "  " guard "${guard}")
      string(APPEND found "${guard}\n")
    endforeach()
  endforeach()
endforeach()

if(checked EQUAL 0)
  message(FATAL_ERROR "no sources under ${SOURCES}")
elseif(found)
  message(NOTICE "${found}")
  message(FATAL_ERROR "a process would end with a signal while its threads work")
endif()
message(STATUS "${checked} files and archives leave threads alone")
