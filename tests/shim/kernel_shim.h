// A plan's kernels run on the CPU from their text, and compared with the IR that they compute.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "plan/program.h"
#include "runtime/evaluate/host_tensor.h"
#include "shim/shim_module.h"

namespace sinter {

/// Kernels compiled together. Symbol values are indexed as the program's symbols are.
class KernelShim {
 public:
  /// See ShimModule::prepare.
  static Status prepare();

  /// Kernels of one name count once. With the headers of the kernel library.
  static Result<KernelShim> compile(llvm::ArrayRef<const Kernel*> kernels,
                                    const std::string& prefix = {});

  /// Runs a kernel on memory: one address per input and output of its group.
  Status launch(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                llvm::ArrayRef<const void*> inputs, llvm::ArrayRef<void*> outputs,
                ThreadOrder order = ThreadOrder::ascending) const;

  /// Runs a kernel on copies of `inputs`, each in memory of its exact size, and returns its
  /// outputs: poisoned before, guards checked after. The output of an append is the input that
  /// holds the state, changed in place as on a device; likewise an output of `in_place` is its
  /// input; other inputs must stay as they are.
  Result<std::vector<HostTensor>> run(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                                      llvm::ArrayRef<const HostTensor*> inputs,
                                      ThreadOrder order = ThreadOrder::ascending,
                                      llvm::ArrayRef<InPlace> in_place = {}) const;

 private:
  std::vector<ShimModule> modules_;
};

/// Runs a kernel in these thread orders and compares every result with the evaluation of its group,
/// bit for bit. Then once for each output that its text can write in the memory of an input.
Status check_kernel(const KernelShim& shim, const Kernel& kernel, llvm::ArrayRef<Symbol> symbols,
                    llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<const HostTensor*> inputs,
                    llvm::ArrayRef<ThreadOrder> orders = kThreadOrders);

}  // namespace sinter
