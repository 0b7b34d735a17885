#include "driver/verify/loss_bound.h"

#include <algorithm>
#include <cmath>

#include "ir/decompose.h"
#include "ir/op_flops.h"
#include "ir/sym_expr.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

constexpr double kDeviations = 4;

bool is_computed(const Op& op) {
  const OpClass kind = op_class(op);
  return kind != OpClass::leaf && kind != OpClass::generator && kind != OpClass::view;
}

/// The variance of the relative error that the op itself adds.
double own_variance(const Graph& graph, const Op& op, const CallSizes& sizes) {
  if (!is_computed(op) || !is_float(op.type.dtype)) return 0;
  const double u = unit_roundoff(op.type.dtype);
  const auto elements =
      static_cast<double>(volume(op.type.dims).evaluate(sizes.symbol_values).value_or(0));
  const double terms = elements == 0 ? 0 : flops(graph, op, sizes) / elements;
  return (u * u + (terms > 1 ? 0x1p-48 * terms / 2 : 0)) / 3;
}

/// The mean of the squared standard deviations of the rows.
double mean_square_deviation(const HostTensor& logits) {
  const std::vector<double> values = to_doubles(logits);
  const int64_t width = logits.dims.back(), rows = logits.volume() / width;
  double total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const double* begin = values.data() + row * width;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i) sum += begin[i];
    const double mean = sum / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) squares += (begin[i] - mean) * (begin[i] - mean);
    total += squares / static_cast<double>(width);
  }
  return total / static_cast<double>(rows);
}

}  // namespace

double relative_variance(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                         llvm::ArrayRef<int64_t> symbol_values) {
  const Graph primitives = decompose_all(graph, symbols);
  const CallSizes sizes{symbols, symbol_values};
  std::vector<double> variance(primitives.size(), 0);
  for (uint32_t i = 0; i < primitives.size(); ++i) {
    const Op& op = primitives[ValueId{i}];
    for (ValueId operand : op.operands)
      variance[i] = std::max(variance[i], variance[operand.index]);
    variance[i] += own_variance(primitives, op, sizes);
  }
  return variance[primitives.outputs[0].index];
}

double loss_bound(double relative_variance, const HostTensor& logits) {
  const auto rows = static_cast<double>(logits.volume() / logits.dims.back());
  return kDeviations * std::sqrt(2 * relative_variance * mean_square_deviation(logits) / rows);
}

double hidden_bound(double relative_variance, const HostTensor& hidden) {
  return kDeviations * std::sqrt(relative_variance * mean_square_deviation(hidden));
}

}  // namespace sinter
