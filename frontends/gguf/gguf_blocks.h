// Values of the elements of GGUF's blocks.
#pragma once

#include <cstddef>

#include "frontends/gguf/gguf_file.h"

namespace sinter {

/// Writes the elements of one block as float32. Each product and sum is rounded once, in the order
/// of the `gguf` package.
using Dequantize = void (*)(const std::byte* block, float* out);

/// Null: the type is not read. F32, F16 and BF16 have no blocks and are not in the table.
Dequantize dequantize_of(GgufType type);
/// The types of the table, separated by commas.
std::string dequantized_types();

/// Whether a block has a scale without a value: the exponent 255 of MXFP4.
bool has_invalid_scale(GgufType type, const std::byte* block);

}  // namespace sinter
