#include "frontends/gguf/gguf_blocks.h"

#include <cstring>

#include "ir/scalar_math.h"

namespace sinter {
namespace {

constexpr int kGroup = 32;         // elements of a small block
constexpr int kSuperBlock = 256;   // elements of a K block
constexpr uint8_t kNoScale = 255;  // an exponent

/// Entries of the table IQ4_NL.
constexpr float kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the values of e2m1; the scale is halved.
constexpr float kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Bytes of a block.
class Bytes {
 public:
  explicit Bytes(const std::byte* at) : at_(at) {}
  int operator[](int i) const { return static_cast<int>(at_[i]); }
  int signed_at(int i) const { return static_cast<int8_t>(at_[i]); }
  int low(int i) const { return (*this)[i] & 15; }
  int high(int i) const { return (*this)[i] >> 4; }
  Bytes from(int i) const { return Bytes(at_ + i); }
  template <typename T>
  T number(int i) const {
    T value;
    std::memcpy(&value, at_ + i, sizeof value);
    return value;
  }
  float half(int i) const { return math::f16_to_float(number<uint16_t>(i)); }

 private:
  const std::byte* at_;
};

/// Code i of 32 in 16 bytes: low nibbles, then high ones.
int nibble(Bytes codes, int i) { return i < 16 ? codes.low(i) : codes.high(i - 16); }

template <typename F>
void each(int count, float* out, F&& value) {
  for (int i = 0; i < count; ++i) out[i] = value(i);
}

float number_of(int code) { return static_cast<float>(code); }

void dequantize_q4_0(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * number_of(nibble(b.from(2), i) - 8); });
}

void dequantize_q4_1(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * number_of(nibble(b.from(4), i)) + b.half(2); });
}

int five_bits(Bytes codes, uint32_t fifth, int i) {
  return nibble(codes, i) | static_cast<int>((fifth >> i) & 1) << 4;
}

void dequantize_q5_0(const std::byte* block, float* out) {
  const Bytes b(block);
  const auto fifth = b.number<uint32_t>(2);
  each(kGroup, out,
       [&](int i) { return b.half(0) * number_of(five_bits(b.from(6), fifth, i) - 16); });
}

void dequantize_q5_1(const std::byte* block, float* out) {
  const Bytes b(block);
  const auto fifth = b.number<uint32_t>(4);
  each(kGroup, out,
       [&](int i) { return b.half(0) * number_of(five_bits(b.from(8), fifth, i)) + b.half(2); });
}

void dequantize_q8_0(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * number_of(b.signed_at(2 + i)); });
}

/// Code i of 256 of two bits: bytes of 32 hold four runs of 32 codes.
int two_bits(Bytes codes, int i) { return codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }

void dequantize_q2_k(const std::byte* block, float* out) {
  const Bytes b(block);
  const float scale = b.half(80), minimum = b.half(82);
  each(kSuperBlock, out, [&](int i) {
    const float step = scale * number_of(b.low(i / 16));
    return step * number_of(two_bits(b.from(16), i)) - minimum * number_of(b.high(i / 16));
  });
}

/// Scale `group` of 16 of Q3_K: four bits of it, and two of a byte that four scales share.
int q3_scale(Bytes scales, int group) {
  const int low = group < 8 ? scales.low(group) : scales.high(group - 8);
  return (low | (scales[8 + group % 4] >> (group / 4 * 2) & 3) << 4) - 32;
}

void dequantize_q3_k(const std::byte* block, float* out) {
  const Bytes b(block);
  const float scale = b.half(108);
  each(kSuperBlock, out, [&](int i) {
    const int high = b[i % 32] >> (i / 32) & 1;
    const int code = two_bits(b.from(32), i) - (high == 1 ? 0 : 4);
    return scale * number_of(q3_scale(b.from(96), i / 16)) * number_of(code);
  });
}

/// Scale and minimum of a group of 32, six bits each, in 12 bytes.
std::pair<int, int> k_scale(Bytes b, int group) {
  if (group < 4) return {b[group] & 63, b[group + 4] & 63};
  const int k = group - 4;
  return {b.low(8 + k) | (b[k] >> 6) << 4, b.high(8 + k) | (b[4 + k] >> 6) << 4};
}

/// Q4_K and Q5_K: `code` gives element i of 256.
template <typename F>
void dequantize_k(Bytes b, float* out, F&& code) {
  const float scale = b.half(0), minimum = b.half(2);
  for (int group = 0; group < kSuperBlock / kGroup; ++group) {
    const auto [steps, minima] = k_scale(b.from(4), group);
    const float step = scale * number_of(steps), least = minimum * number_of(minima);
    for (int i = 32 * group; i < 32 * group + kGroup; ++i)
      out[i] = step * number_of(code(i)) - least;
  }
}

/// Code i of 256 of four bits: 32 bytes hold two groups of 32.
int k_nibble(Bytes codes, int i) {
  const int at = i / 64 * 32 + i % 32;
  return i / 32 % 2 == 0 ? codes.low(at) : codes.high(at);
}

void dequantize_q4_k(const std::byte* block, float* out) {
  const Bytes b(block);
  dequantize_k(b, out, [&](int i) { return k_nibble(b.from(16), i); });
}

void dequantize_q5_k(const std::byte* block, float* out) {
  const Bytes b(block);
  dequantize_k(b, out, [&](int i) {
    return k_nibble(b.from(48), i) | (b[16 + i % 32] >> (i / 32) & 1) << 4;
  });
}

void dequantize_q6_k(const std::byte* block, float* out) {
  const Bytes b(block);
  const float scale = b.half(208);
  each(kSuperBlock, out, [&](int i) {
    const int half = i / 128, run = i % 128 / 32, at = 64 * half + run % 2 * 32 + i % 32;
    const int low = run < 2 ? b.low(at) : b.high(at);
    const int high = b[128 + 32 * half + i % 32] >> (2 * run) & 3;
    return scale * number_of(b.signed_at(192 + i / 16)) * number_of((low | high << 4) - 32);
  });
}

void dequantize_iq4_nl(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * kIq4Values[nibble(b.from(2), i)]; });
}

void dequantize_iq4_xs(const std::byte* block, float* out) {
  const Bytes b(block);
  const auto high = b.number<uint16_t>(2);
  for (int group = 0; group < kSuperBlock / kGroup; ++group) {
    const int low = group % 2 == 0 ? b.low(4 + group / 2) : b.high(4 + group / 2);
    const float scale = b.half(0) * number_of((low | (high >> 2 * group & 3) << 4) - 32);
    each(kGroup, out + 32 * group,
         [&](int i) { return scale * kIq4Values[nibble(b.from(8 + 16 * group), i)]; });
  }
}

void dequantize_mxfp4(const std::byte* block, float* out) {
  const Bytes b(block);
  const auto exponent = static_cast<uint32_t>(b[0]);
  // Half of 2^(exponent - 127), which is subnormal for the first two.
  const float scale =
      math::bits_float(exponent < 2 ? uint32_t{0x00200000} << exponent : (exponent - 1) << 23);
  each(kGroup, out, [&](int i) { return scale * kMxfp4Values[nibble(b.from(1), i)]; });
}

struct Row {
  GgufType type;
  Dequantize dequantize;
};
constexpr Row kRows[] = {
    {GgufType::Q4_0, dequantize_q4_0},     {GgufType::Q4_1, dequantize_q4_1},
    {GgufType::Q5_0, dequantize_q5_0},     {GgufType::Q5_1, dequantize_q5_1},
    {GgufType::Q8_0, dequantize_q8_0},     {GgufType::Q2_K, dequantize_q2_k},
    {GgufType::Q3_K, dequantize_q3_k},     {GgufType::Q4_K, dequantize_q4_k},
    {GgufType::Q5_K, dequantize_q5_k},     {GgufType::Q6_K, dequantize_q6_k},
    {GgufType::IQ4_NL, dequantize_iq4_nl}, {GgufType::IQ4_XS, dequantize_iq4_xs},
    {GgufType::MXFP4, dequantize_mxfp4},
};

}  // namespace

Dequantize dequantize_of(GgufType type) {
  for (const Row& row : kRows)
    if (row.type == type) return row.dequantize;
  return nullptr;
}

std::string dequantized_types() {
  std::string list;
  for (const Row& row : kRows)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", gguf_type_info(row.type).name);
  return list;
}

bool has_invalid_scale(GgufType type, const std::byte* block) {
  return type == GgufType::MXFP4 && static_cast<uint8_t>(block[0]) == kNoScale;
}

}  // namespace sinter
