#include "ir/row_numbers.h"

#include "ir/op_roles.h"

namespace sinter {
namespace {

/// The value of a product of extents with every symbol at its lower bound.
int64_t least(const SymExpr& rows, llvm::ArrayRef<Symbol> symbols) {
  std::vector<int64_t> lows;
  for (const Symbol& symbol : symbols) lows.push_back(symbol.low);
  return rows.evaluate(lows).value_or(0);
}

/// a <= b for all values of the symbols.
bool at_most(Dim a, const SymExpr& b, llvm::ArrayRef<Symbol> symbols) {
  if (SymExpr(a) == b) return true;
  if (!a.is_constant() && symbols[a.symbol().index].at_most &&
      SymExpr(Dim(*symbols[a.symbol().index].at_most)) == b)
    return true;
  return SymExpr(a).upper_bound(symbols) <= least(b, symbols);
}

}  // namespace

size_t named_axis(const Op& op, const TensorType& table) {
  if (op.kind == OpKind::gather) return static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  return reads_cache(op) ? table.rank() - 2 : 0;
}

IndexMap number_coords(const Op& gather, const IndexMap& coords) {
  return gather.kind == OpKind::gather ? coords : IndexMap(coords.begin(), coords.end() - 1);
}

std::optional<SymExpr> named_rows(const Graph& graph, const Op& op, size_t operand) {
  const OperandRole role = operand_role(op, operand);
  if (role.rows_of == OperandRole::kResult) return op.type.dims[0];
  const bool position = role.kind == OperandRole::first || role.kind == OperandRole::last;
  if (position && op.attrs.is_set(AttrName::any_range)) return std::nullopt;
  if (role.is_address()) {
    const TensorType& table = graph[op.operands[role.rows_of]].type;
    if (role.kind == OperandRole::group || op.kind == OpKind::embedding)
      return volume(DimsRef(table.dims).drop_back());
    return table.dims[named_axis(op, table)];
  }
  const ValueId row = operand_with(op, OperandRole::row);
  if (position && row.valid()) return graph[row].type.dims.back();
  return std::nullopt;
}

bool is_checked(const Op& op) { return op.attrs.is_set(AttrName::checked); }

bool clamps_rows(const Op& op) { return is_checked(op) || op.attrs.is_set(AttrName::any_range); }

std::vector<RowNumbers> row_numbers(const Graph& graph) {
  std::vector<RowNumbers> found;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    for (size_t k = 0; k < op.operands.size(); ++k)
      if (const std::optional<SymExpr> rows = named_rows(graph, op, k)) {
        const OperandRole role = operand_role(op, k);
        found.push_back(
            {{i}, op.operands[k], *rows, role.is_address(), role.kind == OperandRole::group});
      }
  }
  return found;
}

std::optional<size_t> find_outside(llvm::ArrayRef<int32_t> values, int64_t rows, bool ends) {
  int32_t least = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < least || values[i] >= rows + (ends ? 1 : 0)) return i;
    if (ends) least = values[i];
  }
  return std::nullopt;
}

bool are_known(const Graph& graph, ValueId id, const SymExpr& rows, bool ends,
               llvm::ArrayRef<Symbol> symbols) {
  const Op& op = graph[root_of(graph, id)];
  if (ends) {
    // A view may change the order of the values.
    if (root_of(graph, id) != id) return false;
    if (op.kind == OpKind::run_ends) return volume(graph[op.operands[0]].type.dims) == rows;
    if (op.kind != OpKind::literal) return false;
    std::vector<int32_t> values;
    for (const Number& number : op.attrs.get<std::vector<Number>>(AttrName::values))
      values.push_back(number.to_i32());
    return !find_outside(values, least(rows, symbols), true);
  }
  const auto names_row = [&](const Number& number) {
    const int32_t row = number.to_i32();
    return row >= 0 && row < least(rows, symbols);
  };
  switch (op.kind) {
    case OpKind::iota:
      return at_most(op.type.dims[static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis))], rows,
                     symbols);
    case OpKind::constant:
      return names_row(op.attrs.get<Number>(AttrName::value));
    case OpKind::literal:
      return llvm::all_of(op.attrs.get<std::vector<Number>>(AttrName::values), names_row);
    case OpKind::top_k:  // positions along the last axis
      return at_most(graph[op.operands[0]].type.dims.back(), rows, symbols);
    case OpKind::sorted_positions:
    case OpKind::sorted_places: {  // each position once
      const SymExpr count = volume(op.type.dims);
      return count == rows || count.upper_bound(symbols) <= least(rows, symbols);
    }
    default:
      return false;
  }
}

bool are_given(const Graph& graph, const RowNumbers& numbers) {
  return graph[root_of(graph, numbers.values)].kind == OpKind::input;
}

bool are_given_addresses(const Graph& graph, const RowNumbers& numbers) {
  return numbers.address && are_given(graph, numbers);
}

std::vector<RowNumbers> numbers_to_check(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  std::vector<RowNumbers> found = row_numbers(graph);
  std::erase_if(found, [&](const RowNumbers& numbers) {
    return !is_checked(graph[numbers.op]) || are_given(graph, numbers) ||
           are_known(graph, numbers.values, numbers.rows, numbers.ends, symbols);
  });
  return found;
}

}  // namespace sinter
