#include "ir/block_sums.h"

#include "ir/in_place.h"
#include "ir/sym_expr.h"

namespace sinter {

std::optional<BlockSums> as_block_sums(const Graph& graph, ValueId id) {
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
  return BlockSums{source, wide, rows};
}

}  // namespace sinter
