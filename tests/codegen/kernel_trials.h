// Emitted kernels tried on inputs: their text, run on the CPU, against the host evaluator.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "codegen/groups.h"
#include "codegen/lowering/emit.h"
#include "runtime/evaluate/host_tensor.h"
#include "support/float_types.h"

namespace sinter {

struct Trials {
  Capabilities played;         // of the device that the CPU plays for all of them
  bool special_values = true;  // they are tried with NaNs, infinities and such too
  bool every_order = true;     // of threads, in the first call; else one a call, each in its turn

  std::deque<Kernel> kernels;
  std::vector<std::string> names;  // for messages

  void add(const GroupText& group, DType dtype, int64_t width, const DeviceDescription& device,
           const TunedForms& forms = {});
};

/// The number in an environment variable; `usual` where the variable is not set.
int number_from(const char* variable, int usual);

/// Changes the inputs of a kernel's group, which random_inputs made.
using InputEditor = std::function<void(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                                       std::vector<HostTensor>& inputs)>;

/// Runs every kernel with every row of values of group_symbols(), the last ones 0 where they are
/// not given, and checks that it gives the evaluator's bits: on ordinary inputs, with the first row
/// in every thread order (`every_order`) and with the others in one, and with special values among
/// them in one.
void run_trials(const Trials& trials, llvm::ArrayRef<std::vector<int64_t>> symbol_values,
                const InputEditor& edit = {});

}  // namespace sinter
