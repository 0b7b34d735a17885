// tiled_linear, tiled_codes, grouped_linear and grouped_outer in the orders of
// kernels/products/order.h; in precise evaluation the same sums in float64.
#include <algorithm>
#include <cmath>

#include "ir/row_numbers.h"
#include "kernels/products/order.h"
#include "runtime/evaluate/linear_rows.h"
#include "runtime/evaluate/packed_product.h"
#include "runtime/evaluate/tensor_cores.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

/// The sum of an element, of `length` products.
template <typename T>
SINTER_VECTOR_CLONES T element_sum(const T* x, const T* w, int64_t length) {
  T sum = 0;
  for (int64_t begin = 0; begin < length; begin += kTiledLinearStep) {
    double exact = sum;
    const int64_t end = std::min<int64_t>(length, begin + kTiledLinearStep);
    for (int64_t k = begin; k < end; ++k)
      exact += static_cast<double>(x[k]) * static_cast<double>(w[k]);
    sum = static_cast<T>(exact);
  }
  return sum;
}
template float element_sum(const float*, const float*, int64_t);
template double element_sum(const double*, const double*, int64_t);

/// Tokens whose sums are added side by side.
constexpr int64_t kTokens = 16;

/// The same for kTokens sums; x: [length, kTokens].
template <typename T>
SINTER_VECTOR_CLONES void add_products_of_tokens(T* sums, const T* x, const T* w, int64_t length) {
  for (int64_t begin = 0; begin < length; begin += kTiledLinearStep) {
    double exact[kTokens];
    for (int64_t n = 0; n < kTokens; ++n) exact[n] = sums[n];
    const int64_t end = std::min<int64_t>(length, begin + kTiledLinearStep);
    for (int64_t k = begin; k < end; ++k)
      for (int64_t n = 0; n < kTokens; ++n)
        exact[n] += static_cast<double>(x[k * kTokens + n]) * static_cast<double>(w[k]);
    for (int64_t n = 0; n < kTokens; ++n) sums[n] = static_cast<T>(exact[n]);
  }
}
template void add_products_of_tokens(float*, const float*, const float*, int64_t);
template void add_products_of_tokens(double*, const double*, const double*, int64_t);

/// The products of a packed row, of `length` codes, and kTokens rows of x, [length, kTokens].
template <typename T>
void packed_sums(T (&sums)[kTokens], const UnpackedRow<T>& row, const CodeFormat& format,
                 const T* x, int64_t length) {
  const int64_t step_length = format.layout().step_length();
  const int64_t group = format.group == 0 ? kCodesRun : format.group;
  T ones[kCodesRun], s1[kTokens] = {}, s2[kTokens] = {};
  std::fill_n(ones, kCodesRun, T{1});
  const auto scale = [&](size_t index) {
    for (int64_t n = 0; n < kTokens; ++n) {
      sums[n] = std::fma(row.scales[index], s1[n], sums[n]);
      if (format.minima) sums[n] = std::fma(-row.minima[index], s2[n], sums[n]);
      s1[n] = s2[n] = 0;
    }
  };
  for (T& sum : sums) sum = 0;
  for (int64_t step = 0; step < length; step += step_length)
    for (int64_t half = step; half < step + kCodeRound; half += kCodesRun)
      for (int64_t run = half; run < std::min(length, step + step_length); run += kCodeRound)
        for (int64_t k = run; k < std::min<int64_t>(length, run + kCodesRun); k += group) {
          const int64_t count = std::min(group, length - k);
          add_products_of_tokens(s1, x + k * kTokens, &row.codes[static_cast<size_t>(k)], count);
          if (format.minima) add_products_of_tokens(s2, x + k * kTokens, ones, count);
          if (format.group > 0) scale(static_cast<size_t>(k / group));
        }
  if (format.group == 0) scale(0);
}

template <typename T>
void multiply_codes(const OpCall& call, std::byte* out) {
  const PackedProduct<T> product(call);
  const DType elements = call.operand_type(0).dtype;
  const int64_t tokens = product.tokens, rows = product.rows, length = product.length;
  const int64_t blocks = (tokens + kTokens - 1) / kTokens;
  std::vector<T> by_token(static_cast<size_t>(blocks * length * kTokens));
  for (int64_t n = 0; n < tokens; ++n)
    for (int64_t k = 0; k < length; ++k)
      by_token[static_cast<size_t>((n / kTokens * length + k) * kTokens + n % kTokens)] =
          product.x[n * length + k];
  UnpackedRow<T> row;
  std::vector<T> results(static_cast<size_t>(tokens * rows));
  for (int64_t m = 0; m < rows; ++m) {
    product.read(row, m);
    if (product.format.zeros && !call.options.precise)
      for (T& code : row.codes)
        code = static_cast<T>(rounded_to_16_bits(static_cast<float>(code), elements));
    for (int64_t block = 0; block < blocks; ++block) {
      T sums[kTokens];
      packed_sums(sums, row, product.format,
                  &by_token[static_cast<size_t>(block * length * kTokens)], length);
      for (int64_t n = block * kTokens; n < std::min(tokens, (block + 1) * kTokens); ++n)
        results[static_cast<size_t>(n * rows + m)] = product.with_bias(sums[n % kTokens], m);
    }
  }
  store_run(results.data(), tokens * rows, call.storage, out);
}

/// The product of all extents but the last one.
int64_t row_count(const HostView& rows) {
  return rows.dims.back() > 0 ? rows.volume() / rows.dims.back() : 0;
}

/// The ends of the `count` runs of an op's rows; of a checked op an end that is out of order, or
/// beyond the rows, is the nearest that is not.
Result<std::vector<int64_t>> run_ends(const OpCall& call, int64_t count) {
  std::vector<int32_t> scratch;
  const int32_t* given = dense_elements(call.operands[2], scratch);
  const int64_t rows = row_count(call.operands[0]);
  if (!is_checked(call.op))
    if (const auto bad = find_outside({given, static_cast<size_t>(count)}, rows, true))
      return call.error(
          fmt::format("end {} at position {} is none of a run of {} rows", given[*bad], *bad, rows),
          "check the inputs");
  std::vector<int64_t> ends;
  for (int64_t run = 0, end = 0; run < count; ++run)
    ends.push_back(end = std::clamp<int64_t>(given[run], end, rows));
  return ends;
}

/// The rows of each run by its matrix.
template <typename T>
Status multiply_runs(const OpCall& call, std::byte* out) {
  std::vector<T> x_scratch, w_scratch;
  const T* x = dense_elements(call.operands[0], x_scratch);
  const T* w = dense_elements(call.operands[1], w_scratch);
  const int64_t rows = row_count(call.operands[0]), runs = call.operands[1].dims[0];
  const int64_t columns = call.operands[1].dims[1], length = call.operands[1].dims[2];
  SINTER_LET(ends, run_ends(call, runs));
  std::vector<T> sums(static_cast<size_t>(rows * columns));
  int64_t row = 0;
  for (int64_t run = 0; run < runs; ++run)
    for (; row < ends[run]; ++row)
      for (int64_t m = 0; m < columns; ++m)
        sums[static_cast<size_t>(row * columns + m)] =
            element_sum(x + row * length, w + (run * columns + m) * length, length);
  store_run(sums.data(), rows * columns, call.storage, out);
  return {};
}

/// The transpose of an operand [rows ..., columns].
template <typename T>
std::vector<T> transposed(const HostView& operand) {
  std::vector<T> scratch;
  const T* elements = dense_elements(operand, scratch);
  const int64_t rows = row_count(operand), columns = operand.dims.back();
  std::vector<T> result(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[static_cast<size_t>(column * rows + row)] = elements[row * columns + column];
  return result;
}

/// The sums over the rows of each run.
template <typename T>
Status sum_over_runs(const OpCall& call, std::byte* out) {
  const std::vector<T> x = transposed<T>(call.operands[0]), y = transposed<T>(call.operands[1]);
  const int64_t rows = row_count(call.operands[0]);
  const int64_t of_x = call.operands[0].dims.back(), of_y = call.operands[1].dims.back();
  SINTER_LET(ends, run_ends(call, call.operands[2].dims[0]));
  std::vector<T> sums;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    for (int64_t i = 0; i < of_x; ++i)
      for (int64_t j = 0; j < of_y; ++j)
        sums.push_back(
            element_sum(x.data() + i * rows + begin, y.data() + j * rows + begin, end - begin));
    begin = end;
  }
  store_run(sums.data(), static_cast<int64_t>(sums.size()), call.storage, out);
  return {};
}

template <typename T>
void multiply_tokens(const OpCall& call, std::byte* out) {
  evaluate_linear_rows<T>(call, element_sum<T>, out);
}

}  // namespace

Result<HostView> evaluate_tiled_linear(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply_tokens<double> : multiply_tokens<float>)(call, value.out);
  return value.view;
}

Result<HostView> evaluate_tiled_codes(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply_codes<double> : multiply_codes<float>)(call, value.out);
  return value.view;
}

Result<HostView> evaluate_grouped_outer(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  SINTER_TRY(call.options.precise ? sum_over_runs<double>(call, value.out)
                                  : sum_over_runs<float>(call, value.out));
  return value.view;
}

Result<HostView> evaluate_grouped_linear(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  SINTER_TRY(call.options.precise ? multiply_runs<double>(call, value.out)
                                  : multiply_runs<float>(call, value.out));
  return value.view;
}

}  // namespace sinter
