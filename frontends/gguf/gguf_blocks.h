// Values of the elements of GGUF's blocks, and what packed matrices have of them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "frontends/gguf/gguf_file.h"
#include "ir/code_format.h"

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

/// How packed matrices have the elements of a type; nullopt: they do not.
std::optional<CodeFormat> code_format_of(GgufType type);

/// An operand of pack_codes for one row or several, as NAME of coded_tensor.h.
enum class BlockPart : uint8_t { codes, scales, minima, parts };
/// Fills `out` with an operand of the rows that have `blocks`, of a type with a format.
void copy_part(GgufType type, BlockPart part, std::span<const std::byte> blocks,
               std::span<std::byte> out);

}  // namespace sinter
