// Where the operands of an op `attention`, and of the ops that stand for it, lie in memory.
#pragma once

#include <optional>

#include "ir/attention_heads.h"
#include "ir/builder.h"
#include "ir/sym_expr.h"

namespace sinter {

/// Keys or values (operand 1 or 2), in elements; nullopt: they have to be copied first.
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

/// The mask (operand 5); nullopt: it has to be copied first.
struct AttentionMaskPlace {
  ValueId root;
  SymExpr offset, sequence, head, token, key;
};
std::optional<AttentionMaskPlace> attention_mask(const Graph& graph, const Op& op);

/// The inputs of a group, by index and ascending, from which row numbers (operand 3 or 4) of its
/// attention are computed.
llvm::SmallVector<uint32_t, 2> row_number_inputs(const Graph& group, ValueId numbers);

/// A mask repeats along all leading axes of an attention's result, or along none. Those of kernels
/// do.
bool is_whole_mask(DimsRef mask, DimsRef result);
/// The operands of `op` with such a mask: one that repeats along some axes is repeated to all.
llvm::SmallVector<ValueId, 6> with_whole_mask(Builder& b, const Op& op);

/// Sequences of an attention, the tokens of each, and the rows of keys of each.
SymExpr attention_sequences(const Op& op);
Dim attention_tokens(const Op& op);
Dim attention_key_rows(const Graph& graph, const Op& op);

}  // namespace sinter
