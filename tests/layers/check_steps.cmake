# Fails where a source other than plan/step.* looks at a step's kind by itself: get, get_if,
# holds_alternative or std::visit on Step::run. Such code compiles when a kind is added and does not
# handle it; visit() and step_facts() of plan/step.h do.
# Run: cmake -DSOURCES=/path/to/sources "-DFOLDERS=driver;plan;..." -P check_steps.cmake
cmake_policy(VERSION 3.25)

# The kinds, from the variant in plan/step.h.
file(READ ${SOURCES}/plan/step.h text)
if(NOT text MATCHES "using Run = std::variant<([^>]*)>")
  message(FATAL_ERROR "plan/step.h has no variant Step::Run")
endif()
string(REGEX REPLACE "[ \n]*,[ \n]*" "|" kinds "${CMAKE_MATCH_1}")

set(look "(get|get_if|holds_alternative)")
set(of_kind "${look}<(const )?(sinter::)?(${kinds})>")
set(of_run "${look}<[^<>]*>\\([^()]*run\\)|visit\\(.*[.>]run\\)|[.>]run\\.index\\(")

set(found "")
set(checked 0)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${SOURCES} ${SOURCES}/${folder}/*.h ${SOURCES}/${folder}/*.cpp)
  list(FILTER files EXCLUDE REGEX "^(plan/step\\.|tests/layers/)")
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${SOURCES}/${file} lines REGEX "${of_kind}|${of_run}")
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      string(APPEND found "${file} looks at a step's kind: ${line}\n")
    endforeach()
  endforeach()
endforeach()

if(checked EQUAL 0)
  message(FATAL_ERROR "no sources under ${SOURCES}")
elseif(found)
  message(NOTICE "${found}")
  message(FATAL_ERROR "use visit() or step_facts() of plan/step.h")
endif()
message(STATUS "${checked} files leave the kinds of steps to plan/step.h")
