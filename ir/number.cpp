#include "ir/number.h"

#include <bit>

#include "ir/scalar_math.h"

namespace sinter {

Number::Value Number::from_integer(int64_t value) {
  const double real = static_cast<double>(value);
  const bool exact = real < 0x1p63 && static_cast<int64_t>(real) == value;
  return exact ? Value(real) : Value(value);
}

std::optional<int64_t> Number::beyond_double() const {
  const int64_t* integer = std::get_if<int64_t>(&value_);
  return integer ? std::optional(*integer) : std::nullopt;
}

double Number::to_double() const {
  return std::visit([](auto value) { return static_cast<double>(value); }, value_);
}

float Number::to_float(DType dtype) const {
  const int64_t* integer = std::get_if<int64_t>(&value_);
  const double real = integer ? 0 : std::get<double>(value_);
  switch (dtype) {
    case DType::f32:
      return integer ? math::i64_to_float(*integer) : static_cast<float>(real);
    case DType::f16:
      return math::f16_to_float(integer ? math::i64_to_f16(*integer) : math::double_to_f16(real));
    case DType::bf16:
      return math::bf16_to_float(integer ? math::i64_to_bf16(*integer)
                                         : math::double_to_bf16(real));
    default:
      SINTER_CHECK(false, "{} is no float type", to_string(dtype));
  }
}

int32_t Number::to_i32() const {
  const int64_t* integer = std::get_if<int64_t>(&value_);
  if (!integer) return nearest_i32(std::get<double>(value_));
  return math::i64_to_i32(*integer);
}

int64_t Number::to_i64() const {
  const int64_t* integer = std::get_if<int64_t>(&value_);
  return integer ? *integer : nearest_i64(std::get<double>(value_));
}

bool Number::to_i1() const {
  return std::visit([](auto value) { return value != 0; }, value_);
}

std::pair<bool, uint64_t> Number::key() const {
  if (const int64_t* integer = std::get_if<int64_t>(&value_))
    return {true, static_cast<uint64_t>(*integer)};
  return {false, std::bit_cast<uint64_t>(std::get<double>(value_))};
}

}  // namespace sinter
