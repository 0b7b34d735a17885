// The host evaluator's functions, one per class of ops; inner interface of host_eval*.cpp.
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
    return fail(fmt::format("{}: {}", op_info(op.kind).name, what), "%" + op.name, std::move(hint));
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

Result<HostView> eval_generator(const OpCall& call);
Result<HostView> eval_view(const OpCall& call);
Result<HostView> eval_elementwise(const OpCall& call);
Result<HostView> eval_cast(const OpCall& call);
Result<HostView> eval_where(const OpCall& call);
Result<HostView> eval_concat(const OpCall& call);
Result<HostView> eval_embedding(const OpCall& call);
Result<HostView> eval_append(const OpCall& call);
Result<HostView> eval_reduce(const OpCall& call);
Result<HostView> eval_linear(const OpCall& call);
Result<HostView> eval_matvec(const OpCall& call);
Result<HostView> eval_einsum(const OpCall& call);
Result<HostView> eval_attention(const OpCall& call);
Result<HostView> eval_attention_few(const OpCall& call);
Result<HostView> eval_sample(const OpCall& call);

}  // namespace sinter
