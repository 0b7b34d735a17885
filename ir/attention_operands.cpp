#include "ir/attention_operands.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/contraction.h"
#include "ir/integers.h"

namespace sinter {

std::optional<AttentionRowsPlace> attention_rows(const Graph& graph, const Op& op, size_t operand) {
  const DimsRef own = graph[op.operands[operand]].type.dims;
  const AttentionHeads heads = attention_heads(graph, op);
  const int64_t width = operand == 1 ? heads.width : heads.value_width;
  Dims dims(own.drop_back());
  dims.append({Dim(heads.kv_count), Dim(width)});
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
  if (!is_whole_mask(graph[mask].type.dims, op.type.dims)) return std::nullopt;
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

llvm::SmallVector<ValueId, 7> with_whole_mask(Builder& b, const Op& op) {
  llvm::SmallVector<ValueId, 7> operands(op.operands.begin(), op.operands.end());
  if (operands.size() < 6 || is_whole_mask(b.type(operands[kMaskOperand]).dims, op.type.dims))
    return operands;
  Dims dims(DimsRef(op.type.dims).drop_back(2));
  llvm::append_range(dims, DimsRef(b.type(operands[kMaskOperand]).dims).take_back(3));
  operands[kMaskOperand] = b.op(OpKind::broadcast, {operands[kMaskOperand]},
                                Attributes().set(AttrName::dims, dims), op.name + ".mask");
  return operands;
}

SymExpr attention_sequences(const Op& op) { return volume(DimsRef(op.type.dims).drop_back(2)); }
Dim attention_tokens(const Op& op) { return op.type.dims[op.type.rank() - 2]; }
Dim attention_key_rows(const Graph& graph, const Op& op) {
  const TensorType& keys = graph[op.operands[1]].type;
  return keys.dims[keys.rank() - 2];
}

}  // namespace sinter
