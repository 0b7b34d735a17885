// A number of a constant or of a literal, exact until an element type rounds it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "ir/dtype.h"

namespace sinter {

/// A double, or an int64 that no double equals. Each element type rounds it once: an i64 keeps
/// every integer, and no integer passes through a double on its way to a float type.
class Number {
 public:
  Number() = default;
  Number(double value) : value_(value) {}
  template <std::signed_integral T>
  Number(T value) : value_(from_integer(value)) {}

  /// The integer, where no double equals it.
  std::optional<int64_t> beyond_double() const;

  /// The nearest double, ties to even.
  double to_double() const;
  /// The nearest number of a float type, ties to even.
  float to_float(DType dtype) const;
  /// The nearest number of the type, ties to even; 0 for NaN.
  int32_t to_i32() const;
  int64_t to_i64() const;
  /// True for all but 0.
  bool to_i1() const;

  /// Equality of bits: +0 and -0 are two numbers, and a NaN equals itself.
  friend bool operator==(const Number& a, const Number& b) { return a.key() == b.key(); }
  /// Numbers are equal if their keys are.
  std::pair<bool, uint64_t> key() const;

 private:
  using Value = std::variant<double, int64_t>;
  static Value from_integer(int64_t value);

  Value value_ = 0.0;
};

}  // namespace sinter
