// From the layouts of checkpoints to rows of codes, scales and zero points. Sizes were checked:
// every function is a copy of bits.
#pragma once

#include <cstddef>
#include <span>

#include "frontends/quantized/coded_tensor.h"

namespace sinter {

/// Whether the tensor of codes has the rows of coded_tensor.h as it is stored.
bool stores_rows(const CodedTensor& weight);
/// Rows of codes, `out` of coded_tensor.h, of the tensor as the scheme's layout has it.
void unpack_codes(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out);
/// Gives codes in such rows their signs, and sorts them. order: of inputs, empty if they stand as
/// they are.
void finish_codes(const CodedTensor& weight, std::span<const int32_t> order,
                  std::span<std::byte> out);
/// Scales of the weight's type.
void unpack_scales(const CodedTensor& weight, std::span<const std::byte> stored,
                   std::span<std::byte> out);
/// Zero points, as the codes are stored: signed in layout `plain`, else unsigned.
void unpack_zeros(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out);

}  // namespace sinter
