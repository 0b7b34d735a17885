#include "frontends/quantized/round.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/scalar_math.h"

namespace sinter {
namespace {

constexpr WeightScheme kFp8{
    .layout = WeightLayout::plain, .is_float = true, .strategy = ScaleStrategy::channel};
constexpr WeightScheme kInt8{.layout = WeightLayout::packed, .strategy = ScaleStrategy::channel};

/// transformers does not read an embedding of the layout `packed`.
constexpr WeightScheme kInt8Table{.layout = WeightLayout::plain,
                                  .strategy = ScaleStrategy::channel};

constexpr WeightScheme int4(int64_t group) {
  return {
      .layout = WeightLayout::packed, .bits = 4, .strategy = ScaleStrategy::group, .group = group};
}

constexpr RoundedFormat kRoundedFormats[] = {{"fp8", kFp8, kFp8},
                                             {"int8", kInt8, kInt8Table},
                                             {"int4-g32", int4(32), kInt8Table},
                                             {"int4-g64", int4(64), kInt8Table},
                                             {"int4-g128", int4(128), kInt8Table}};

constexpr float kLargestE4m3 = 448;

/// The nearest e4m3 of a magnitude of at most 448; ties to even.
uint32_t e4m3_magnitude(float x) {
  // Below 2^-6 the codes are multiples of 2^-9; 8 of them are the code of 2^-6.
  if (x < 0x1p-6f) return static_cast<uint32_t>(std::nearbyint(x * 0x1p9f));
  const uint32_t bits = math::float_bits(x);
  const uint32_t rounded = (bits + 0x7ffff + (bits >> 20 & 1)) >> 20;
  return rounded - ((127 - 7) << 3);
}

uint32_t e4m3_code(float x) {
  const float magnitude = std::min(std::fabs(x), kLargestE4m3);
  return e4m3_magnitude(magnitude) | (std::signbit(x) ? 0x80u : 0u);
}

/// The number of these bits in `dtype`, a float type.
float scale_of_bits(DType dtype, uint32_t bits) {
  if (dtype == DType::f32) return math::bits_float(bits);
  const auto half = static_cast<math::u16>(bits);
  return dtype == DType::f16 ? math::f16_to_float(half) : math::bf16_to_float(half);
}

/// Stores the least scale of the type with which codes of at most `half` reach `largest`, and gives
/// it; infinity if the type has none.
float store_scale(DType dtype, float largest, float half, std::byte* out) {
  const float scale = largest / half;
  uint32_t bits = dtype == DType::f32   ? math::float_bits(scale)
                  : dtype == DType::f16 ? math::float_to_f16(scale)
                                        : math::float_to_bf16(scale);
  // The product is exact. Bits of positive floats have the order of their values.
  if (static_cast<double>(scale_of_bits(dtype, bits)) * half < largest) ++bits;
  std::memcpy(out, &bits, static_cast<size_t>(storage_bytes(dtype, 1)));  // little endian
  return scale_of_bits(dtype, bits);
}

}  // namespace

std::span<const RoundedFormat> rounded_formats() { return kRoundedFormats; }

const RoundedFormat* find_rounded_format(std::string_view name) {
  const auto* at =
      llvm::find_if(kRoundedFormats, [&](const auto& format) { return format.name == name; });
  return at == std::end(kRoundedFormats) ? nullptr : at;
}

size_t rounded_row_bytes(const WeightScheme& scheme, int64_t in) {
  const auto bits = static_cast<size_t>(in * scheme.bits);
  return scheme.layout == WeightLayout::packed ? (bits + 31) / 32 * 4 : bits / 8;
}

int64_t rounded_row_scales(const WeightScheme& scheme, int64_t in) {
  return scheme.strategy == ScaleStrategy::group ? in / scheme.group : 1;
}

bool round_row(const WeightScheme& scheme, DType scale, std::span<const float> row,
               std::span<std::byte> codes, std::span<std::byte> scales) {
  const auto groups =
      static_cast<size_t>(rounded_row_scales(scheme, static_cast<int64_t>(row.size())));
  const size_t length = row.size() / groups, scale_bytes = scales.size() / groups;
  const auto least = -std::ldexp(1.0f, scheme.bits - 1), greatest = -least - 1;
  const float half = scheme.is_float ? kLargestE4m3 : (greatest - least) / 2;
  std::fill(codes.begin(), codes.end(), std::byte{0});
  for (size_t g = 0; g < groups; ++g) {
    const auto group = row.subspan(g * length, length);
    float largest = 0;
    for (const float value : group) {
      if (!std::isfinite(value)) return false;
      largest = std::max(largest, std::fabs(value));
    }
    std::byte* place = scales.data() + g * scale_bytes;
    // Any scale serves a group of zeros.
    const float stored = store_scale(scale, largest == 0 ? half : largest, half, place);
    if (!std::isfinite(stored)) return false;
    for (size_t i = 0; i < length; ++i) {
      const float ratio = group[i] / stored;
      const size_t bit = (g * length + i) * static_cast<size_t>(scheme.bits);
      // A field of the layout `packed` is the code plus 2^(bits-1), one of `plain` the code.
      const bool packed = scheme.layout == WeightLayout::packed;
      const float code = std::clamp(std::nearbyint(ratio), least, greatest);
      const uint32_t field =
          scheme.is_float
              ? e4m3_code(ratio)
              : static_cast<uint32_t>(static_cast<int32_t>(packed ? code - least : code));
      codes[bit / 8] |= static_cast<std::byte>(field << bit % 8);
    }
  }
  return true;
}

}  // namespace sinter
