// The maps of coordinates through views and broadcasting.
#include "ir/index_map.h"

namespace sinter {

/// A view, the extents of what it reads, and which of its elements is read.
struct ViewRead {
  const Op& view;
  DimsRef from;
  const IndexMap& coords;
  DimsRef extents;
};

/// The coordinates of the view's operand. Every view has a map: through_NAME.
using ViewMap = IndexMap(const ViewRead&);
#define SINTER_OP(name, ...) ViewMap through_##name;
#include "ir/ops.def"

namespace {

IndexMap no_view(const ViewRead& read) {
  SINTER_CHECK(false, "{} is not a view", op_info(read.view.kind).name);
}

/// The map of each view, by OpKind. A view without one does not link.
constexpr ViewMap* kViewMaps[] = {
#define SINTER_OP(name, op_class, ...)                \
  [] {                                                \
    if constexpr (OpClass::op_class == OpClass::view) \
      return through_##name;                          \
    else                                              \
      return no_view;                                 \
  }(),
#define SINTER_ELEMENTWISE(...) no_view,
#include "ir/ops.def"
};

}  // namespace

IndexMap through_reshape(const ViewRead& read) {
  return delinearize(read.from, linearize(read.view.type.dims, read.coords), read.extents);
}

IndexMap through_transpose(const ViewRead& read) {
  const auto& axes = read.view.attrs.get<std::vector<int64_t>>(AttrName::axes);
  IndexMap result(read.coords.size());
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = read.coords[i];
  return result;
}

IndexMap through_slice(const ViewRead& read) {
  IndexMap result = read.coords;
  result[read.view.attrs.get<int64_t>(AttrName::axis)] +=
      IndexExpr(SymExpr(read.view.attrs.get<int64_t>(AttrName::begin)));
  return result;
}

IndexMap through_broadcast(const ViewRead& read) {
  return broadcast_coords(read.from, read.view.type.dims, read.coords);
}

IndexMap broadcast_coords(DimsRef from, DimsRef to, const IndexMap& coords) {
  IndexMap result(from.size());
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].is(1) || to[lead + i].is(1)) result[i] = coords[lead + i];
  return result;
}

IndexMap through_view(const Graph& graph, ValueId view, const IndexMap& coords, DimsRef extents) {
  const Op& op = graph[view];
  const Dims& from = graph[op.operands[0]].type.dims;
  return kViewMaps[static_cast<size_t>(op.kind)]({op, from, coords, extents});
}

Access resolve_access(const Graph& graph, ValueId id, IndexMap coords, DimsRef extents) {
  while (op_class(graph[id]) == OpClass::view) {
    coords = through_view(graph, id, coords, extents);
    id = graph[id].operands[0];
  }
  return {id, std::move(coords)};
}

}  // namespace sinter
