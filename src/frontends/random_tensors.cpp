#include "frontends/random_tensors.h"

#include <algorithm>
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

/// The stream of one tensor: element i draws mix(key + i * golden).
uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t key = mix(seed + 0x9E3779B97F4A7C15u);
  for (unsigned char c : name) key = mix(key ^ c) + 0x9E3779B97F4A7C15u;
  return key;
}

uint64_t draw(uint64_t key, uint64_t index) { return mix(key + index * 0x9E3779B97F4A7C15u); }

/// A sum of four uniforms, close to normal: an integer of [-1024, 1024], sigma 295.6. Eleven
/// significant bits at most, so that f16 holds every multiple of a power of two exactly.
int32_t bell(uint64_t bits) {
  int32_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int32_t>(bits >> shift & 0xFFFF);
  return (sum - 131070) >> 7;
}

float near_zero(uint64_t bits) { return static_cast<float>(bell(bits)) * 0x1p-14f; }
float near_one(uint64_t bits) { return 1.0f + static_cast<float>(bell(bits) >> 4) * 0x1p-10f; }

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
  constexpr size_t block = 1024;
  T values[block];
  const size_t count = out.size() / sizeof(T);
  for (size_t start = 0; start < count; start += block) {
    const size_t length = std::min(block, count - start);
    for (size_t i = 0; i < length; ++i) values[i] = element(draw(key, start + i));
    std::memcpy(out.data() + start * sizeof(T), values, length * sizeof(T));
  }
}

template <typename Element>
void fill_as(DType dtype, std::span<std::byte> out, uint64_t key, Element value) {
  switch (dtype) {
    case DType::f32: return fill<float>(out, key, value);
    case DType::f16: return fill<uint16_t>(out, key, [=](uint64_t b) { return to_f16(value(b)); });
    case DType::bf16:
      return fill<uint16_t>(out, key, [=](uint64_t b) { return to_bf16(value(b)); });
    case DType::i32:
      return fill<int32_t>(out, key, [](uint64_t b) { return static_cast<int32_t>(b >> 63); });
    case DType::i1:
      return fill<uint8_t>(out, key, [](uint64_t b) { return static_cast<uint8_t>(b >> 63); });
  }
}

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
  if (is_norm_weight(name))
    fill_as(at->second.dtype, out, key, near_one);
  else
    fill_as(at->second.dtype, out, key, near_zero);
  return {};
}

}  // namespace sinter
