// Finds and loads NVIDIA's run-time compiler. Nothing of CUDA is needed when Sinter is built.
#pragma once

#include <cstddef>
#include <string>

#include "ir/error.h"

namespace sinter {

/// The NVRTC library of this machine, not loaded.
struct NvrtcFile {
  std::string path;
  // Resolved file name, size and time of change: names a version without loading the library.
  std::string identity;
};

/// The newest NVRTC in the first directory that has one: the dynamic loader's, then
/// $CUDA_HOME/lib64, $CUDA_PATH/lib64 and /usr/local/cuda/lib64. The error says where it was
/// sought.
Result<NvrtcFile> find_nvrtc();

/// The entry points in use, with the types that NVRTC's C interface gives them.
struct NvrtcApi {
  using Program = struct NvrtcProgram*;
  int (*create_program)(Program*, const char* source, const char* name, int headers,
                        const char* const* texts, const char* const* names);
  int (*compile_program)(Program, int options, const char* const* option);
  int (*destroy_program)(Program*);
  int (*cubin_size)(Program, size_t* bytes);
  int (*cubin)(Program, char* bytes);
  int (*log_size)(Program, size_t* bytes);
  int (*log)(Program, char* bytes);
  const char* (*error_string)(int);
};

/// The entry points of the library at `path`, loaded on first use and then kept. Thread-safe.
Result<const NvrtcApi*> load_nvrtc(const std::string& path);

}  // namespace sinter
