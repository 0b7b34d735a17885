// Evaluates IR graphs on the CPU, primitive by primitive, with the roundings and the reduction
// order of the numerics contract. The reference that kernels are compared with bit for bit.
#pragma once

#include "ir/graph.h"
#include "ir/tensor_source.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// Evaluates `graph` with `symbol_values[i]` for symbol i and one tensor per graph input, in order;
/// returns one tensor per output. `graph.inputs` may also name weights and states: every leaf that
/// is used has to be among them. Composites are decomposed first; a caller that evaluates a graph
/// often does that once, with decompose_all. For an op that writes a state the output is the whole
/// new state. Contractions accumulate in float32 in the order of runtime/evaluate/blas.h.
/// `precise`: everything in float64 with no rounding in between, for accuracy checks; float inputs
/// may then be of any float type, float outputs are f32. `source` is asked for `file` ops; null:
/// none are allowed. `missing`: the bytes of elements that a `place` without a base leaves to other
/// parts.
struct EvalOptions {
  bool precise = false;
  const TensorSource* source = nullptr;
  std::byte missing{0};
};
Result<std::vector<HostTensor>> evaluate(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                                         llvm::ArrayRef<int64_t> symbol_values,
                                         llvm::ArrayRef<const HostTensor*> inputs,
                                         const EvalOptions& options = {});

}  // namespace sinter
