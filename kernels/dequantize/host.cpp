// pack_codes, and dequantize: fma(scale, code - zero, -minimum), or the product alone; in precise
// evaluation in float64.
#include <deque>

#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter {
namespace {

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return a * b + c; }

template <typename T>
void dequantize_rows(const OpCall& call, std::byte* out) {
  const CodeFormat format = code_format(call.op.attrs);
  const int64_t length = call.dims.back();
  const int64_t rows = call.operands[0].volume() / row_words(format, length);
  std::vector<int32_t> scratch;
  const int32_t* packed = dense_elements(call.operands[0], scratch);
  UnpackedRow<T> row;
  std::vector<T> values(static_cast<size_t>(length));
  for (int64_t m = 0; m < rows; ++m) {
    row.read(format, length,
             reinterpret_cast<const std::byte*>(packed + m * row_words(format, length)));
    for (int64_t k = 0; k < length; ++k) {
      const auto group = static_cast<size_t>(format.group == 0 ? 0 : k / format.group);
      const T code = row.codes[static_cast<size_t>(k)], scale = row.scales[group];
      values[static_cast<size_t>(k)] =
          format.minima ? fused(scale, code, -row.minima[group]) : scale * code;
    }
    store_run(values.data(), length, call.storage, out + m * length * whole_bytes(call.storage));
  }
}

/// The operands of pack_codes, one after the other, densely.
class PackOperands {
 public:
  explicit PackOperands(const OpCall& call) : call_(call) {}
  const int32_t* integers() {
    return dense_elements(call_.operands[next_++], scratch_.emplace_back());
  }
  Result<const std::byte*> floats(DType dtype) {
    SINTER_LET(view, copy_dense(call_.operands[next_++], storage_of(dtype)));
    return views_.emplace_back(std::move(view)).data;
  }

 private:
  const OpCall& call_;
  size_t next_ = 0;
  std::deque<std::vector<int32_t>> scratch_;
  std::deque<HostView> views_;
};

}  // namespace

Result<HostView> evaluate_dequantize(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  (call.options.precise ? dequantize_rows<double> : dequantize_rows<float>)(call, value.out);
  return value.view;
}

Result<HostView> evaluate_pack_codes(const OpCall& call) {
  const CodeFormat format = code_format(call.op.attrs);
  const int64_t length = call.op.attrs.get<Dim>(AttrName::size).constant();
  PackOperands operands(call);
  DenseCodes codes;
  codes.words = operands.integers();
  SINTER_LET(scales, operands.floats(format.scale));
  codes.scales = scales;
  if (format.zeros) codes.zeros = operands.integers();
  if (format.minima) {
    SINTER_LET(minima, operands.floats(format.scale));
    codes.minima = minima;
  }
  if (format.part_bits != 0) codes.parts = operands.integers();
  SINTER_LET(value, allocate(call.dims, call.storage));
  for (int64_t m = 0; m < call.dims[0]; ++m)
    pack_row(format, length, codes.row(format, length, m),
             value.out + m * row_words(format, length) * 4);
  return value.view;
}

}  // namespace sinter
