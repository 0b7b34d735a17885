// Machine code of a plan's kernels, where the machine has a compiler for it.
#pragma once

#include "plan/program.h"

namespace sinter {

struct MachineCode {
  struct Kernel {
    std::string name, text_hash;  // content_hash() of its text
    std::string bytes;
  };
  std::string arch;
  /// The program's kernels in their order, then Sinter's own kernels for its matrix products, which
  /// run where the library has no algorithm.
  std::vector<Kernel> kernels;
  size_t from_cache = 0;
  std::string absent;  // not empty: there is none, because no NVRTC was found
};

/// A table: registers, shared memory and spills of each kernel.
std::string resource_table(const Program& program, const MachineCode& code);

/// Compiles for one architecture ("sm_90a"), a thread per processor, through the user's cache.
Result<MachineCode> machine_code(const Program& program, const std::string& arch);

}  // namespace sinter
