// From the layouts of checkpoints to rows of codes, scales and zero points. Sizes were checked:
// every function is a copy of bits.
#pragma once

#include <cstddef>
#include <span>

#include "frontends/quantized/coded_tensor.h"

namespace sinter {

/// `stored` is the tensor of codes as the scheme's layout has it, `out` that of coded_tensor.h.
/// order: of inputs, empty if they stand as they are.
void unpack_codes(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<const int32_t> order, std::span<std::byte> out);
/// Scales of the weight's type.
void unpack_scales(const CodedTensor& weight, std::span<const std::byte> stored,
                   std::span<std::byte> out);
/// Zero points, as the codes are stored: signed in layout `plain`, else unsigned.
void unpack_zeros(const CodedTensor& weight, std::span<const std::byte> stored,
                  std::span<std::byte> out);

}  // namespace sinter
