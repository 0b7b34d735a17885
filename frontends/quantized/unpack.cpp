#include "frontends/quantized/unpack.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/packed_codes.h"

namespace sinter {
namespace {

constexpr int64_t kTile = 64;  // rows and columns that are transposed at once
constexpr int64_t kAwqColumns[] = {0, 2, 4, 6, 1, 3, 5, 7};  // of the fields of a word

uint32_t word_at(std::span<const std::byte> bytes, int64_t index) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + 4 * index, sizeof word);
  return word;
}

void put_word(std::span<std::byte> bytes, int64_t index, uint32_t word) {
  std::memcpy(bytes.data() + 4 * index, &word, sizeof word);
}

/// Field `index` of a dense stream, whose bits divide 32.
uint32_t field_of(std::span<const std::byte> words, int64_t index, int bits) {
  const int64_t bit = index * bits;
  return word_at(words, bit / 32) >> (bit % 32) & ((1u << bits) - 1);
}

/// Words [rows, columns] to [columns, rows].
void transpose(std::span<const std::byte> in, int64_t rows, int64_t columns,
               std::span<std::byte> out) {
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t c = c0; c < std::min(c0 + kTile, columns); ++c)
        for (int64_t r = r0; r < std::min(r0 + kTile, rows); ++r)
          put_word(out, c * rows + r, word_at(in, r * columns + c));
}

/// 8 x 8 fields of 4 bits: field j of word k becomes field k of word j. Halves of blocks of 8, 4
/// and 2 words change places across the diagonal.
void transpose_fields(uint32_t (&words)[8]) {
  for (const auto& [half, mask] :
       {std::pair(4, 0x0000ffffu), std::pair(2, 0x00ff00ffu), std::pair(1, 0x0f0f0f0fu)})
    for (int i = 0; i < 8; ++i) {
      if ((i & half) != 0) continue;
      const uint32_t changed = (words[i] >> 4 * half ^ words[i + half]) & mask;
      words[i + half] ^= changed;
      words[i] ^= changed << 4 * half;
    }
}

/// Words [in, out/8] of 8 interleaved columns to rows of codes.
void transpose_awq(const CodedTensor& weight, std::span<const std::byte> in,
                   std::span<std::byte> out) {
  constexpr int64_t kWords = 16;  // of a tile along both axes: a cache line
  const int64_t columns = weight.out / 8, words = weight.words();
  for (int64_t w0 = 0; w0 < words; w0 += kWords)
    for (int64_t c0 = 0; c0 < columns; c0 += kWords)
      for (int64_t w = w0; w < std::min(w0 + kWords, words); ++w)
        for (int64_t c = c0; c < std::min(c0 + kWords, columns); ++c) {
          uint32_t fields[8] = {};
          const int64_t count = std::min<int64_t>(8, weight.in - 8 * w);
          for (int64_t j = 0; j < count; ++j) fields[j] = word_at(in, (8 * w + j) * columns + c);
          transpose_fields(fields);
          for (int k = 0; k < 8; ++k)
            put_word(out, (8 * c + kAwqColumns[k]) * words + w, fields[k]);
        }
}

/// Sorts the codes of each row: code i becomes the code of input order[i].
template <int bits>
void sort_inputs(const CodedTensor& weight, std::span<const int32_t> order,
                 std::span<std::byte> codes) {
  constexpr size_t kInByte = 8 / bits;
  const size_t row_bytes = 4 * static_cast<size_t>(weight.words());
  std::vector<uint8_t> row(row_bytes * kInByte);  // a code each
  for (size_t o = 0; o < static_cast<size_t>(weight.out); ++o) {
    const auto to = codes.subspan(o * row_bytes, row_bytes);
    for (size_t b = 0; b < row_bytes; ++b)
      for (size_t k = 0; k < kInByte; ++k)
        row[b * kInByte + k] = std::to_integer<uint8_t>(to[b]) >> k * bits & ((1u << bits) - 1);
    std::ranges::fill(to, std::byte{0});
    for (size_t i = 0; i < order.size(); ++i)
      to[i / kInByte] |=
          std::byte(static_cast<uint8_t>(row[static_cast<size_t>(order[i])] << i % kInByte * bits));
  }
}

/// Where the layout stores scale (row, group) of coded_tensor.h.
class ScalePlace {
 public:
  explicit ScalePlace(const CodedTensor& weight) : weight_(weight) {
    const WeightScheme& scheme = weight.scheme;
    const int64_t size = scheme.strategy == ScaleStrategy::group   ? scheme.group
                         : scheme.strategy == ScaleStrategy::block ? kScaleBlock
                                                                   : weight.in;
    stored_groups_ = (weight.in + size - 1) / size;
    ratio_ = scheme.strategy == ScaleStrategy::group ? scheme.group / weight.group() : 1;
  }
  int64_t group(int64_t group) const { return group / ratio_; }
  int64_t stored_groups() const { return stored_groups_; }
  int64_t operator()(int64_t row, int64_t group) const {
    switch (weight_.scheme.strategy) {
      case ScaleStrategy::tensor:
        return 0;
      case ScaleStrategy::block:
        return row / kScaleBlock * stored_groups_ + group;
      case ScaleStrategy::channel:
      case ScaleStrategy::group:
        break;
    }
    const WeightLayout layout = weight_.scheme.layout;
    return layout == WeightLayout::gptq || layout == WeightLayout::awq
               ? this->group(group) * weight_.out + row
               : row * stored_groups_ + this->group(group);
  }

 private:
  const CodedTensor& weight_;
  int64_t stored_groups_ = 1, ratio_ = 1;
};

/// Scales of a byte, and their factor.
void widen_scales(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out) {
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto byte = std::to_integer<uint32_t>(stored[i]);
    if (weight.scheme.exponents) {
      // 2^(byte - 127) as a bf16, which has no normal number 2^-127; 255 is NaN.
      const auto bits = static_cast<math::u16>(byte == 0     ? 0x0040
                                               : byte == 255 ? 0x7fc0
                                                             : byte << 7);
      std::memcpy(out.data() + i * sizeof bits, &bits, sizeof bits);
      continue;
    }
    const float part = codes::e4m3::value(byte, 0);
    const float scale = weight.scheme.layout == WeightLayout::modelopt ? part * weight.factor
                                                                       : part / weight.factor;
    std::memcpy(out.data() + i * sizeof scale, &scale, sizeof scale);
  }
}

}  // namespace

bool stores_rows(const CodedTensor& weight) {
  switch (weight.scheme.layout) {
    case WeightLayout::gptq:
    case WeightLayout::awq:
      return false;
    case WeightLayout::packed:
      return true;
    case WeightLayout::plain:
    case WeightLayout::inverse:
    case WeightLayout::pairs:
    case WeightLayout::modelopt:
      break;
  }
  return weight.in * weight.scheme.bits % 32 == 0;
}

void unpack_codes(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out) {
  const auto row_bytes = 4 * static_cast<size_t>(weight.words());
  switch (weight.scheme.layout) {
    case WeightLayout::gptq:
      transpose(stored, weight.words(), weight.out, out);
      break;
    case WeightLayout::awq:
      transpose_awq(weight, stored, out);
      break;
    case WeightLayout::packed:
      std::copy(stored.begin(), stored.end(), out.begin());
      break;
    case WeightLayout::plain:
    case WeightLayout::inverse:
    case WeightLayout::pairs:
    case WeightLayout::modelopt: {
      const auto in = static_cast<size_t>(weight.in * weight.scheme.bits / 8);
      for (size_t o = 0; o < static_cast<size_t>(weight.out); ++o) {
        const auto row = out.subspan(o * row_bytes, row_bytes);
        std::copy_n(stored.begin() + static_cast<ptrdiff_t>(o * in), in, row.begin());
        std::fill(row.begin() + static_cast<ptrdiff_t>(in), row.end(), std::byte{0});
      }
      break;
    }
  }
}

void finish_codes(const CodedTensor& weight, std::span<const int32_t> order,
                  std::span<std::byte> out) {
  // Stored bytes are signed codes plus 128: only the highest bit differs.
  const bool shifted =
      weight.scheme.layout == WeightLayout::gptq || weight.scheme.layout == WeightLayout::packed;
  if (shifted && weight.scheme.bits == 8 && !weight.unsigned_codes())
    for (std::byte& code : out) code ^= std::byte{0x80};
  if (order.empty()) return;
  weight.scheme.bits == 4 ? sort_inputs<4>(weight, order, out) : sort_inputs<8>(weight, order, out);
}

void unpack_scales(const CodedTensor& weight, std::span<const std::byte> stored,
                   std::span<std::byte> out) {
  if (weight.small_scales()) return widen_scales(weight, stored, out);
  const ScalePlace place(weight);
  const auto bytes = static_cast<size_t>(storage_bytes(weight.scale, 1));
  std::byte* to = out.data();
  for (int64_t o = 0; o < weight.out; ++o)
    for (int64_t g = 0; g < weight.groups(); ++g, to += bytes)
      std::memcpy(to, stored.data() + static_cast<size_t>(place(o, g)) * bytes, bytes);
}

void unpack_zeros(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out) {
  const ScalePlace place(weight);
  const WeightScheme& scheme = weight.scheme;
  const int64_t words_out = (weight.out * scheme.bits + 31) / 32;
  int64_t index = 0;
  for (int64_t o = 0; o < weight.out; ++o)
    for (int64_t g = 0; g < weight.groups(); ++g, ++index) {
      int32_t zero = 0;
      switch (scheme.layout) {
        case WeightLayout::gptq:
          zero = static_cast<int32_t>(
              field_of(stored, place.group(g) * words_out * (32 / scheme.bits) + o, scheme.bits));
          zero += scheme.zeros_less_one ? 1 : 0;
          break;
        case WeightLayout::awq: {
          const auto* field = std::find(std::begin(kAwqColumns), std::end(kAwqColumns), o % 8);
          zero = static_cast<int32_t>(
              field_of(stored, place.group(g) * weight.out + o / 8 * 8 + (field - kAwqColumns), 4));
          break;
        }
        case WeightLayout::packed: {
          const int64_t in_word = 32 / scheme.bits;
          const uint32_t word =
              word_at(stored, o / in_word * place.stored_groups() + place.group(g));
          zero =
              static_cast<int32_t>(word >> o % in_word * scheme.bits & ((1u << scheme.bits) - 1));
          break;
        }
        case WeightLayout::plain:
          zero = static_cast<int8_t>(stored[static_cast<size_t>(place(o, g))]);
          break;
        case WeightLayout::inverse:
        case WeightLayout::pairs:
        case WeightLayout::modelopt:
          break;
      }
      put_word(out, index, static_cast<uint32_t>(zero));
    }
}

}  // namespace sinter
