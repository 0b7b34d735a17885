# Writes the files of the list FILES as rows {"sinter/<file>", "text"} of a C++ array to OUTPUT.
# Run by the build: cmake -DFILES=a;b -DOUTPUT=... -P embed_headers.cmake
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  if(text MATCHES "\\)sinter_header\"")
    message(FATAL_ERROR "${file} contains the delimiter of its embedded form; change one of them")
  endif()
  string(APPEND rows "{\"sinter/${name}\", R\"sinter_header(${text})sinter_header\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
