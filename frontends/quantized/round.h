// Rounds matrices of floats to codes and scales, in the layouts of compressed-tensors.
#pragma once

#include <cstddef>
#include <span>

#include "frontends/quantized/scheme.h"
#include "ir/types.h"

namespace sinter {

/// A format that weights are rounded to, by its name: a scale for each row, or for a group of
/// columns.
struct RoundedFormat {
  std::string_view name;
  WeightScheme scheme;  // symmetric, layout `packed` or `plain`
  WeightScheme table;   // of embedding tables: 8 bits, layout `plain`
};

/// fp8, int8, int4-g32, int4-g64, int4-g128.
std::span<const RoundedFormat> rounded_formats();
/// Null: there is none of that name.
const RoundedFormat* find_rounded_format(std::string_view name);

/// Bytes of a row's codes, and its scales. Groups divide the row.
size_t rounded_row_bytes(const WeightScheme& scheme, int64_t in);
int64_t rounded_row_scales(const WeightScheme& scheme, int64_t in);

/// Rounds a row to the nearest codes, ties to even. A scale is the largest magnitude of its group
/// over half of the distance between the least and the greatest code (448 of fp8, 127.5, 7.5),
/// rounded up to `scale`, a float type: each element is within half a step of its code's value. The
/// scale of zeros is 1. `codes` has rounded_row_bytes(), `scales` rounded_row_scales() elements.
/// False: a value is not finite, or too large for a scale of the type.
bool round_row(const WeightScheme& scheme, DType scale, std::span<const float> row,
               std::span<std::byte> codes, std::span<std::byte> scales);

}  // namespace sinter
