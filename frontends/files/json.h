// JSON from untrusted files: a visitor for long texts, an owned DOM for short ones, and a view that
// knows its place in the document, so that an error names file, JSON pointer and both values.
//
// Refused everywhere, with line:column and pointer: text that is not UTF-8, nesting beyond
// `json_max_depth`, NaN, comments, trailing text. A number that neither int64 nor double holds is
// refused where it is used: transformers writes int(1e30) for "no limit".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/error.h"
#include "ir/json_pointer.h"

namespace sinter {

inline constexpr size_t json_max_depth = 64;

/// A number that no other kind of value holds: an integer outside int64, or a real outside double.
struct JsonOversized {
  std::string spelling;
  double nearest = 0;  // infinite outside double
};

/// Receives a JSON text piece by piece. A failure stops the walk; visit_json() adds the place to
/// it.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  virtual Status null() = 0;
  virtual Status boolean(bool value) = 0;
  virtual Status integer(int64_t value) = 0;
  virtual Status real(double value) = 0;
  virtual Status oversized(JsonOversized number) = 0;
  virtual Status string(std::string value) = 0;
  virtual Status begin_object() = 0;
  virtual Status key(std::string name) = 0;  // duplicates are the visitor's to notice
  virtual Status end_object() = 0;
  virtual Status begin_array() = 0;
  virtual Status end_array() = 0;
};

/// Walks `text`, which is reported as `file`. Needs memory for one path and one string.
Status visit_json(std::string_view text, const std::string& file, JsonVisitor& visitor);

struct JsonMember;

/// One value. Objects keep the order of the file and have no duplicate keys.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  using Variant = std::variant<std::monostate, bool, int64_t, double, JsonOversized, std::string,
                               Array, Object>;

  JsonValue();
  explicit JsonValue(Variant value);
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;
  ~JsonValue();

  bool is_null() const { return std::holds_alternative<std::monostate>(data); }
  const bool* boolean() const { return std::get_if<bool>(&data); }
  const int64_t* integer() const { return std::get_if<int64_t>(&data); }
  const double* real() const { return std::get_if<double>(&data); }
  const JsonOversized* oversized() const { return std::get_if<JsonOversized>(&data); }
  const std::string* string() const { return std::get_if<std::string>(&data); }
  const Array* array() const { return std::get_if<Array>(&data); }
  const Object* object() const { return std::get_if<Object>(&data); }

  /// The member's value, or nullptr. Linear in the number of members.
  const JsonValue* find(std::string_view key) const;

  Variant data;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// A place in a document: perhaps a value, perhaps nothing. Borrows the document, which must stay
/// alive and unmoved. Looking below a missing or scalar place gives a missing place, so that a
/// chain ends in one error with the full pointer.
class JsonView {
 public:
  JsonView(const std::string& file, const JsonValue* value, std::string pointer = {})
      : file_(&file), value_(value), pointer_(std::move(pointer)) {}

  JsonView operator[](std::string_view key) const;
  JsonView operator[](size_t index) const;
  /// The place of a member of this object, without a search.
  JsonView at(const JsonMember& member) const;

  /// Null when nothing stands here.
  const JsonValue* value() const { return value_; }
  /// There is a value and it is not `null`.
  bool present() const { return value_ && !value_->is_null(); }
  /// JSON pointer, "" for the root.
  const std::string& pointer() const { return pointer_; }

  /// An integer of [low, high]; 4096.5 and "4096" are errors.
  Result<int64_t> integer(int64_t low = std::numeric_limits<int64_t>::min(),
                          int64_t high = std::numeric_limits<int64_t>::max()) const;
  /// A number of [low, high], written as integer or real; the nearest double counts.
  Result<double> number(double low = std::numeric_limits<double>::lowest(),
                        double high = std::numeric_limits<double>::max()) const;
  Result<bool> boolean() const;
  Result<std::string> string() const;
  Result<const JsonValue::Array*> array() const;
  Result<const JsonValue::Object*> object() const;

  /// As above; the fallback if the value is missing or `null`.
  Result<int64_t> integer_or(int64_t fallback, int64_t low = std::numeric_limits<int64_t>::min(),
                             int64_t high = std::numeric_limits<int64_t>::max()) const;
  Result<double> number_or(double fallback, double low = std::numeric_limits<double>::lowest(),
                           double high = std::numeric_limits<double>::max()) const;
  Result<bool> boolean_or(bool fallback) const;
  Result<std::string> string_or(std::string fallback) const;

  /// "expected …, got <this value>" at this place.
  tl::unexpected<Error> mismatch(std::string_view expected, std::string hint = {}) const;
  /// Any failure at this place.
  tl::unexpected<Error> fail(std::string what, std::string hint = {}) const;

 private:
  const std::string* file_;
  const JsonValue* value_;
  std::string pointer_;
};

struct JsonDocument {
  std::string file;  // what errors call it
  JsonValue root;

  JsonView view() const { return JsonView(file, &root); }
};

Result<JsonDocument> parse_json(std::string_view text, std::string file);
/// Reads and parses a file of at most `max_bytes`. A DOM needs up to 20 times the bytes of its
/// text.
Result<JsonDocument> read_json(const std::string& path, uint64_t max_bytes = 16u << 20);

/// A value as JSON text on one line, from which parse_json reads an equal value.
std::string to_text(const JsonValue& value);
/// `text` as a JSON string with its quotes. `text` must be UTF-8.
std::string json_quoted(std::string_view text);
/// The number as an error shows it: its spelling, shortened, and what does not hold it.
std::string to_string(const JsonOversized& number);
bool is_utf8(std::string_view text);

}  // namespace sinter
