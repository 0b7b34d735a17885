#include "ir/attention_operands.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/integers.h"

namespace sinter {

TensorType token_heads_type(const TensorType& q, int64_t heads) {
  Dims dims(DimsRef(q.dims).drop_back(2));
  dims.append({Dim(heads), q.dims[q.rank() - 2]});
  return {DType::f32, dims};
}

bool is_attention_gradient(const Op& op) {
  return op.kind == OpKind::attention_query_gradient || op.kind == OpKind::attention_key_gradient ||
         op.kind == OpKind::attention_value_gradient;
}

size_t mask_operand(const Op& op) {
  return is_attention_gradient(op) ? kGradientMaskOperand : kMaskOperand;
}
bool has_mask(const Op& op) { return operands_before_seed(op) > mask_operand(op); }

bool is_dropout_seed(const Op& op, size_t operand) { return operand == operands_before_seed(op); }
std::optional<StridedView> dropout_seed(const Graph& graph, const Op& op) {
  return strided_view(graph, op.operands.back(), {});
}

std::optional<AttentionRowsPlace> attention_rows(const Graph& graph, const Op& op, size_t operand) {
  const DimsRef own = graph[op.operands[operand]].type.dims;
  const AttentionHeads heads = attention_heads(graph, op);
  const bool of_keys = operand == 1 || operand == 2;
  const int64_t count = of_keys ? heads.kv_count : heads.count;
  const int64_t width = own.back().constant() / count;
  Dims dims(own.drop_back());
  dims.append({Dim(count), Dim(width)});
  const auto view = strided_view(graph, op.operands[operand], dims);
  if (!view || (width > 1 && !view->strides.back().is(1))) return std::nullopt;
  const size_t batch = own.size() - 2;
  const auto sequence = joined_stride(*view, dims, batch);
  if (!sequence) return std::nullopt;
  return AttentionRowsPlace{view->root, view->offset, *sequence, view->strides[batch],
                            view->strides[batch + 1]};
}

bool is_whole_mask(DimsRef mask, DimsRef result) {
  const DimsRef leading = mask.drop_back(3);
  return leading == result.drop_back(2) || llvm::all_of(leading, [](Dim dim) { return dim.is(1); });
}

std::optional<AttentionMaskPlace> mask_place(const Graph& graph, ValueId mask) {
  const DimsRef dims = graph[mask].type.dims;
  const size_t batch = dims.size() - 3;
  const auto view = strided_view(graph, mask, dims);
  if (!view) return std::nullopt;
  const auto sequence = joined_stride(*view, dims, batch);
  if (!sequence) return std::nullopt;
  return AttentionMaskPlace{view->root,
                            view->offset,
                            *sequence,
                            view->strides[batch],
                            view->strides[batch + 1],
                            view->strides[batch + 2]};
}

std::optional<AttentionMaskPlace> attention_mask(const Graph& graph, const Op& op, size_t operand) {
  const ValueId mask = op.operands[operand];
  if (!is_whole_mask(graph[mask].type.dims, graph[op.operands[0]].type.dims)) return std::nullopt;
  return mask_place(graph, mask);
}

Dims mask_tile_dims(DimsRef mask, int64_t tile_tokens, int64_t tile_keys,
                    llvm::ArrayRef<Symbol> symbols) {
  const size_t batch = mask.size() - 2;
  const auto tiles = [&](Dim extent, int64_t of_tile) {
    return Dim(ceil_div(SymExpr(extent).upper_bound(symbols), of_tile));
  };
  Dims dims(mask.take_front(batch));
  dims.append({tiles(mask[batch], tile_tokens), tiles(mask[batch + 1], tile_keys)});
  return dims;
}

std::optional<AttentionQueriesPlace> attention_queries(const Graph& graph, const Op& op) {
  const DimsRef dims = graph[op.operands[0]].type.dims;
  const auto view = strided_view(graph, op.operands[0], dims);
  if (!view || (!dims.back().is(1) && !view->strides.back().is(1))) return std::nullopt;
  const auto row = joined_stride(*view, dims, dims.size() - 1);
  if (!row) return std::nullopt;
  return AttentionQueriesPlace{view->root, view->offset, *row};
}

llvm::SmallVector<uint32_t, 2> row_number_inputs(const Graph& group, ValueId numbers) {
  std::vector<bool> is_read(group.size(), false);
  is_read[numbers.index] = true;
  for (uint32_t i = numbers.index + 1; i-- > 0;)
    if (is_read[i])
      for (ValueId operand : group.ops()[i].operands) is_read[operand.index] = true;
  llvm::SmallVector<uint32_t, 2> inputs;
  for (uint32_t k = 0; k < group.inputs.size(); ++k)
    if (is_read[group.inputs[k].index]) inputs.push_back(k);
  return inputs;
}

llvm::SmallVector<ValueId, 7> with_whole_mask(Builder& b, const Op& op) {
  llvm::SmallVector<ValueId, 7> operands(op.operands.begin(), op.operands.end());
  const size_t place = mask_operand(op);
  const Dims queries = b.type(operands[0]).dims;
  if (!has_mask(op) || is_whole_mask(b.type(operands[place]).dims, queries)) return operands;
  Dims dims(DimsRef(queries).drop_back(2));
  llvm::append_range(dims, DimsRef(b.type(operands[place]).dims).take_back(3));
  operands[place] = b.broadcast(operands[place], dims, op.name + ".mask");
  return operands;
}

bool gradient_addresses(const Graph& graph, const Op& op, size_t operand) {
  if (is_dropout_seed(op, operand)) return dropout_seed(graph, op).has_value();
  if (operand < 3 || operand == kGradOperand) return attention_rows(graph, op, operand).has_value();
  if (operand == kLogSumOperand || operand == kDeltaOperand)
    return is_dense(graph, op.operands[operand]);
  return operand < kGradientMaskOperand || attention_mask(graph, op, operand).has_value();
}

SymExpr attention_sequences(const Op& op) { return volume(DimsRef(op.type.dims).drop_back(2)); }
Dim attention_tokens(const Op& op) { return op.type.dims[op.type.rank() - 2]; }
Dim attention_key_rows(const Graph& graph, const Op& op) {
  const TensorType& keys = graph[op.operands[1]].type;
  return keys.dims[keys.rank() - 2];
}

}  // namespace sinter
