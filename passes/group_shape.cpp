#include "passes/group_shape.h"

namespace sinter {
namespace {

std::optional<ColumnSpace> columns_of(const FusionProblem& problem, ValueId id) {
  const Graph& graph = problem.graph();
  const Op& op = graph[id];
  if (op_class(op) != OpClass::reduce) return std::nullopt;
  return column_space(graph[op.operands[0]].type.dims,
                      op.attrs.get<std::vector<int64_t>>(AttrName::axes));
}

}  // namespace

GroupShape shape_of(const FusionProblem& problem, ValueId id) {
  const Graph& graph = problem.graph();
  const OpFacts& facts = problem.facts(id);
  GroupShape shape;
  shape.prefix = facts.dims;
  shape.closed = facts.closed;
  if (facts.anchor) {
    shape.anchor = id;
    shape.prefix.resize(1, Dim(1));
    shape.row_prefix = 1;
    shape.classes = graph[graph[id].operands[1]].type.dims[0].constant();
  }
  shape.columns = columns_of(problem, id);
  shape.lone = facts.reduces && !facts.kept_axes && !shape.columns;
  shape.reduced = facts.reduced_upper_bound;
  if (facts.reduces) {
    shape.row_prefix = facts.kept_axes.value_or(0);
    shape.prefix.resize(*shape.row_prefix, Dim(1));
  }
  shape.rows = row_axes(problem, id, shape);
  return shape;
}

uint32_t row_axes(const FusionProblem& problem, Members members, const GroupShape& shape) {
  if (shape.row_prefix) return *shape.row_prefix;
  // Elementwise groups may cut their space anywhere in the shared axes: rows as short as they can
  // be while still worth a few vector accesses.
  constexpr double kLeastWidth = 256;  // elements
  auto rows = static_cast<uint32_t>(shape.prefix.size());
  const auto narrow = [&](ValueId id) {
    double width = 1;
    for (Dim dim : DimsRef(problem.facts(id).dims).drop_front(rows)) width *= problem.extent(dim);
    return width < kLeastWidth;
  };
  while (rows > 0 && llvm::all_of(members, narrow)) --rows;
  return rows;
}

}  // namespace sinter
