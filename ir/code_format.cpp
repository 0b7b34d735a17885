#include "ir/code_format.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>

#include "ir/integers.h"

namespace sinter {
namespace {

constexpr CodeInfo kCodes[] = {
#define SINTER_CODE(name, bits, largest, integer) {#name, bits, largest, integer},
#include "ir/formats.def"
};

constexpr int64_t kGroups[] = {16, 32, 64, 128};

std::string_view view(llvm::StringRef text) { return {text.data(), text.size()}; }

std::optional<int64_t> parse_group(std::string_view text) {
  if (text == "row") return 0;
  for (const int64_t group : kGroups)
    if (text == fmt::format("g{}", group)) return group;
  return std::nullopt;
}

struct ScaleName {
  std::string_view name;
  DType type;
  int part_bits;
};
constexpr ScaleName kScales[] = {{"f32", DType::f32, 0},
                                 {"f16", DType::f16, 0},
                                 {"bf16", DType::bf16, 0},
                                 {"f16x6", DType::f16, 6},
                                 {"f16x8", DType::f16, 8}};

std::string_view scale_name(const CodeFormat& format) {
  for (const ScaleName& scale : kScales)
    if (scale.type == format.scale && scale.part_bits == format.part_bits) return scale.name;
  SINTER_CHECK(false, "the type of a scale");
}

/// What is wrong with scales of parts; empty: nothing.
std::string_view fault_of_parts(const CodeFormat& format) {
  if (format.part_bits == 0) return {};
  if (format.bits() == 8 || format.zeros)
    return "scales of parts take codes of 4 to 6 bits, no zeros";
  if (format.group != 16 && format.group != 32)
    return "scales of parts take the groups g16 and g32";
  if (format.part_bits == 8 && format.minima) return "only scales f16x6 have minima";
  return {};
}

}  // namespace

const CodeInfo& code_info(Code code) { return kCodes[static_cast<size_t>(code)]; }

std::optional<Code> parse_code(std::string_view text) {
  for (size_t i = 0; i < std::size(kCodes); ++i)
    if (kCodes[i].name == text) return static_cast<Code>(i);
  return std::nullopt;
}

Result<CodeFormat> parse_code_format(std::string_view text) {
  const auto reject = [&](std::string_view why) {
    return fail(fmt::format("codes \"{}\": {}", printable(text), why));
  };
  llvm::SmallVector<llvm::StringRef, 5> words;
  llvm::StringRef(text.data(), text.size()).split(words, ' ');
  if (words.size() < 3) return reject("must be a code, a group and the type of a scale");
  CodeFormat format;
  const std::optional<Code> code = parse_code(view(words[0]));
  if (!code)
    return reject(
        "the code must be int8, uint8, int4, uint4, int5, uint5, int6, e4m3, e2m1 or "
        "iq4nl");
  format.code = *code;
  const std::optional<int64_t> group = parse_group(view(words[1]));
  if (!group) return reject("the group must be row, g16, g32, g64 or g128");
  format.group = *group;
  const auto* scale =
      llvm::find_if(kScales, [&](const ScaleName& s) { return s.name == view(words[2]); });
  if (scale == std::end(kScales)) return reject("a scale must be f32, f16, bf16, f16x6 or f16x8");
  format.scale = scale->type;
  format.part_bits = scale->part_bits;
  llvm::ArrayRef<llvm::StringRef> rest = llvm::ArrayRef(words).drop_front(3);
  format.zeros = !rest.empty() && rest.front() == "zeros";
  if (format.zeros) rest = rest.drop_front();
  format.minima = !rest.empty() && rest.front() == "minima";
  if (format.minima) rest = rest.drop_front();
  if (!rest.empty()) return reject("after the scale may follow zeros, then minima");
  if (format.zeros && !code_info(format.code).integer)
    return reject("only codes of integers have zeros");
  if (const std::string_view fault = fault_of_parts(format); !fault.empty()) return reject(fault);
  return format;
}

std::string to_string(const CodeFormat& format) {
  return fmt::format("{} {} {}{}{}", code_info(format.code).name,
                     format.group == 0 ? "row" : fmt::format("g{}", format.group),
                     scale_name(format), format.zeros ? " zeros" : "",
                     format.minima ? " minima" : "");
}

CodeFormat code_format(const Attributes& attrs) {
  const auto format = parse_code_format(attrs.get<std::string>(AttrName::codes));
  SINTER_CHECK(format.has_value(), "codes of an op that passed inference");
  return *format;
}

int64_t code_groups(const CodeFormat& format, int64_t length) {
  return format.group == 0 ? 1 : ceil_div(length, format.group);
}

int64_t code_scales(const CodeFormat& format, int64_t length) {
  return format.part_bits == 0 ? code_groups(format, length)
                               : ceil_div(length, int64_t{kCodeRound});
}

int64_t code_words(const CodeFormat& format, int64_t length) {
  return ceil_div(length * format.bits(), int64_t{32});
}

int64_t row_words(const CodeFormat& format, int64_t length) {
  return format.layout().row_bytes(length) / 4;
}

float code_value(Code code, uint32_t word, int k) {
  switch (code) {
#define SINTER_CODE(name, ...) \
  case Code::name:             \
    return codes::name::value(word, k);
#include "ir/formats.def"
  }
  SINTER_CHECK(false, "code");
}

}  // namespace sinter
