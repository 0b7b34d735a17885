// The heads of an op `attention`, and of the ops that stand for it.
#pragma once

#include "ir/graph.h"
#include "ir/optional_attribute.h"

namespace sinter {

struct AttentionHeads {
  int64_t count, kv_count;     // query heads, and key heads
  int64_t width, value_width;  // elements of a head of q and keys, and of values

  /// Query heads of a key head.
  int64_t group() const { return count / kv_count; }
};

/// For an op that has passed inference; `keys` and `values` are its operands 1 and 2.
inline AttentionHeads attention_heads(const Attributes& attrs, const TensorType& keys,
                                      const TensorType& values) {
  const int64_t kv_count = attrs.get<int64_t>(AttrName::kv_heads);
  return {attrs.get<int64_t>(AttrName::heads), kv_count, keys.dims.back().constant() / kv_count,
          values.dims.back().constant() / kv_count};
}
/// The axes [..., heads, N, R] of the scores of q [..., N, heads*hd] and keys [..., R,
/// kv_heads*hd].
inline Dims attention_score_dims(const TensorType& q, const TensorType& keys, int64_t heads) {
  Dims dims(DimsRef(q.dims).drop_back(2));
  dims.append({Dim(heads), q.dims[q.rank() - 2], keys.dims[keys.rank() - 2]});
  return dims;
}

inline AttentionHeads attention_heads(const Graph& graph, const Op& op) {
  return attention_heads(op.attrs, graph[op.operands[1]].type, graph[op.operands[2]].type);
}

/// The leading rows that each token sees beside its range.
inline int64_t attention_sink(const Attributes& attrs) {
  return integer_or(attrs, AttrName::sink, 0);
}
/// Operands of an attention or its gradient without the seed of its dropout, which is the last one.
inline size_t operands_before_seed(const Attributes& attrs, size_t operands) {
  return operands - (attrs.has(AttrName::dropout) ? 1 : 0);
}
inline size_t operands_before_seed(const Op& op) {
  return operands_before_seed(op.attrs, op.operands.size());
}

}  // namespace sinter
