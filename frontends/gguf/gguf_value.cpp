#include "frontends/gguf/gguf_value.h"

#include <fmt/format.h>

#include <cstring>

#include "ir/error.h"

namespace sinter {
namespace {

struct ValueTypeInfo {
  std::string_view name;
  uint64_t bytes;
};
constexpr ValueTypeInfo kValueTypes[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

const ValueTypeInfo& info_of(GgufValueType type) {
  return kValueTypes[static_cast<uint32_t>(type)];
}

template <typename T>
T load_number(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// Calls f with the element at `at` in its own type.
template <typename F>
auto visit_number(GgufValueType type, const std::byte* at, F&& f) {
  switch (type) {
    case GgufValueType::i8:
      return f(load_number<int8_t>(at));
    case GgufValueType::u16:
      return f(load_number<uint16_t>(at));
    case GgufValueType::i16:
      return f(load_number<int16_t>(at));
    case GgufValueType::u32:
      return f(load_number<uint32_t>(at));
    case GgufValueType::i32:
      return f(load_number<int32_t>(at));
    case GgufValueType::u64:
      return f(load_number<uint64_t>(at));
    case GgufValueType::i64:
      return f(load_number<int64_t>(at));
    case GgufValueType::f32:
      return f(load_number<float>(at));
    case GgufValueType::f64:
      return f(load_number<double>(at));
    default:  // u8 and truth values
      return f(load_number<uint8_t>(at));
  }
}

constexpr size_t kShownCharacters = 60;

}  // namespace

std::string_view to_string(GgufValueType type) { return info_of(type).name; }
uint64_t size_bytes(GgufValueType type) { return info_of(type).bytes; }

int64_t GgufNumbers::integer(size_t i) const {
  SINTER_CHECK(type_ != GgufValueType::f32 && type_ != GgufValueType::f64, "{}", to_string(type_));
  return visit_number(type_, bytes_.data() + i * size_bytes(type_),
                      [](auto value) { return static_cast<int64_t>(value); });
}

double GgufNumbers::real(size_t i) const {
  return visit_number(type_, bytes_.data() + i * size_bytes(type_),
                      [](auto value) { return static_cast<double>(value); });
}

std::string to_string(const GgufValue& value) {
  struct Text {
    std::string operator()(int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(uint64_t x) const { return fmt::format("{}", x); }
    std::string operator()(double x) const { return fmt::format("{:g}", x); }
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(const std::string& x) const {
      return fmt::format("\"{}\"", printable(x, kShownCharacters));
    }
    std::string operator()(const GgufNumbers& x) const {
      return fmt::format("{} of {}", x.size(), to_string(x.type()));
    }
    std::string operator()(const GgufStrings& x) const {
      return fmt::format("{} strings", x.size());
    }
  };
  return std::visit(Text(), value);
}

}  // namespace sinter
