// cumulative_sum in the order of kernels/scan/order.h; in precise evaluation the same sums in
// float64.
#include <algorithm>

#include "kernels/scan/order.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// The sums of a group's chunks, which are given one after the other. A chunk adds sums that are
/// complete before it: at each level the sum of the run of 2^level chunks before its own run.
template <typename Sum>
class ChunkSums {
 public:
  /// The sum of the chunks before the next one.
  Sum before() const { return sum_; }
  void pass(Sum total) {
    sum_ = total;
    for (int level = 0; level < kScanLevels; ++level) {
      if (scan_adds(chunk_, level))
        sum_ = scan_add(runs_[level], sum_);
      else if (chunk_ % (1 << level) == (1 << level) - 1)
        runs_[level] = sum_;  // the source of chunks to come
    }
    ++chunk_;
  }

 private:
  int chunk_ = 0;
  Sum sum_ = 0, runs_[kScanLevels] = {};
};

/// `x` and `y`: the row's elements and results in the order of the sum.
template <typename Sum>
void scan_row(const Sum* x, int64_t n, bool exclusive, Sum* y) {
  ScanCarry<Sum> carry;
  for (int64_t group = 0; group * kScanGroup < n; ++group) {
    const int64_t end = std::min<int64_t>(n, (group + 1) * kScanGroup);
    ChunkSums<Sum> chunks;
    for (int64_t chunk = group * kScanGroup; chunk < end; chunk += kScanChunk) {
      const Sum base = carry.before(chunks.before());
      Sum sum = x[chunk];
      y[chunk] = exclusive ? base : scan_add(base, sum);
      for (int64_t i = chunk + 1; i < std::min<int64_t>(end, chunk + kScanChunk); ++i) {
        const Sum next = scan_add(sum, x[i]);
        y[i] = scan_add(base, exclusive ? sum : next);
        sum = next;
      }
      chunks.pass(sum);
    }
    carry.pass_group(chunks.before(), static_cast<int>(group));
  }
}

/// Rows are the operand's elements with the axis innermost.
template <typename Sum>
Result<HostView> scan_rows(const OpCall& call) {
  const auto flag = [&](AttrName name) {
    return call.op.attrs.has(name) && call.op.attrs.get<int64_t>(name) == 1;
  };
  const bool reverse = flag(AttrName::reverse), exclusive = flag(AttrName::exclusive);
  const HostView& x = call.operands[0];
  const auto axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  const int64_t n = x.dims[axis];
  Extents axes;
  int64_t inner = 1;  // elements of the axes after it
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
    if (i > axis) inner *= x.dims[i];
  }
  axes.push_back(static_cast<int64_t>(axis));
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader reader(transpose_view(x, axes));
  std::vector<Sum> scratch(static_cast<size_t>(n)), row(scratch), results(scratch);
  const int64_t rows = n == 0 ? 0 : value.view.volume() / n;
  for (int64_t r = 0; r < rows; ++r) {
    const Sum* elements = reader.next(n, scratch.data());
    std::copy(elements, elements + n, row.begin());
    if (reverse) std::reverse(row.begin(), row.end());
    scan_row(row.data(), n, exclusive, results.data());
    if (reverse) std::reverse(results.begin(), results.end());
    const int64_t first = r / inner * n * inner + r % inner;
    store_run(results.data(), n, call.storage, value.out + first * whole_bytes(call.storage),
              inner);
  }
  return value.view;
}

}  // namespace

Result<HostView> evaluate_cumulative_sum(const OpCall& call) {
  if (call.op.type.dtype == DType::i32) return scan_rows<int32_t>(call);
  return call.options.precise ? scan_rows<double>(call) : scan_rows<float>(call);
}

}  // namespace sinter
