// tiled_linear, tiled_codes, grouped_linear and grouped_outer. Constraints:
//   C26  operands of 16-bit elements of one type, rows of a multiple of 8 elements, at least one of
//   each
//   C32  tiled_codes: x of 16-bit elements, no splits
//   C35  grouped_linear: x [N ..., K], w [G, M, K] of one type of 16 bits and ends i32 [G], at
//   least one run and one row of a matrix; rows as C26; fewer than 2^31 rows of x and of
//   all matrices
//   C36  grouped_outer: x [N ..., M] and y [N ..., K] of one type of 16 bits and ends i32 [G], at
//   least one run; rows as C26; fewer than 2^31 rows of x and of
//   all matrices
#include "ir/inference.h"
#include "ir/sym_expr.h"
#include "kernels/products/order.h"

namespace sinter {

Status check_tiled_linear(const Inference& op, const TensorType&) {
  const DType elements = op.operands[0].dtype;
  if (dtype_info(elements).bits != 16)
    return op.reject(26, fmt::format("{} elements, must have 16 bits", to_string(elements)));
  if (op.operands[1].dtype != elements)
    return op.reject(26, fmt::format("x {}, w {}: must have one type", op.show(op.operands[0]),
                                     op.show(op.operands[1])));
  const Dims& w = op.operands[1].dims;
  if (w[0].is(0) || !is_tiled_linear_length(w[1].constant()))
    return op.reject(26, fmt::format("w {}: rows of tiled_linear have a multiple of {} elements",
                                     op.show(op.operands[1]), kTiledLinearMultiple));
  return {};
}

Status check_tiled_codes(const Inference& op, const TensorType&) {
  const DType elements = op.operands[0].dtype;
  if (dtype_info(elements).bits != 16)
    return op.reject(32, fmt::format("{} elements, must have 16 bits", to_string(elements)));
  if (op.attrs.has(AttrName::splits)) return op.reject(32, "splits, must have none");
  return {};
}

namespace {

constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;

/// Numbers of 31 bits name `tokens` rows, and the rows of `groups` matrices of `rows` rows.
bool have_numbers(const SymExpr& tokens, int64_t groups, int64_t rows,
                  llvm::ArrayRef<Symbol> symbols) {
  return tokens.upper_bound(symbols) <= kMaxRows && groups <= kMaxRows / rows;
}

}  // namespace

Result<TensorType> infer_grouped_linear(const Inference& op) {
  const TensorType &x = op.operands[0], &w = op.operands[1], &ends = op.operands[2];
  const bool fits = x.rank() >= 2 && w.rank() == 3 && dtype_info(x.dtype).bits == 16 &&
                    is_float(x.dtype) && w.dtype == x.dtype && w.dims[2] == x.dims.back() &&
                    ends == TensorType{DType::i32, {w.dims[0]}};
  if (!fits || !w.dims[0].is_constant() || !w.dims[1].is_constant() || !w.dims[2].is_constant())
    return op.reject(35,
                     fmt::format("needs x [N ..., K] and w [G, M, K] of one type of 16 bits, K and "
                                 "all of w constant, and ends i32[G], got {}, {} and {}",
                                 op.show(x), op.show(w), op.show(ends)));
  if (w.dims[0].is(0) || w.dims[1].is(0) || !is_tiled_linear_length(w.dims[2].constant()))
    return op.reject(35, fmt::format("w {}: at least one matrix, whose rows have a multiple of {} "
                                     "elements",
                                     op.show(w), kTiledLinearMultiple));
  Dims dims(DimsRef(x.dims).drop_back());
  if (!have_numbers(volume(dims), w.dims[0].constant(), w.dims[1].constant(), op.symbols))
    return op.reject(35, fmt::format("x {}, w {}: at most 2^31 - 1 rows of x, and of all matrices",
                                     op.show(x), op.show(w)));
  dims.push_back(w.dims[1]);
  return TensorType{x.dtype, dims};
}

Result<TensorType> infer_grouped_outer(const Inference& op) {
  const TensorType &x = op.operands[0], &y = op.operands[1], &ends = op.operands[2];
  bool fits = x.rank() >= 2 && y.rank() == x.rank() && dtype_info(x.dtype).bits == 16 &&
              is_float(x.dtype) && y.dtype == x.dtype && ends.dtype == DType::i32 &&
              ends.rank() == 1 && ends.dims[0].is_constant();
  fits = fits && DimsRef(x.dims).drop_back() == DimsRef(y.dims).drop_back() &&
         x.dims.back().is_constant() && y.dims.back().is_constant();
  if (!fits)
    return op.reject(36,
                     fmt::format("needs x [N ..., M] and y [N ..., K] of one type of 16 bits and "
                                 "ends i32[G], all but N constant, got {}, {} and {}",
                                 op.show(x), op.show(y), op.show(ends)));
  const Dim columns = x.dims.back(), length = y.dims.back();
  if (ends.dims[0].is(0) || !is_tiled_linear_length(columns.constant()) ||
      !is_tiled_linear_length(length.constant()))
    return op.reject(36,
                     fmt::format("x {}, y {}, ends {}: at least one run, and rows of a multiple "
                                 "of {} elements",
                                 op.show(x), op.show(y), op.show(ends), kTiledLinearMultiple));
  if (!have_numbers(volume(DimsRef(x.dims).drop_back()), ends.dims[0].constant(),
                    columns.constant(), op.symbols))
    return op.reject(
        36, fmt::format("x {}, ends {}: at most 2^31 - 1 rows of x, and of all results", op.show(x),
                        op.show(ends)));
  return TensorType{x.dtype, {ends.dims[0], columns, length}};
}

}  // namespace sinter
