// The format of a quantized matrix: the attribute `codes` of the ops that read or write one.
//
//   "CODE GROUP SCALE [zeros] [minima]"
//       CODE     a row of formats.def
//       GROUP    "row": one scale a row; "g16", "g32", "g64", "g128": one for each run of this many
//                columns; the last group of a row may have fewer
//       SCALE    f32, f16 or bf16; minima have the same type
//                f16x6, f16x8: a group has an integer of 6 or 8 bits, its part, which is
//                multiplied by an f16 of kCodeRound columns. Parts of 8 bits are -128 .. 127, of 6
//                bits -32 .. 31, or beside minima 0 .. 63; f16x6 has minima of such parts, too
//       zeros    a zero point for each scale, an integer of 16 bits
//       minima   a minimum for each scale
#pragma once

#include <string>
#include <string_view>

#include "ir/attributes.h"
#include "ir/packed_codes.h"

namespace sinter {

enum class Code : uint8_t {
#define SINTER_CODE(name, ...) name,
#include "ir/formats.def"
};

/// A row of formats.def.
struct CodeInfo {
  std::string_view name;
  int64_t bits;
  double largest;
  bool integer;
};
const CodeInfo& code_info(Code code);
std::optional<Code> parse_code(std::string_view text);

struct CodeFormat {
  Code code = Code::int8;
  int64_t group = 0;  // columns of a scale: 16, 32, 64 or 128; 0: all of a row
  DType scale = DType::f32;
  bool zeros = false, minima = false;
  int part_bits = 0;  // of the integers by which the f16 of kCodeRound columns is multiplied, or 0

  int64_t bits() const { return code_info(code).bits; }
  CodeLayout layout() const {
    return {static_cast<int>(bits()),
            static_cast<int>(group),
            static_cast<int>(dtype_info(scale).bits / 8),
            zeros,
            minima,
            part_bits};
  }
  friend bool operator==(const CodeFormat&, const CodeFormat&) = default;
};

/// The format that a text names; the error says which word is wrong.
Result<CodeFormat> parse_code_format(std::string_view text);
std::string to_string(const CodeFormat& format);
/// The format of an op that has the attribute `codes`, and passed inference.
CodeFormat code_format(const Attributes& attrs);

/// Counts for a row of `length` codes: its groups, its numbers of the type `scale` (a group's, or
/// factors of parts), 32-bit words of its dense codes, words of the packed row.
int64_t code_groups(const CodeFormat& format, int64_t length);
int64_t code_scales(const CodeFormat& format, int64_t length);
int64_t code_words(const CodeFormat& format, int64_t length);
int64_t row_words(const CodeFormat& format, int64_t length);

/// An element of the parts of pack_codes: the part of a scale in the lower 16 bits, the part of its
/// minimum in the upper ones.
inline int32_t join_parts(CodeParts parts) {
  return static_cast<int32_t>((static_cast<uint32_t>(parts.scale) & 0xffffu) |
                              static_cast<uint32_t>(parts.minimum) << 16);
}

/// The value of code `k` of a word.
float code_value(Code code, uint32_t word, int k);

}  // namespace sinter
