// linear and einsum, as matrix products.
#include "ir/infer.h"
#include "ir/integers.h"
#include "runtime/evaluate/blas.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// batch products of a [batch, m, k] and b [batch, n, k], plus bias [n] (null: none), rounded into
/// `out` [batch, m, n].
template <typename T>
Status multiply_batches(const HostView& a_view, const HostView& b_view, const HostView* bias_view,
                        int64_t batch, int64_t m, int64_t n, int64_t k, Storage storage,
                        std::byte* out) {
  std::vector<T> a_scratch, b_scratch, bias_scratch, sums(static_cast<size_t>(m * n));
  const T* a = dense_elements(a_view, a_scratch);
  const T* b = dense_elements(b_view, b_scratch);
  const T* bias = bias_view != nullptr ? dense_elements(*bias_view, bias_scratch) : nullptr;
  for (int64_t i = 0; i < batch; ++i) {
    SINTER_TRY(multiply(a + i * m * k, b + i * n * k, sums.data(), m, n, k));
    if (bias != nullptr)
      for (int64_t j = 0; j < m * n; ++j) sums[j] += bias[j % n];
    store_run(sums.data(), m * n, storage, out + i * m * n * whole_bytes(storage));
  }
  return {};
}

Result<NewValue> contract(const OpCall& call, const HostView& a, const HostView& b,
                          const HostView* bias, int64_t batch, int64_t m, int64_t n, int64_t k,
                          llvm::ArrayRef<int64_t> dims) {
  SINTER_LET(value, allocate(dims, call.storage));
  if (value.view.volume() > 0) {
    const auto run = call.options.precise ? multiply_batches<double> : multiply_batches<float>;
    SINTER_TRY(run(a, b, bias, batch, m, n, k, call.storage, value.out));
  }
  return value;
}

}  // namespace

Result<HostView> evaluate_linear(const OpCall& call) {
  const HostView &x = call.operands[0], &w = call.operands[1];
  const HostView* bias = call.operands.size() == 3 ? &call.operands[2] : nullptr;
  const int64_t rows = elements_of(llvm::ArrayRef(x.dims).drop_back());
  SINTER_LET(value, contract(call, x, w, bias, 1, rows, w.dims[0], w.dims[1], call.dims));
  return value.view;
}

Result<HostView> evaluate_einsum(const OpCall& call) {
  const HostView &a = call.operands[0], &b = call.operands[1];
  SINTER_LET(spec, parse_einsum(call.op.attrs.get<std::string>(AttrName::spec)));
  // Axes of each operand by role, in one order of letters; of the result as the product leaves it.
  Extents a_batch, b_batch, a_free, b_free, a_summed, b_summed;
  Extents dims, order(call.dims.size());
  int64_t batch = 1, m = 1, n = 1, k = 1;
  const auto emit = [&](const EinsumAxis& axis, int64_t extent) {
    order[axis.result] = static_cast<int64_t>(dims.size());
    dims.push_back(extent);
  };
  for (const EinsumAxis& axis : spec.axes)
    if (axis.a >= 0 && axis.b >= 0 && axis.result >= 0) {
      a_batch.push_back(axis.a);
      b_batch.push_back(axis.b);
      batch *= a.dims[axis.a];
      emit(axis, a.dims[axis.a]);
    }
  for (const EinsumAxis& axis : spec.axes)
    if (axis.a >= 0 && axis.b < 0) {
      a_free.push_back(axis.a);
      m *= a.dims[axis.a];
      emit(axis, a.dims[axis.a]);
    }
  for (const EinsumAxis& axis : spec.axes) {
    if (axis.a < 0) {
      b_free.push_back(axis.b);
      n *= b.dims[axis.b];
      emit(axis, b.dims[axis.b]);
    } else if (axis.b >= 0 && axis.result < 0) {
      a_summed.push_back(axis.a);
      b_summed.push_back(axis.b);
      k *= a.dims[axis.a];
    }
  }
  const auto arranged = [](const HostView& view, const Extents& x, const Extents& y,
                           const Extents& z) {
    Extents axes = x;
    axes.append(y.begin(), y.end());
    axes.append(z.begin(), z.end());
    return transpose_view(view, axes);
  };
  SINTER_LET(value,
             contract(call, arranged(a, a_batch, a_free, a_summed),
                      arranged(b, b_batch, b_free, b_summed), nullptr, batch, m, n, k, dims));
  return transpose_view(value.view, order);
}

}  // namespace sinter
