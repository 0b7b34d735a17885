// A value of a GGUF file's metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sinter {

/// The number that names a type in the file.
enum class GgufValueType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
std::string_view to_string(GgufValueType type);
/// Bytes of a number or a truth value; 0 for strings and arrays.
uint64_t size_bytes(GgufValueType type);

/// An array of numbers or truth values, as the file has them.
class GgufNumbers {
 public:
  GgufNumbers(GgufValueType type, std::vector<std::byte> bytes)
      : type_(type), bytes_(std::move(bytes)) {}
  GgufValueType type() const { return type_; }
  size_t size() const { return bytes_.size() / size_bytes(type_); }
  /// Element i of an array of integers or truth values; a u64 above int64_t wraps around.
  int64_t integer(size_t i) const;
  /// Element i as a double, for every type.
  double real(size_t i) const;

 private:
  GgufValueType type_;
  std::vector<std::byte> bytes_;
};

/// An array of strings, one behind the other.
class GgufStrings {
 public:
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  void reserve(size_t count) { ends_.reserve(count); }
  void add(std::string_view text) {
    text_ += text;
    ends_.push_back(text_.size());
  }

 private:
  std::string text_;
  std::vector<uint64_t> ends_;
};

/// Integers are int64_t, a u64 above its range uint64_t.
using GgufValue =
    std::variant<int64_t, uint64_t, double, bool, std::string, GgufNumbers, GgufStrings>;

/// For people, on one line: `3.5`, `"llama"`, `128256 strings`. A long string is cut.
std::string to_string(const GgufValue& value);

}  // namespace sinter
