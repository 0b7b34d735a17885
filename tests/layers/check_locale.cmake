# Fails where a source reads or writes numbers, or asks for the kind of a character, by the locale
# that the host program has set: a decimal comma would change files, texts and results. Sinter uses
# from_chars, to_chars and fmt, which know no locale. api/sinter.h alone calls snprintf(), since it
# is compiled by the user's compiler: its text goes through with_point().
# Run: cmake -DSOURCES=/path/to/sources "-DFOLDERS=driver;..." -P check_locale.cmake
cmake_policy(VERSION 3.25)

set(reads "(^|[^a-zA-Z0-9_])(strto(d|f|ld)|sto(d|f|ld)|ato[fil]|[fsv]*scanf|v?s?n?printf|localeconv|setlocale|is(alpha|alnum|digit|xdigit|space|upper|lower|punct)|to(lower|upper)) *\\(")
string(APPEND reads "|std::[io]?stringstream|std::locale[^:]|std::locale::global")
set(json_parser "(sax_parse|[Jj]son::(parse|accept)) *\\(")

set(found "")
set(checked 0)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${SOURCES} ${SOURCES}/${folder}/*.h ${SOURCES}/${folder}/*.cpp)
  list(REMOVE_ITEM files api/sinter.h)
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${SOURCES}/${file} lines REGEX "${reads}")
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      if(NOT line MATCHES "^//")
        string(APPEND found "${file} uses the locale: ${line}\n")
      endif()
    endforeach()
    # The parser calls strtod().
    file(STRINGS ${SOURCES}/${file} parses REGEX "${json_parser}")
    file(STRINGS ${SOURCES}/${file} guards REGEX "const CLocale ")
    if(parses AND NOT guards)
      string(APPEND found "${file} parses JSON without CLocale\n")
    endif()
  endforeach()
endforeach()

if(checked EQUAL 0)
  message(FATAL_ERROR "no sources under ${SOURCES}")
elseif(found)
  message(NOTICE "${found}")
  message(FATAL_ERROR "use from_chars, to_chars, fmt or llvm/ADT/StringExtras.h; for JSON ir/c_locale.h")
endif()
message(STATUS "${checked} files know no locale")
