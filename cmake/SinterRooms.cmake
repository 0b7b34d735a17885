# One target a room, a folder at the root; the arrows of the design are the link lines.
# In a kernel family's folder, op.cpp belongs to `ir` and host.cpp to `runtime`.
sinter_room(ir)
sinter_room(device sinter_ir)
sinter_room(plan sinter_ir nlohmann_json::nlohmann_json ${SINTER_XXHASH})
target_compile_definitions(sinter_plan PRIVATE SINTER_VERSION="${PROJECT_VERSION}")
sinter_room(codegen/emission sinter_ir sinter_device sinter_plan)
sinter_room(kernels sinter_ir sinter_device sinter_plan sinter_codegen_emission)
sinter_embed_headers(sinter_kernels kernels/library.inc kernels/*/*.cuh kernels/tile/*/*.cuh kernels/*/order.h kernels/*/layout.h
                     ir/scalar_math.h ir/activation.h ir/attention_dropout.h
                     ir/packed_codes.h)
sinter_room(passes sinter_ir sinter_device sinter_kernels)
sinter_room(codegen/lowering sinter_ir sinter_device sinter_plan sinter_kernels sinter_codegen_emission ${SINTER_XXHASH})
sinter_room(frontends sinter_ir nlohmann_json::nlohmann_json ${SINTER_PCRE2} ${SINTER_UTF8PROC})
sinter_room(runtime sinter_ir sinter_device sinter_plan ${SINTER_OPENBLAS_LINKED} ${SINTER_XXHASH})
# The loops of the host evaluator become vector instructions; at -O2 GCC does that only to loops whose
# length it knows.
target_compile_options(sinter_runtime PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
set_source_files_properties(runtime/evaluate/openblas.cpp PROPERTIES COMPILE_DEFINITIONS ${SINTER_OPENBLAS_MACRO})
# Ranges for NVIDIA's timelines, where a CUDA toolkit has the headers.
find_path(SINTER_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include)
if(SINTER_NVTX_INCLUDE)
  set_source_files_properties(runtime/cuda/nvtx.cpp PROPERTIES COMPILE_DEFINITIONS SINTER_NVTX
                              COMPILE_OPTIONS "-isystem;${SINTER_NVTX_INCLUDE}")
endif()
sinter_room(driver sinter_codegen_lowering sinter_passes sinter_frontends sinter_runtime ${SINTER_XXHASH})
sinter_embed_headers(sinter_driver driver/page/files.inc driver/page/*.css driver/page/*.js)
sinter_room(api sinter_driver)
target_compile_definitions(sinter_api PRIVATE SINTER_VERSION="${PROJECT_VERSION}")
sinter_program(sinter cli sinter_driver CLI11::CLI11)
# It reads options and prints text: the optimizer's work would be for CLI11's templates.
target_compile_options(sinter PRIVATE $<$<CONFIG:Release>:-O1>)
set_target_properties(sinter PROPERTIES PCH_WARN_INVALID OFF)  # GCC 13 reads no headers of -O2 at -O1
target_compile_definitions(sinter_driver PRIVATE SINTER_VERSION="${PROJECT_VERSION}")
target_compile_definitions(sinter PRIVATE SINTER_VERSION="${PROJECT_VERSION}")
