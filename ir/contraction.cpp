#include "ir/contraction.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/index_map.h"
#include "ir/infer.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

enum class Role : uint8_t { batch, m, n, k };

/// One axis of the product's iteration space, with its step in every operand.
struct Axis {
  Role role;
  SymExpr extent, a, b, c;
  Dim dim;
};

struct Product {
  EinsumSpec spec;
  ValueId a, b, bias;
};

/// A linear is "..k,nk->..n".
Product product_of(const Op& op) {
  Product product{{}, op.operands[0], op.operands[1], {}};
  if (op.kind == OpKind::einsum) {
    product.spec = *parse_einsum(op.attrs.get<std::string>(AttrName::spec));
    return product;
  }
  SINTER_CHECK(is_without_order(op, OpKind::linear), "{} is no product", algorithm_name(op));
  product.bias = operand_with(op, OperandRole::bias);
  const int rank = static_cast<int>(op.type.rank());
  for (int i = 0; i + 1 < rank; ++i)
    product.spec.axes.push_back({static_cast<char>('A' + i), i, -1, i});
  product.spec.axes.push_back({'k', rank - 1, 1, -1});
  product.spec.axes.push_back({'n', -1, 0, rank - 1});
  return product;
}

Role role_of(const EinsumAxis& axis) {
  if (axis.result < 0) return Role::k;
  if (axis.a < 0) return Role::n;
  return axis.b < 0 ? Role::m : Role::batch;
}

/// Position of the operand's element in its root, as coefficients of the product's axes; nullopt if
/// it is not affine.
std::optional<IndexExpr> place(const Graph& graph, ValueId operand, const EinsumSpec& spec,
                               int EinsumAxis::*slot, DimsRef extents, ValueId& root) {
  IndexMap coords(graph[operand].type.rank());
  for (uint32_t i = 0; i < spec.axes.size(); ++i)
    if (spec.axes[i].*slot >= 0) coords[spec.axes[i].*slot] = IndexExpr::variable(i);
  Access access = resolve_access(graph, operand, std::move(coords), extents);
  root = access.root;
  if (op_class(graph[root]) == OpClass::generator) return std::nullopt;  // not in memory
  IndexExpr offset = linearize(graph[root].type.dims, access.coords);
  if (!offset.is_affine()) return std::nullopt;
  return offset;
}

/// Brings the axes of a role together, in their order, and joins those that step together in every
/// operand. Dense operands in the order of gemm_order so have one summed axis.
void join(llvm::SmallVector<Axis, 8>& axes) {
  llvm::stable_sort(axes, [](const Axis& x, const Axis& y) { return x.role < y.role; });
  for (size_t i = 0; i + 1 < axes.size();) {
    Axis &outer = axes[i], &inner = axes[i + 1];
    const bool together = outer.role == inner.role && outer.a == inner.a * inner.extent &&
                          outer.b == inner.b * inner.extent && outer.c == inner.c * inner.extent;
    if (!together) {
      ++i;
      continue;
    }
    inner.extent = outer.extent * inner.extent;
    axes.erase(axes.begin() + i);
  }
}

/// Takes the axis of `role` that becomes the matrix's own: the longest one with a step of 1 where
/// that is needed, else the longest. An absent role is an axis of extent 1.
Axis take(llvm::SmallVector<Axis, 8>& axes, Role role, llvm::ArrayRef<Symbol> symbols) {
  int best = -1;
  int64_t longest = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].role != role) continue;
    const int64_t extent = axes[i].extent.upper_bound(symbols);
    if (extent > longest) best = static_cast<int>(i), longest = extent;
  }
  if (best < 0) return Axis{role, SymExpr(1), SymExpr(1), SymExpr(1), SymExpr(1), Dim(1)};
  Axis axis = axes[best];
  axes.erase(axes.begin() + best);
  return axis;
}

/// Steps that a matrix product can take: one of them 1, and no line repeated (a step of 0).
bool matrix(StridedMatrix& out, ValueId root, const SymExpr& offset, const SymExpr& rows,
            SymExpr row_stride, const SymExpr& columns, SymExpr column_stride) {
  if (rows.is(0) || columns.is(0)) {  // no element at all
    out = {root, offset, columns, SymExpr(1)};
    return true;
  }
  // The step of an axis of one element is free: over all of the other axis.
  if (columns.is(1) && row_stride.is(1))
    column_stride = rows;
  else if (columns.is(1))
    column_stride = 1;
  if (rows.is(1) && column_stride.is(1))
    row_stride = columns;
  else if (rows.is(1))
    row_stride = 1;
  if (!row_stride.is(1) && !column_stride.is(1)) return false;
  if (row_stride.is(0) || column_stride.is(0)) return false;
  out = {root, offset, std::move(row_stride), std::move(column_stride)};
  return true;
}

}  // namespace

std::optional<ContractionForm> contraction_form(const Graph& graph, const Op& op,
                                                llvm::ArrayRef<Symbol> symbols) {
  const Product product = product_of(op);
  Dims extents;
  for (const EinsumAxis& axis : product.spec.axes)
    extents.push_back(axis.a >= 0 ? graph[product.a].type.dims[axis.a]
                                  : graph[product.b].type.dims[axis.b]);
  ContractionForm form;
  const bool empty = llvm::is_contained(op.type.dims, Dim(0));
  ValueId a_root, b_root;
  const auto a = place(graph, product.a, product.spec, &EinsumAxis::a, extents, a_root);
  const auto b = place(graph, product.b, product.spec, &EinsumAxis::b, extents, b_root);
  if (!a || !b) return std::nullopt;
  IndexMap result(op.type.rank());
  for (uint32_t i = 0; i < product.spec.axes.size(); ++i)
    if (product.spec.axes[i].result >= 0)
      result[product.spec.axes[i].result] = IndexExpr::variable(i);
  const IndexExpr c = linearize(op.type.dims, result);
  if (product.bias.valid()) {
    form.bias = root_of(graph, product.bias);
    if (op_class(graph[form.bias]) == OpClass::generator ||
        graph[form.bias].type != graph[product.bias].type)
      return std::nullopt;
    if (form.bias != product.bias) {  // a view of the same shape may still read elsewhere
      const Access access =
          resolve_access(graph, product.bias, identity_map(1), graph[product.bias].type.dims);
      if (!(access.coords == identity_map(1))) return std::nullopt;
    }
  }
  if (empty) {  // no element to compute, so that any strides will do
    for (StridedMatrix* matrix : {&form.a, &form.b, &form.c})
      matrix->row_stride = matrix->column_stride = 1;
    form.a.root = a_root, form.b.root = b_root;
    return form;  // m, n and k are 0
  }
  llvm::SmallVector<Axis, 8> axes;
  for (uint32_t i = 0; i < product.spec.axes.size(); ++i) {
    if (extents[i].is(1)) continue;
    axes.push_back({role_of(product.spec.axes[i]), SymExpr(extents[i]), a->coefficient(i),
                    b->coefficient(i), c.coefficient(i), extents[i]});
  }
  join(axes);
  const Axis m = take(axes, Role::m, symbols), n = take(axes, Role::n, symbols);
  const Axis k = take(axes, Role::k, symbols);
  form.m = m.extent, form.n = n.extent, form.k = k.extent;
  if (!matrix(form.a, a_root, a->constant(), form.m, m.a, form.k, k.a) ||
      !matrix(form.b, b_root, b->constant(), form.k, k.b, form.n, n.b) ||
      !matrix(form.c, ValueId(), SymExpr(0), form.m, m.c, form.n, n.c))
    return std::nullopt;
  for (const Axis& axis : axes) {
    if (axis.role == Role::k) return std::nullopt;  // summed axes that do not join
    if (product.bias.valid() && axis.role == Role::n) return std::nullopt;
    form.loops.push_back({axis.extent, axis.a, axis.b, axis.c});
  }
  return form;
}

namespace {

/// The strides of a dense value without elements.
StridedView empty_view(ValueId root, DimsRef dims) {
  StridedView view{root, 0, llvm::SmallVector<SymExpr, 4>(dims.size(), SymExpr(1))};
  for (size_t axis = dims.size(); axis-- > 1;)
    view.strides[axis - 1] = view.strides[axis] * SymExpr(dims[axis]);
  return view;
}

}  // namespace

std::optional<StridedView> strided_view(const Graph& graph, ValueId id, DimsRef dims) {
  const ValueId root = root_of(graph, id);
  if (op_class(graph[root]) == OpClass::generator) return std::nullopt;
  if (volume(dims).is(0)) return empty_view(root, dims);
  const IndexExpr place = linearize(dims, identity_map(dims.size()));
  const Access access =
      resolve_access(graph, id, delinearize(graph[id].type.dims, place, dims), dims);
  const IndexExpr offset = linearize(graph[access.root].type.dims, access.coords);
  if (!offset.is_affine()) return std::nullopt;
  StridedView view{access.root, offset.constant(), {}};
  for (uint32_t axis = 0; axis < dims.size(); ++axis)
    view.strides.push_back(dims[axis].is(1) ? SymExpr(0) : offset.coefficient(axis));
  return view;
}

std::optional<SymExpr> joined_stride(const StridedView& view, DimsRef dims, size_t count) {
  SymExpr stride = 0, extent = 1;  // of the axes joined so far, the last ones
  for (size_t axis = count; axis-- > 0;) {
    if (dims[axis].is(1)) continue;
    if (extent.is(1))
      stride = view.strides[axis];
    else if (view.strides[axis] != stride * extent)
      return std::nullopt;
    extent = extent * SymExpr(dims[axis]);
  }
  return stride;
}

std::optional<StridedMatrix> strided_rows(const Graph& graph, ValueId id) {
  const Dims& dims = graph[id].type.dims;
  if (dims.size() != 2) return std::nullopt;
  const Access access = resolve_access(graph, id, identity_map(2), dims);
  if (op_class(graph[access.root]) == OpClass::generator) return std::nullopt;
  const IndexExpr offset = linearize(graph[access.root].type.dims, access.coords);
  if (!offset.is_affine()) return std::nullopt;
  const SymExpr column_stride = dims[1].is(1) ? SymExpr(1) : offset.coefficient(1);
  if (!column_stride.is(1)) return std::nullopt;
  return StridedMatrix{access.root, offset.constant(), offset.coefficient(0), column_stride};
}

bool is_dense(const Graph& graph, ValueId id) {
  const Dims& dims = graph[id].type.dims;
  const IndexMap own = identity_map(dims.size());
  const Access access = resolve_access(graph, id, own, dims);
  const Op& root = graph[access.root];
  return op_class(root) != OpClass::generator &&
         linearize(root.type.dims, access.coords) == linearize(dims, own);
}

bool can_be_streamed(const Graph& graph, ValueId id) {
  const OpKind root = graph[root_of(graph, id)].kind;
  return (root == OpKind::weight || root == OpKind::input) && is_dense(graph, id);
}

std::vector<int64_t> gemm_order(const Op& op, uint32_t operand) {
  const Product product = product_of(op);
  std::vector<int64_t> order;
  for (Role role : {Role::batch, operand == 0 ? Role::m : Role::n, Role::k})
    for (const EinsumAxis& axis : product.spec.axes)
      if (role_of(axis) == role) order.push_back(operand == 0 ? axis.a : axis.b);
  return order;
}

std::vector<int64_t> inverse_order(llvm::ArrayRef<int64_t> axes) {
  std::vector<int64_t> result(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = static_cast<int64_t>(i);
  return result;
}

}  // namespace sinter
