# Sets SINTER_OPENBLAS_LINKED, the archives that the room `runtime` links to get OpenBLAS, and
# SINTER_OPENBLAS_MACRO, which tells runtime/evaluate/openblas.cpp how to get it.
# OpenBLAS asks for address space when the process starts, again and again where there is none. So a
# shared one is not linked but loaded with the first product. A static one is linked without the
# functions that run when the process starts and ends: its member memory.o alone has some, and
# openblas.cpp calls the first of them, gotoblas_init.
set(SINTER_OPENBLAS_LINKED "")
if(NOT SINTER_OPENBLAS MATCHES "\\.a$")
  set(SINTER_OPENBLAS_MACRO "SINTER_OPENBLAS_FILE=\"${SINTER_OPENBLAS}\"")
  return()
endif()
set(SINTER_OPENBLAS_MACRO SINTER_OPENBLAS_LINKED)
set(SINTER_OPENBLAS_FOLDER ${PROJECT_BINARY_DIR}/openblas)
set(SINTER_OPENBLAS_START ${SINTER_OPENBLAS_FOLDER}/libsinter_openblas_start.a)
file(MAKE_DIRECTORY ${SINTER_OPENBLAS_FOLDER})
file(REMOVE ${SINTER_OPENBLAS_START})
execute_process(COMMAND ${CMAKE_AR} x ${SINTER_OPENBLAS} memory.o
                COMMAND_ERROR_IS_FATAL ANY WORKING_DIRECTORY ${SINTER_OPENBLAS_FOLDER})
execute_process(COMMAND ${CMAKE_OBJCOPY} --remove-section=.init_array --remove-section=.rela.init_array
                        --remove-section=.fini_array --remove-section=.rela.fini_array memory.o
                COMMAND_ERROR_IS_FATAL ANY WORKING_DIRECTORY ${SINTER_OPENBLAS_FOLDER})
execute_process(COMMAND ${CMAKE_AR} rcs ${SINTER_OPENBLAS_START} memory.o
                COMMAND_ERROR_IS_FATAL ANY WORKING_DIRECTORY ${SINTER_OPENBLAS_FOLDER})
# The first archive that has a function is the one that it is taken from.
set(SINTER_OPENBLAS_LINKED ${SINTER_OPENBLAS_START} ${SINTER_OPENBLAS})
