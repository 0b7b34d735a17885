// Operands whose values name rows: the roles id, slot, first, last, target and group of ops.def.
#pragma once

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/sym_expr.h"

namespace sinter {

/// The op allows numbers that name no row (attribute `checked`).
bool is_checked(const Op& op);
/// A token of the attention sees the rows first .. last as far as they are there: the op is
/// checked, or takes any numbers (attribute `any_range`).
bool clamps_rows(const Op& op);

struct RowNumbers {
  ValueId op;
  ValueId values;  // the operand
  SymExpr rows;    // 0 .. rows - 1 name rows
  bool address;    // false: they are only compared
  bool ends;       // they are ends of runs: ascending, 0 .. rows
};

/// The axis of `table`, an operand of the op, whose rows the op's numbers name.
size_t named_axis(const Op& op, const TensorType& table);
/// Where a gather reads the number that the element `coords` of its result is taken by.
IndexMap number_coords(const Op& gather, const IndexMap& coords);

/// The first of the values that is no number of `rows` rows, or no end of a run of them that is
/// followed by others.
std::optional<size_t> find_outside(llvm::ArrayRef<int32_t> values, int64_t rows, bool ends);

/// The number of rows among which the operand's values name one; nullopt: they name none.
std::optional<SymExpr> named_rows(const Graph& graph, const Op& op, size_t operand);

/// The row numbers of all ops of the graph, in order.
std::vector<RowNumbers> row_numbers(const Graph& graph);

/// The values of `id` come from a generator, a choice (top_k) or a sort (sorted_positions,
/// sorted_places, run_ends), and are numbers of `rows` rows, or ends of runs of them, for all
/// values of the symbols. Between them and the op may be views, but not of ends.
bool are_known(const Graph& graph, ValueId id, const SymExpr& rows, bool ends,
               llvm::ArrayRef<Symbol> symbols);

/// The values come from an `input`, perhaps through views. An entry's inputs are checked before the
/// call.
bool are_given(const Graph& graph, const RowNumbers& numbers);

/// The numbers to check after each call of an entry: numbers of checked ops that are neither known
/// nor given in this graph. They are values that are stored in memory, not views of one.
std::vector<RowNumbers> numbers_to_check(const Graph& graph, llvm::ArrayRef<Symbol> symbols);

/// Numbers that a call's inputs give and that kernels use as addresses: somebody must check them
/// before the call, or after it where the op is checked.
bool are_given_addresses(const Graph& graph, const RowNumbers& numbers);

}  // namespace sinter
