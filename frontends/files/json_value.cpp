// JsonValue and JsonView: what is done with a parsed document.
#include <fmt/format.h>
#include <llvm/Support/ConvertUTF.h>

#include <cmath>

#include "frontends/files/json.h"

namespace sinter {
namespace {

/// The value as an error shows it: scalars as written, containers by their kind.
std::string shown(const JsonValue* value) {
  if (value->is_null()) return "null";
  if (auto* b = value->boolean()) return *b ? "true" : "false";
  if (auto* n = value->integer()) return fmt::format("{}", *n);
  if (auto* n = value->real()) return fmt::format("{}", *n);
  if (auto* n = value->oversized()) return to_string(*n);
  if (auto* s = value->string()) return fmt::format("\"{}\"", printable(*s, 60));
  if (auto* a = value->array()) return fmt::format("an array of {}", a->size());
  return fmt::format("an object of {}", value->object()->size());
}

template <typename T>
std::string range_text(std::string_view kind, T low, T high) {
  const bool from = low > std::numeric_limits<T>::lowest();
  const bool to = high < std::numeric_limits<T>::max();
  if (from && to) return fmt::format("{} from {} to {}", kind, low, high);
  if (from) return fmt::format("{} >= {}", kind, low);
  if (to) return fmt::format("{} <= {}", kind, high);
  return std::string(kind);
}

}  // namespace

JsonValue::JsonValue() = default;
JsonValue::JsonValue(Variant value) : data(std::move(value)) {}
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

const JsonValue* JsonValue::find(std::string_view key) const {
  if (auto* members = object())
    for (const JsonMember& member : *members)
      if (member.key == key) return &member.value;
  return nullptr;
}

JsonView JsonView::operator[](std::string_view key) const {
  return JsonView(*file_, value_ ? value_->find(key) : nullptr, pointer_ + json_pointer_step(key));
}

JsonView JsonView::at(const JsonMember& member) const {
  return JsonView(*file_, &member.value, pointer_ + json_pointer_step(member.key));
}

JsonView JsonView::operator[](size_t index) const {
  const auto* array = value_ ? value_->array() : nullptr;
  return JsonView(*file_, array && index < array->size() ? &(*array)[index] : nullptr,
                  fmt::format("{}/{}", pointer_, index));
}

Result<int64_t> JsonView::integer(int64_t low, int64_t high) const {
  const int64_t* n = value_ ? value_->integer() : nullptr;
  if (!n || *n < low || *n > high) return mismatch(range_text("an integer", low, high));
  return *n;
}

Result<double> JsonView::number(double low, double high) const {
  const int64_t* whole = value_ ? value_->integer() : nullptr;
  const double* real = value_ ? value_->real() : nullptr;
  const JsonOversized* oversized = value_ ? value_->oversized() : nullptr;
  if (!whole && !real && !oversized) return mismatch(range_text("a number", low, high));
  const double n = whole ? static_cast<double>(*whole) : real ? *real : oversized->nearest;
  if (!(n >= low && n <= high)) return mismatch(range_text("a number", low, high));
  return n;
}

Result<bool> JsonView::boolean() const {
  const bool* b = value_ ? value_->boolean() : nullptr;
  if (!b) return mismatch("true or false");
  return *b;
}

Result<std::string> JsonView::string() const {
  const std::string* s = value_ ? value_->string() : nullptr;
  if (!s) return mismatch("a string");
  return *s;
}

Result<const JsonValue::Array*> JsonView::array() const {
  const JsonValue::Array* a = value_ ? value_->array() : nullptr;
  if (!a) return mismatch("an array");
  return a;
}

Result<const JsonValue::Object*> JsonView::object() const {
  const JsonValue::Object* o = value_ ? value_->object() : nullptr;
  if (!o) return mismatch("an object");
  return o;
}

Result<int64_t> JsonView::integer_or(int64_t fallback, int64_t low, int64_t high) const {
  return present() ? integer(low, high) : fallback;
}
Result<double> JsonView::number_or(double fallback, double low, double high) const {
  return present() ? number(low, high) : fallback;
}
Result<bool> JsonView::boolean_or(bool fallback) const { return present() ? boolean() : fallback; }
Result<std::string> JsonView::string_or(std::string fallback) const {
  return present() ? string() : std::move(fallback);
}

tl::unexpected<Error> JsonView::mismatch(std::string_view expected, std::string hint) const {
  if (!value_)
    return fail(fmt::format("the key is missing, expected {}", expected),
                hint.empty() ? "add it" : std::move(hint));
  return fail(fmt::format("expected {}, got {}", expected, shown(value_)), std::move(hint));
}

tl::unexpected<Error> JsonView::fail(std::string what, std::string hint) const {
  if (hint.empty()) hint = "correct this value";
  return sinter::fail(
      std::move(what),
      pointer_.empty() ? *file_ : fmt::format("{}: {}", *file_, printable(pointer_)),
      std::move(hint));
}

bool is_utf8(std::string_view text) {
  auto* begin = reinterpret_cast<const llvm::UTF8*>(text.data());
  return llvm::isLegalUTF8String(&begin, begin + text.size());
}

std::string to_string(const JsonOversized& number) {
  return fmt::format("{}, which does not fit {}", printable(number.spelling, 60),
                     std::isfinite(number.nearest) ? "64 bits with sign" : "a double");
}

std::string json_quoted(std::string_view text) {
  SINTER_CHECK(is_utf8(text), "{}", printable(text));
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result += '"';
}

std::string to_text(const JsonValue& value) {
  if (value.is_null()) return "null";
  if (const bool* truth = value.boolean()) return *truth ? "true" : "false";
  if (const int64_t* whole = value.integer()) return std::to_string(*whole);
  if (const double* real = value.real()) {
    const std::string text = fmt::format("{}", *real);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (const JsonOversized* number = value.oversized()) return number->spelling;
  if (const std::string* text = value.string()) return json_quoted(*text);
  std::string text;
  if (const JsonValue::Array* items = value.array()) {
    for (const JsonValue& item : *items) text += (text.empty() ? "" : ", ") + to_text(item);
    return "[" + text + "]";
  }
  for (const JsonMember& member : *value.object())
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_quoted(member.key),
                        to_text(member.value));
  return "{" + text + "}";
}

}  // namespace sinter
