# Writes the files of the list FILES as rows {"name", "text"} of a C++ array to OUTPUT. A header's
# name is its path under SOURCES, by which host code includes it too.
# Run by the build: cmake -DFILES=a;b -DSOURCES=... -DOUTPUT=... -P embed_headers.cmake
set(rows "")
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${SOURCES} ${file})
  file(READ ${file} text)
  if(text MATCHES "\\)sinter_header\"")
    message(FATAL_ERROR "${file} contains the delimiter of its embedded form; change one of them")
  endif()
  string(APPEND rows "{\"${name}\", R\"sinter_header(${text})sinter_header\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
