// Machine code of a plan's kernels, where the machine has a compiler for it.
#pragma once

#include "plan/program.h"

namespace sinter {

struct MachineCode {
  std::string arch;
  std::vector<std::string> cubins;  // by kernel of the program
  size_t from_cache = 0;
  std::string absent;  // not empty: there is none, because no NVRTC was found
};

/// Compiles for one architecture ("sm_90a"), a thread per processor, through the user's cache.
Result<MachineCode> machine_code(const Program& program, const std::string& arch);

}  // namespace sinter
