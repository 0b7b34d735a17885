// The kernel text that an emitter writes, and the texts that all emitters share.
#pragma once

#include <string>
#include <vector>

#include "plan/program.h"

namespace sinter {

/// Threads of a multiprocessor that have 64 registers each.
inline constexpr int64_t kThreadsOf64Registers = 1024;

/// The text of a kernel's function, and how it is launched.
struct KernelBody {
  std::string includes =
      "#include \"kernels/common/reduce.cuh\"\n#include \"kernels/common/vector.cuh\"\n";
  std::string globals;      // definitions before the function
  std::string before_wait;  // between the function's braces, before the wait for earlier kernels
  std::string text;         // and after it
  bool waits = false;       // the text has the wait in it
  std::vector<uint32_t> early_inputs;  // of Overlap's, those that the text reads before the wait
  std::vector<TensorMap> tensor_maps;  // the parameters t0, t1, ...
  Launch launch;
  int64_t resident_blocks = 1;   // that a multiprocessor must have room for at a time
  bool moves_registers = false;  // its warpgroups hand registers to one another (setmaxnreg)
  bool takes_registers = false;  // of all that resident_blocks leave, even where that is one block
  uint32_t minimum_arch = 70;    // of the oldest device that runs it
};

/// The arguments that a caller passes for the parameters of a group's function (parameters_of in
/// plan/kernel_text.h): its own inputs and outputs of these numbers, and its symbols:
/// "x0, ..., y0, ..., n0".
std::string arguments_of(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs,
                         size_t symbols);

/// The statements with which a kernel that waits does so.
std::string wait_text(const Overlap& overlap);

}  // namespace sinter
