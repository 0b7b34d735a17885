// Element types: the table dtypes.def as an enumeration, its rows, and all counting of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/error.h"

namespace sinter {

enum class DType : uint8_t {
#define SINTER_DTYPE(name, ...) name,
#include "ir/dtypes.def"
};

/// real: rounded numbers, computed with in float32. integer: wraps around. truth: 0 or 1.
enum class DTypeClass : uint8_t { real, integer, truth };

/// A row of dtypes.def, which says what the columns mean.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t bits;
  DTypeClass type_class;
  std::string_view memory, registers;
  std::string_view safetensors;
  std::optional<std::string_view> numpy;
  std::optional<int> library;
  int digits, least_exponent;
};

/// All rows, in the order of DType.
inline constexpr DTypeInfo kDTypes[] = {
#define SINTER_DTYPE(name, bits, type_class, memory, registers, safetensors, numpy, library, \
                     digits, least)                                                          \
  {DType::name,                                                                              \
   #name,                                                                                    \
   bits,                                                                                     \
   DTypeClass::type_class,                                                                   \
   #memory,                                                                                  \
   #registers,                                                                               \
   #safetensors,                                                                             \
   std::string_view(numpy).empty() ? std::nullopt : std::optional<std::string_view>(numpy),  \
   (library) < 0 ? std::nullopt : std::optional<int>(library),                               \
   digits,                                                                                   \
   least},
#include "ir/dtypes.def"
};

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }
constexpr std::string_view to_string(DType dtype) { return dtype_info(dtype).name; }
std::optional<DType> parse_dtype(std::string_view text);
constexpr bool is_float(DType dtype) { return dtype_info(dtype).type_class == DTypeClass::real; }

constexpr bool is_integer(DType dtype) {
  return dtype_info(dtype).type_class == DTypeClass::integer;
}

/// The value of a constant of an integer type: the nearest number that the type has, ties to even;
/// 0 for NaN.
int32_t nearest_i32(double value);
int64_t nearest_i64(double value);

/// Bytes of `elements` elements side by side, nullopt if the last byte is not full.
constexpr std::optional<int64_t> packed_bytes(int64_t bits, int64_t elements) {
  if (bits % 8 == 0) return bits / 8 * elements;
  if (elements % 8 * bits % 8 != 0) return std::nullopt;
  return elements / 8 * bits + elements % 8 * bits / 8;
}

/// Bytes of an element that has an address of its own; a type that packs several into a byte has
/// none, and a check fails.
int64_t whole_bytes(DType dtype);
/// Bytes of a run of elements that begins at an address and ends before one; a check fails where
/// the run's end is inside a byte.
int64_t storage_bytes(DType dtype, int64_t elements);
/// Bytes of an element, a fraction where several share a byte: for estimates of traffic.
constexpr double average_bytes(DType dtype) {
  return static_cast<double>(dtype_info(dtype).bits) / 8;
}
/// The most bytes of a value, far above any device's memory: sums of the bytes of all values of a
/// module stay below 2^63.
inline constexpr int64_t kMaxValueBytes = int64_t{1} << 48;
/// The most elements of a value; at most one a byte.
constexpr int64_t max_elements(DType dtype) {
  return kMaxValueBytes / std::max(1, static_cast<int>(dtype_info(dtype).bits) / 8);
}

}  // namespace sinter
