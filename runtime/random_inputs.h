// Tensors for runs whose inputs do not matter but must repeat: the same seed gives the same bytes
// on every machine.
#pragma once

#include "ir/graph.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

struct RandomRange {
  double scale = 1;           // floats: standard deviation of a bell of mean 0
  int64_t low = 0, high = 1;  // integers: both inclusive
};
Result<HostTensor> random_tensor(DType dtype, std::vector<int64_t> dims, uint64_t seed,
                                 const RandomRange& range = {});

/// One tensor per input of an entry's graph, all ids inside their tables. Integer inputs of role
/// `slot` and `last` count up from 0; of role `first`, they are the first token of each of a few
/// sequences; of role `id` and `target`, numbers below the table's number of rows; others are 0 ..
/// 7. An error if a state has fewer rows than there are tokens.
Result<std::vector<HostTensor>> random_inputs(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                                              llvm::ArrayRef<int64_t> symbol_values, uint64_t seed);

}  // namespace sinter
