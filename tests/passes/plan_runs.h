// Runs the fused and the unfused plan of a module and compares them.
#pragma once

#include <functional>

#include "driver/compile/compile.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter::test {

/// Changes the random inputs of an entry before a run.
using InputEditor = std::function<void(std::string_view entry, std::vector<HostTensor>& inputs)>;

/// Small values in the symbols' ranges, fit for a run on the host.
std::vector<int64_t> small_symbol_values(llvm::ArrayRef<Symbol> symbols);

/// Runs every entry twice, so that states written by the first call are read by the second, on the
/// host executor with freed buffers poisoned. Outputs and states of the fused plan must equal the
/// unfused plan's bit for bit. They must also equal the results of the module before all passes:
/// bit for bit if it has no contraction, else within a contraction's tolerance. Weights from files
/// are random. Returns the first difference, "" if there is none.
std::string compare_plans(const Module& module, llvm::ArrayRef<int64_t> symbol_values,
                          const CompileOptions& options = {}, const InputEditor& edit = {});

}  // namespace sinter::test
