#include "kernels/products/product.h"

#include <algorithm>

namespace sinter {
namespace {

constexpr int64_t kTensorMapRowBytes = 16;  // rows begin at multiples of it

bool has_aligned_rows(const StridedMatrix& rows, DType dtype, llvm::ArrayRef<Symbol> symbols) {
  const auto aligned = [&](const SymExpr& elements) {
    return elements.divisor(symbols) * whole_bytes(dtype) % kTensorMapRowBytes == 0;
  };
  return rows.column_stride.is(1) && aligned(rows.row_stride) && aligned(rows.offset);
}

Product::Matrix matrix_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  using Form = Product::Matrix::Form;
  const ValueId id = op.operands[1];
  const Dims& dims = graph[id].type.dims;
  if (op.kind == OpKind::quantized_linear)
    return {Form::codes, dims[0].constant(), op.attrs.get<Dim>(AttrName::size).constant(),
            code_format(op.attrs)};
  // A matrix that no tensor map describes is copied first, and the copy is dense.
  const bool has_columns =
      !tensor_map_rows(graph, id, symbols) && tensor_map_columns(graph, id, symbols);
  const DimsRef of_matrix = DimsRef(dims).take_back(2);
  return {has_columns ? Form::transposed : Form::dense,
          of_matrix[0].constant(),
          of_matrix[1].constant(),
          {}};
}

}  // namespace

Product product_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const SymExpr tokens = volume(DimsRef(op.type.dims).drop_back());
  if (op.kind == OpKind::grouped_outer) {
    const TensorType& y = graph[op.operands[1]].type;
    const int64_t rows = volume(DimsRef(y.dims).drop_back()).upper_bound(symbols);
    return {.elements = y.dtype,
            .tokens = {tokens, tokens.constant()},
            .matrix = {Product::Matrix::Form::transposed, y.dims.back().constant(), 0, {}},
            .groups = {op.type.dims[0].constant(), op.type.dims[1].constant(), rows}};
  }
  return {
      .elements = graph[op.operands[0]].type.dtype,
      .tokens = {tokens, std::max<int64_t>(1, tokens.upper_bound(symbols))},
      .matrix = matrix_of(graph, op, symbols),
      .groups = {op.kind == OpKind::grouped_linear ? graph[op.operands[1]].type.dims[0].constant()
                                                   : 0}};
}

std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols) {
  const TensorType& type = graph[id].type;
  std::optional<StridedMatrix> rows;
  if (type.rank() == 2)
    rows = strided_rows(graph, id);
  else if (is_dense(graph, id))
    rows = {root_of(graph, id), 0, SymExpr(type.dims.back()), 1};
  if (!rows || !has_aligned_rows(*rows, type.dtype, symbols)) return std::nullopt;
  return rows;
}

std::optional<StridedMatrix> tensor_map_columns(const Graph& graph, ValueId id,
                                                llvm::ArrayRef<Symbol> symbols) {
  const TensorType& type = graph[id].type;
  const size_t rank = type.rank();
  if (rank != 2 && rank != 3) return std::nullopt;
  const auto view = strided_view(graph, id, type.dims);
  if (!view) return std::nullopt;
  const StridedMatrix columns{view->root, view->offset, view->strides[rank - 1],
                              view->strides[rank - 2]};
  if (rank == 3 && !type.dims[0].is(1) &&
      view->strides[0] != columns.row_stride * SymExpr(type.dims[2]))
    return std::nullopt;
  if (!has_aligned_rows(columns, type.dtype, symbols)) return std::nullopt;
  return columns;
}

}  // namespace sinter
