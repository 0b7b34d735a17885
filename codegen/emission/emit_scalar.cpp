#include "codegen/emission/emit_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/fault.h"
#include "ir/scalar_math.h"

namespace sinter {
namespace {

std::string float_literal(float value) {
  if (std::isnan(value)) return "math::nan()";
  if (value == 0 && std::signbit(value)) return "math::minus_zero()";
  if (std::isinf(value)) return value < 0 ? "(-math::infinity())" : "math::infinity()";
  if (fault(Fault::wrong_constant)) value = math::bits_float(math::float_bits(value) ^ 1u);
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex);
  const std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  return std::signbit(value) ? fmt::format("(-0x{}f)", text) : fmt::format("0x{}f", text);
}

constexpr int64_t kAccessBits = 128;  // of one access to memory

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

int64_t chunk_alignment(DType dtype) {
  return std::min<int64_t>(8, kAccessBits / dtype_info(dtype).bits);
}

std::string literal_code(const Number& value, DType dtype) {
  if (is_float(dtype)) return float_literal(value.to_float(dtype));
  if (dtype == DType::i1) return value.to_i1() ? "true" : "false";
  if (dtype == DType::i64) {
    const int64_t integer = value.to_i64();
    if (integer == INT64_MIN) return "(-9223372036854775807ll - 1)";
    return integer < 0 ? fmt::format("({}ll)", integer) : fmt::format("{}ll", integer);
  }
  const int32_t integer = value.to_i32();
  if (integer == INT32_MIN) return "(-2147483647 - 1)";
  return integer < 0 ? fmt::format("({})", integer) : fmt::format("{}", integer);
}

std::string rounded_code(std::string expression, DType dtype) {
  if (!is_narrow(dtype) || fault(Fault::dropped_rounding)) return expression;
  return fmt::format("round_{}({})", to_string(dtype), expression);
}

std::string formula_code(OpKind kind, llvm::ArrayRef<std::string> operands) {
  const std::string_view formula = op_info(kind).formula;
  const bool swap = operands.size() == 2 && kind != OpKind::add && kind != OpKind::mul &&
                    fault(Fault::swapped_operands);
  std::string text;
  for (size_t i = 0; i < formula.size();) {
    size_t end = i;
    while (end < formula.size() && is_word(formula[end])) ++end;
    if (end == i) {
      text += formula[i++];
      continue;
    }
    const std::string_view word = formula.substr(i, end - i);
    const bool digit = word[0] >= '0' && word[0] <= '9';
    if (end < formula.size() && formula[end] == '(')
      text += fmt::format("math::{}", word);
    else if (word.size() == 1 && !digit)
      text += operands[swap ? 1 - static_cast<size_t>(word[0] - 'a')
                            : static_cast<size_t>(word[0] - 'a')];
    else
      text += word;
    // "1.0f" is a number, not two words.
    if (digit && end < formula.size() && formula[end] == '.') {
      do text += formula[end++];
      while (end < formula.size() && is_word(formula[end]));
    }
    i = end;
  }
  return text;
}

const char* reduction_type(const Op& op) {
  const bool sums = op.kind == OpKind::reduce_sum;
  if (is_float(op.type.dtype)) return sums ? "Sum" : "Max";
  return sums ? "IntSum" : "IntMax";
}

bool is_free_cast(DType from, DType to) {
  return from == to || (is_float(from) && to == DType::f32);
}

std::string cast_code(const std::string& operand, DType from, DType to) {
  if (is_free_cast(from, to)) return operand;
  if (is_float(from) && is_float(to)) return rounded_code(operand, to);
  if (to == DType::i1) return fmt::format("{} != 0", operand);
  if (from == DType::i1)
    return fmt::format("{} ? {} : {}", operand, literal_code(1, to), literal_code(0, to));
  if (is_float(from)) return fmt::format("math::float_to_{}({})", to_string(to), operand);
  if (to == DType::i64) return fmt::format("static_cast<long long>({})", operand);
  if (to == DType::i32) return fmt::format("math::i64_to_i32({})", operand);
  if (to == DType::f32) return fmt::format("math::{}_to_float({})", to_string(from), operand);
  return fmt::format("math::{0}_to_float(math::{1}_to_{0}({2}))", to_string(to), to_string(from),
                     operand);
}

}  // namespace sinter
