// Where the operands of an op `attention`, and of the ops that stand for it, lie in memory.
#pragma once

#include <optional>

#include "ir/attention_heads.h"
#include "ir/builder.h"
#include "ir/contraction.h"
#include "ir/sym_expr.h"

namespace sinter {

/// Operands of the gradients of attention, after the attention's own operands.
constexpr size_t kGradOperand = 5, kLogSumOperand = 6, kDeltaOperand = 7, kGradientMaskOperand = 8;
/// f32 [..., heads, N]: a number for each head of each token of q [..., N, heads*hd].
TensorType token_heads_type(const TensorType& q, int64_t heads);
/// The op is a gradient of attention.
bool is_attention_gradient(const Op& op);

/// Keys or values (operand 1 or 2), or of a gradient queries and `grad` too, in elements; nullopt:
/// they have to be copied first.
struct AttentionRowsPlace {
  ValueId root;
  SymExpr offset, sequence, row, head;  // the first element, and the steps to the next
};
std::optional<AttentionRowsPlace> attention_rows(const Graph& graph, const Op& op, size_t operand);

/// The queries as rows, one for each token of all sequences; nullopt: they have to be copied first.
struct AttentionQueriesPlace {
  ValueId root;
  SymExpr offset, row;
};
std::optional<AttentionQueriesPlace> attention_queries(const Graph& graph, const Op& op);

/// A mask [..., heads, N, R]; nullopt: it has to be copied first.
struct AttentionMaskPlace {
  ValueId root;
  SymExpr offset, sequence, head, token, key;
};
std::optional<AttentionMaskPlace> mask_place(const Graph& graph, ValueId mask);
/// The mask of an attention (operand 5), or the summary of its tiles (operand 6).
constexpr size_t kMaskOperand = 5, kMaskTilesOperand = 6;
/// The mask's operand of an attention or its gradient, which may be absent.
size_t mask_operand(const Op& op);
bool has_mask(const Op& op);
std::optional<AttentionMaskPlace> attention_mask(const Graph& graph, const Op& op,
                                                 size_t operand = kMaskOperand);
/// The extents of mask_tiles of a mask.
Dims mask_tile_dims(DimsRef mask, int64_t tile_tokens, int64_t tile_keys,
                    llvm::ArrayRef<Symbol> symbols);

/// The inputs of a group, by index and ascending, from which an op's row numbers are computed:
/// operand 3 or 4 of an attention, the experts of an expert_linear.
llvm::SmallVector<uint32_t, 2> row_number_inputs(const Graph& group, ValueId numbers);

/// A kernel of the gradients can read the operand where it is.
bool gradient_addresses(const Graph& graph, const Op& op, size_t operand);

/// A mask repeats along all leading axes of an attention's result, or along none, as kernels need
/// it.
bool is_whole_mask(DimsRef mask, DimsRef result);
/// The operands of `op` with such a mask: one that repeats along some axes is repeated to all.
llvm::SmallVector<ValueId, 7> with_whole_mask(Builder& b, const Op& op);

/// The seed of an attention's dropout, one number in memory; nullopt: it has to be copied first.
std::optional<StridedView> dropout_seed(const Graph& graph, const Op& op);
/// The operand, one of the op's, is the seed of its dropout: without one no operand is behind the
/// others.
bool is_dropout_seed(const Op& op, size_t operand);

/// Sequences of an attention, the tokens of each, and the rows of keys of each.
SymExpr attention_sequences(const Op& op);
Dim attention_tokens(const Op& op);
Dim attention_key_rows(const Graph& graph, const Op& op);

}  // namespace sinter
