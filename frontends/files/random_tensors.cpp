#include "frontends/files/random_tensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace sinter {
namespace {

/// A bijection of 64 bits in which every input bit moves every output bit (the finalizer of
/// SplitMix64).
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The stream of one tensor: elements 2i and 2i + 1 share mix(key + i * golden).
constexpr uint64_t golden = 0x9E3779B97F4A7C15u;

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t key = mix(seed + golden);
  for (unsigned char c : name) key = mix(key ^ c) + golden;
  return key;
}

/// An element is a sum of four bytes: an integer of [0, 1020], close to normal, mean 510, sigma
/// 147.8. So few values fit a table, which takes conversion out of the loop.
constexpr int mean = 510;
constexpr size_t levels = 2 * mean + 1;

/// The sums of the low and of the high four bytes, in bits 0-15 and 32-47.
uint64_t byte_sums(uint64_t bits) {
  constexpr uint64_t even_bytes = 0x00FF00FF00FF00FFu;
  const uint64_t pairs = (bits & even_bytes) + (bits >> 8 & even_bytes);
  return pairs + (pairs >> 16);
}

/// At most eleven significant bits, so that f16 holds every one exactly.
float near_zero(int level) { return static_cast<float>(level - mean) * 0x1p-13f; }
float near_one(int level) { return 1.0f + static_cast<float>((level - mean) / 8) * 0x1p-10f; }

/// `value` is one of those above: zero or normal in f16, with bits to spare.
uint16_t to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const uint32_t half = magnitude == 0 ? 0 : (magnitude >> 13) - ((127 - 15) << 10);
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// `out` need not be aligned: a block is made in place and copied.
template <typename T, typename Element>
void fill(std::span<std::byte> out, uint64_t key, Element element) {
  std::array<T, levels> table;
  for (size_t level = 0; level < levels; ++level) table[level] = element(static_cast<int>(level));
  constexpr size_t block = 1024;
  std::array<T, block> values;
  const size_t count = out.size() / sizeof(T);
  for (size_t start = 0; start < count; start += block) {
    for (size_t i = 0; i < block; i += 2) {
      const uint64_t sums = byte_sums(mix(key + (start + i) / 2 * golden));
      values[i] = table[sums & 0xFFFF];
      values[i + 1] = table[sums >> 32 & 0xFFFF];
    }
    std::memcpy(out.data() + start * sizeof(T), values.data(),
                std::min(block, count - start) * sizeof(T));
  }
}

void fill_as(DType dtype, std::span<std::byte> out, uint64_t key, float (*value)(int)) {
  switch (dtype) {
    case DType::f32:
      return fill<float>(out, key, value);
    case DType::f16:
      return fill<uint16_t>(out, key, [=](int l) { return to_f16(value(l)); });
    case DType::bf16:
      return fill<uint16_t>(out, key, [=](int l) { return to_bf16(value(l)); });
    case DType::i32:
      return fill<int32_t>(out, key, [](int l) { return l % 2; });
    case DType::i64:
      return fill<int64_t>(out, key, [](int l) { return int64_t{l % 2}; });
    case DType::i1:
      return fill<uint8_t>(out, key, [](int l) { return static_cast<uint8_t>(l % 2); });
  }
}

/// Words of codes, or parts of scales, all of whose bits are random but one of each byte: so no
/// byte is a NaN of e4m3.
void fill_codes(std::span<std::byte> out, uint64_t key) {
  constexpr uint64_t kept = 0xF7F7F7F7F7F7F7F7u;
  for (size_t at = 0; at < out.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = mix(key + at / sizeof(uint64_t) * golden) & kept;
    std::memcpy(out.data() + at, &bits, std::min(sizeof bits, out.size() - at));
  }
}

/// Scales, which keep products with codes near those with other weights.
float small_scale(int level) { return near_one(level) * 0x1p-10f; }

bool is_norm_weight(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view text = lower;
  return (text.find("norm") != text.npos || text.find("ln_") != text.npos) &&
         (text.ends_with("weight") || text.ends_with("gamma"));
}

}  // namespace

std::optional<TensorType> RandomTensorSource::find(std::string_view name) const {
  auto at = types_.find(name);
  if (at == types_.end()) return std::nullopt;
  return at->second;
}

Status RandomTensorSource::read(std::string_view name, std::span<std::byte> out) const {
  auto at = types_.find(name);
  if (at == types_.end()) return tl::make_unexpected(missing(name));
  const uint64_t key = stream_key(seed_, name);
  if (at->second.dtype == DType::i32 && (name.ends_with(".codes") || name.ends_with(".parts")))
    fill_codes(out, key);
  else
    fill_as(at->second.dtype, out, key,
            name.ends_with(".scales") ? small_scale
            : is_norm_weight(name)    ? near_one
                                      : near_zero);
  return {};
}

}  // namespace sinter
