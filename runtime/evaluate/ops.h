// The arguments of an op's evaluation, and the evaluations' names. Inner interface of evaluate.cpp
// and of the files that define evaluations.
#pragma once

#include "ir/graph.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/evaluate/host_view.h"

namespace sinter {

/// One op with its operands' values. The op is verified; extents are concrete.
struct OpCall {
  const Graph& graph;
  const Op& op;
  llvm::SmallVector<HostView, 3> operands;
  Extents dims;     // of the result
  Storage storage;  // of the result: its dtype's, or f64 for a float type in precise evaluation
  const EvalOptions& options;

  const TensorType& operand_type(size_t i) const { return graph[op.operands[i]].type; }
  tl::unexpected<Error> error(std::string what, std::string hint = {}) const {
    return fail(fmt::format("{}: {}", algorithm_name(op), what), "%" + op.name, std::move(hint));
  }
};

/// Dense memory for a result, to be filled through `out`.
struct NewValue {
  HostView view;
  std::byte* out = nullptr;
};
Result<NewValue> allocate(llvm::ArrayRef<int64_t> dims, Storage storage);
/// A dense copy in `storage`.
Result<HostView> copy_dense(const HostView& view, Storage storage);

/// The op's result. Every op has one but leaves, which are inputs, and composites, which are
/// decomposed before: evaluate_NAME.
using Evaluator = Result<HostView>(const OpCall&);
#define SINTER_OP(name, ...) Evaluator evaluate_##name;
#define SINTER_ELEMENTWISE(name, ...) Evaluator evaluate_##name;
#include "ir/ops.def"
/// In the order of additions that the attribute `order` names.
#define SINTER_ORDER(name, ...) Evaluator evaluate_##name;
#include "ir/orders.def"

}  // namespace sinter
