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

int q5_0_code(Bytes b, int i) { return five_bits(b.from(6), b.number<uint32_t>(2), i); }
int q5_1_code(Bytes b, int i) { return five_bits(b.from(8), b.number<uint32_t>(4), i); }

void dequantize_q5_0(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * number_of(q5_0_code(b, i) - 16); });
}

void dequantize_q5_1(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * number_of(q5_1_code(b, i)) + b.half(2); });
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

int q4_k_code(Bytes b, int i) { return k_nibble(b.from(16), i); }
int q5_k_code(Bytes b, int i) {
  return k_nibble(b.from(48), i) | (b[16 + i % 32] >> (i / 32) & 1) << 4;
}

void dequantize_q4_k(const std::byte* block, float* out) {
  const Bytes b(block);
  dequantize_k(b, out, [&](int i) { return q4_k_code(b, i); });
}

void dequantize_q5_k(const std::byte* block, float* out) {
  const Bytes b(block);
  dequantize_k(b, out, [&](int i) { return q5_k_code(b, i); });
}

int q6_k_code(Bytes b, int i) {
  const int half = i / 128, run = i % 128 / 32, at = 64 * half + run % 2 * 32 + i % 32;
  const int low = run < 2 ? b.low(at) : b.high(at);
  return low | (b[128 + 32 * half + i % 32] >> (2 * run) & 3) << 4;
}

void dequantize_q6_k(const std::byte* block, float* out) {
  const Bytes b(block);
  const float scale = b.half(208);
  each(kSuperBlock, out, [&](int i) {
    return scale * number_of(b.signed_at(192 + i / 16)) * number_of(q6_k_code(b, i) - 32);
  });
}

void dequantize_iq4_nl(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kGroup, out, [&](int i) { return b.half(0) * kIq4Values[nibble(b.from(2), i)]; });
}

int iq4_xs_scale(Bytes b, int group) {
  const int low = group % 2 == 0 ? b.low(4 + group / 2) : b.high(4 + group / 2);
  return (low | (b.number<uint16_t>(2) >> 2 * group & 3) << 4) - 32;
}
int iq4_xs_code(Bytes b, int i) { return nibble(b.from(8 + i / kGroup * 16), i % kGroup); }

void dequantize_iq4_xs(const std::byte* block, float* out) {
  const Bytes b(block);
  each(kSuperBlock, out, [&](int i) {
    return b.half(0) * number_of(iq4_xs_scale(b, i / kGroup)) * kIq4Values[iq4_xs_code(b, i)];
  });
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

// Packed matrices. The numbers of a block, each of which becomes an element of an operand.

template <int at>
int nibble_code(Bytes b, int i) {
  return nibble(b.from(at), i);
}
int q8_0_code(Bytes b, int i) { return b[2 + i]; }

CodeParts q4_k_parts(Bytes b, int group) {
  const auto [scale, minimum] = k_scale(b.from(4), group);
  return {scale, minimum};
}
CodeParts q6_k_parts(Bytes b, int group) { return {b.signed_at(192 + group), 0}; }
CodeParts iq4_xs_parts(Bytes b, int group) { return {iq4_xs_scale(b, group), 0}; }

/// The codes of a block of `count`, densely.
template <int count, int bits, int (*code)(Bytes, int)>
void copy_block_codes(const std::byte* block, std::byte* out) {
  const Bytes b(block);
  for (int i = 0; i < count; i += kCodeChunk) {
    uint64_t chunk = 0;
    for (int k = 0; k < kCodeChunk; ++k) chunk |= static_cast<uint64_t>(code(b, i + k)) << bits * k;
    std::memcpy(out + i / kCodeChunk * bits, &chunk, bits);
  }
}

/// The bits of an f16 of a block.
template <int at>
uint16_t half_bits(Bytes b) {
  return b.number<uint16_t>(at);
}
/// A minimum, where the block has what is added.
uint16_t negative_half_bits(Bytes b) { return half_bits<2>(b) ^ 0x8000; }
/// The bf16 of an exponent of two; the smallest is subnormal.
uint16_t exponent_bits(Bytes b) { return static_cast<uint16_t>(b[0] == 0 ? 0x0040 : b[0] << 7); }

struct PackedBlock {
  GgufType type;
  std::string_view format;
  void (*copy_codes)(const std::byte* block, std::byte* out);
  uint16_t (*scale)(Bytes b) = half_bits<0>;
  uint16_t (*minimum)(Bytes b) = nullptr;
  CodeParts (*parts)(Bytes b, int group) = nullptr;
};
constexpr PackedBlock kPackedBlocks[] = {
    {GgufType::Q4_0, "int4 g32 f16", copy_block_codes<kGroup, 4, nibble_code<2>>},
    {GgufType::Q4_1, "uint4 g32 f16 minima", copy_block_codes<kGroup, 4, nibble_code<4>>,
     half_bits<0>, negative_half_bits},
    {GgufType::Q5_0, "int5 g32 f16", copy_block_codes<kGroup, 5, q5_0_code>},
    {GgufType::Q5_1, "uint5 g32 f16 minima", copy_block_codes<kGroup, 5, q5_1_code>, half_bits<0>,
     negative_half_bits},
    {GgufType::Q8_0, "int8 g32 f16", copy_block_codes<kGroup, 8, q8_0_code>},
    {GgufType::Q4_K, "uint4 g32 f16x6 minima", copy_block_codes<kSuperBlock, 4, q4_k_code>,
     half_bits<0>, half_bits<2>, q4_k_parts},
    {GgufType::Q5_K, "uint5 g32 f16x6 minima", copy_block_codes<kSuperBlock, 5, q5_k_code>,
     half_bits<0>, half_bits<2>, q4_k_parts},
    {GgufType::Q6_K, "int6 g16 f16x8", copy_block_codes<kSuperBlock, 6, q6_k_code>, half_bits<208>,
     nullptr, q6_k_parts},
    {GgufType::IQ4_NL, "iq4nl g32 f16", copy_block_codes<kGroup, 4, nibble_code<2>>},
    {GgufType::IQ4_XS, "iq4nl g32 f16x6", copy_block_codes<kSuperBlock, 4, iq4_xs_code>,
     half_bits<0>, nullptr, iq4_xs_parts},
    {GgufType::MXFP4, "e2m1 g32 bf16", copy_block_codes<kGroup, 4, nibble_code<1>>, exponent_bits},
};

const PackedBlock* packed_block(GgufType type) {
  for (const PackedBlock& block : kPackedBlocks)
    if (block.type == type) return &block;
  return nullptr;
}

/// The numbers of a block in an operand, at `out`; `groups`: those of a block.
void copy_block(const PackedBlock& packed, BlockPart part, const std::byte* block, size_t groups,
                std::byte* out) {
  const auto put = [](std::byte* to, auto number) { std::memcpy(to, &number, sizeof number); };
  switch (part) {
    case BlockPart::codes:
      return packed.copy_codes(block, out);
    case BlockPart::scales:
      return put(out, packed.scale(Bytes(block)));
    case BlockPart::minima:
      return put(out, packed.minimum(Bytes(block)));
    case BlockPart::parts:
      for (size_t group = 0; group < groups; ++group)
        put(out + group * sizeof(int32_t),
            join_parts(packed.parts(Bytes(block), static_cast<int>(group))));
  }
}

}  // namespace

std::optional<CodeFormat> code_format_of(GgufType type) {
  const PackedBlock* block = packed_block(type);
  if (!block) return std::nullopt;
  return *parse_code_format(block->format);
}

void copy_part(GgufType type, BlockPart part, std::span<const std::byte> blocks,
               std::span<std::byte> out) {
  const PackedBlock& packed = *packed_block(type);
  const GgufTypeInfo& info = gguf_type_info(type);
  const size_t count = blocks.size() / static_cast<size_t>(info.block_bytes);
  const size_t bytes = out.size() / count;  // that a block fills
  for (size_t n = 0; n < count; ++n)
    copy_block(packed, part, blocks.data() + n * static_cast<size_t>(info.block_bytes),
               bytes / sizeof(int32_t), out.data() + n * bytes);
}

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
