// Contractions as strided matrix products.
#pragma once

#include "ir/graph.h"
#include "ir/sym_expr.h"

namespace sinter {

/// A matrix inside a value; everything in elements. One of the strides is 1.
struct StridedMatrix {
  ValueId root;
  SymExpr offset, row_stride, column_stride;
};

/// C[m, n] = sum over k of A[m, k] * B[k, n] (+ bias[n]), repeated over the loops, outermost first.
struct ContractionForm {
  struct Loop {
    SymExpr count, a_stride, b_stride, c_stride;  // 0: the operand is shared
  };
  StridedMatrix a, b, c;  // c: in the op's own result; its root is invalid
  ValueId bias;           // root of a dense [n], or invalid
  SymExpr m, n, k;
  llvm::SmallVector<Loop, 2> loops;
};

/// The form of a linear or einsum whose operands are read through their views; nullopt where the
/// views or the order of the axes leave no unit stride or no single summed axis.
std::optional<ContractionForm> contraction_form(const Graph& graph, const Op& op,
                                                llvm::ArrayRef<Symbol> symbols);

/// A value read through its views: the place in its root of the element with indices i is
/// offset + sum of strides[a] * i[a]. An axis of extent 1 has the stride 0.
struct StridedView {
  ValueId root;
  SymExpr offset;
  llvm::SmallVector<SymExpr, 4> strides;
};
/// The value with the axes `dims`, a reshape of its own; nullopt where its views leave no strides
/// or it is not in memory.
std::optional<StridedView> strided_view(const Graph& graph, ValueId id, DimsRef dims);
/// The stride of the first `count` axes as one; nullopt where they do not step together.
std::optional<SymExpr> joined_stride(const StridedView& view, DimsRef dims, size_t count);

/// A value [N, D] read through its views, as rows of neighbouring elements; nullopt where the views
/// leave no such rows, the value is not in memory or has another rank.
std::optional<StridedMatrix> strided_rows(const Graph& graph, ValueId id);

/// A value read through its views is in memory in its own order, from the first element of its root
/// on.
bool is_dense(const Graph& graph, ValueId id);

/// A weight or an input as it stands in memory: no kernel writes it, so that one may read it before
/// earlier kernels are complete (OperandRole::stream).
bool can_be_streamed(const Graph& graph, ValueId id);

/// The axes of an einsum or linear in the order batch, free in the operand, summed: reading the
/// operand (0 or 1) so makes its part of the form exist.
std::vector<int64_t> gemm_order(const Op& op, uint32_t operand);
/// The axes of a transposition that takes back the transposition by `axes`.
std::vector<int64_t> inverse_order(llvm::ArrayRef<int64_t> axes);

}  // namespace sinter
