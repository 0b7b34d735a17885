#include "ir/side_results.h"

#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"

namespace sinter {

std::optional<SideOp> as_block_sums(const Graph& graph, ValueId id) {
  const Op& sum = graph[id];
  if (sum.kind != OpKind::reduce_sum || sum.type.dtype != DType::f32) return std::nullopt;
  const auto& axes = sum.attrs.get<std::vector<int64_t>>(AttrName::axes);
  const Dims& dims = graph[sum.operands[0]].type.dims;
  if (axes.size() != 1 || !dims[static_cast<size_t>(axes[0])].is_constant()) return std::nullopt;
  const auto axis = static_cast<size_t>(axes[0]);
  const ValueId wide = same_elements(graph, sum.operands[0]);
  if (graph[wide].kind != OpKind::cast) return std::nullopt;
  const ValueId source = same_elements(graph, graph[wide].operands[0]);
  const TensorType& type = graph[source].type;
  if (type.rank() < 2 || dtype_info(type.dtype).bits != 16) return std::nullopt;
  const Dim own_rows = type.dims[type.rank() - 2];
  const int64_t rows = dims[axis].constant();
  if (rows < 1 || !own_rows.is_constant() || own_rows.constant() % rows != 0 ||
      volume(DimsRef(dims).drop_front(axis + 1)) != SymExpr(type.dims.back()))
    return std::nullopt;
  return SideOp{source, wide, rows};
}

std::optional<SideOp> as_placed_value(const Graph& graph, ValueId id) {
  const Op& op = graph[id];
  if (op.kind != OpKind::copy && !places_part(op)) return std::nullopt;
  if (places_part(op)) {
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const auto is_constant = [](Dim dim) { return dim.is_constant(); };
    if (!llvm::all_of(DimsRef(op.type.dims).drop_front(axis), is_constant)) return std::nullopt;
  }
  const ValueId source = same_elements(graph, op.operands[0]);
  return SideOp{source, source};
}

std::optional<SideOp> as_column_runs(const Graph& graph, ValueId id) {
  const Op& op = graph[id];
  if (op.kind != OpKind::run_sums) return std::nullopt;
  const ValueId source = root_of(graph, op.operands[0]);
  return SideOp{source, source, op.attrs.get<int64_t>(AttrName::runs)};
}

std::optional<SideOp> as_side_result(SideKind kind, const Graph& graph, ValueId id) {
  switch (kind) {
#define X(kind, find)  \
  case SideKind::kind: \
    return find(graph, id);
    SINTER_SIDE_RESULTS(X)
#undef X
  }
  return std::nullopt;
}

}  // namespace sinter
