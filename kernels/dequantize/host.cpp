// pack_codes, and dequantize: fma(scale, code - zero, -minimum), or the product alone; in precise
// evaluation in float64.
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

/// The operand's bytes, densely, in the format's own type of scales.
Result<HostView> dense_scales(const OpCall& call, const CodeFormat& format, size_t operand) {
  return copy_dense(call.operands[operand], storage_of(format.scale));
}

}  // namespace

Result<HostView> evaluate_dequantize(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  (call.options.precise ? dequantize_rows<double> : dequantize_rows<float>)(call, value.out);
  return value.view;
}

Result<HostView> evaluate_pack_codes(const OpCall& call) {
  const CodeFormat format = code_format(call.op.attrs);
  const int64_t length = call.op.attrs.get<Dim>(AttrName::size).constant();
  const int64_t groups = code_groups(format, length), words = code_words(format, length);
  std::vector<int32_t> word_scratch, zero_scratch;
  const int32_t* codes = dense_elements(call.operands[0], word_scratch);
  SINTER_LET(scales, dense_scales(call, format, 1));
  const int32_t* zeros = format.zeros ? dense_elements(call.operands[2], zero_scratch) : nullptr;
  HostView minima;
  if (format.minima) {
    SINTER_LET(dense, dense_scales(call, format, format.zeros ? 3 : 2));
    minima = std::move(dense);
  }
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t scale_bytes = groups * format.layout().scale_bytes;
  for (int64_t m = 0; m < call.dims[0]; ++m)
    pack_row(format, length, codes + m * words, scales.data + m * scale_bytes,
             format.zeros ? zeros + m * groups : nullptr,
             format.minima ? minima.data + m * scale_bytes : nullptr,
             value.out + m * row_words(format, length) * 4);
  return value.view;
}

}  // namespace sinter
