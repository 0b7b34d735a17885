// The facts that a kernel's CUDA text states about the kernel. The text begins with a comment that
// has the kernel's graph and launch; its function has the parameters and the number of threads.
// Whoever gets plan.json and the text from a file compares the two (check_text).
#pragma once

#include "plan/program.h"

namespace sinter {

/// Symbols of the group's types and attributes in the order of their appearance: the symbols that
/// its kernel has as parameters.
std::vector<SymbolId> symbols_of(const Graph& group);

/// The parameters of the group's function: "const float* x0, ..., long long n0, const
/// __grid_constant__ TensorMap t0", pointers with __restrict__ if `restricted`, except the pointers
/// of `in_place`. Kernels that overlap others must not have __restrict__
/// (kernels/common/launch.cuh).
std::string parameters_of(const Graph& group, size_t symbols, bool restricted,
                          size_t tensor_maps = 0, llvm::ArrayRef<InPlace> in_place = {});

/// Comment lines with the group and the ranges of its symbols, which are called as the function's
/// parameters are: n0, n1, ...
std::string group_comment(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols);
/// Comment lines with `launch`, `overlap`, `minimum_arch`, and the tensor maps and the outputs in
/// place if there are some, each field by its name in plan.json.
std::string launch_comment(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols);

/// The function's head up to its name. `resident_blocks` is the second argument of
/// __launch_bounds__; 0: there is none.
std::string function_head(const Launch& launch, int64_t resident_blocks);

/// `text` begins with the comments of the kernel and has its function, with the kernel's threads
/// and parameters. An error shows the line that the plan asks for and the line of the text.
Status check_text(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols, std::string_view text);

}  // namespace sinter
