#include "frontends/files/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontends/files/bounded_file.h"
#include "frontends/files/text_order.h"
#include "ir/c_locale.h"

namespace sinter {
namespace {

std::string place(const std::string& file, const std::string& pointer) {
  return pointer.empty() ? file : fmt::format("{}: {}", file, printable(pointer));
}

std::string line_and_column(std::string_view text, const std::string& file, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, line, column);
}

/// The parser's number type. Infinity looks finite to the parser, which would end the walk at a
/// number outside double; Walk then gets such a number with its spelling, as any other.
struct ParsedReal {
  double value = 0;
  ParsedReal() = default;
  ParsedReal(double number) : value(number) {}
  operator double&() { return value; }
  operator double() const { return std::isfinite(value) ? value : 0; }
};
using Parser =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, ParsedReal>;

/// Stands between the parser and a visitor: knows the path, bounds the depth, checks numbers.
class Walk {
 public:
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = ParsedReal;
  using string_t = std::string;
  using binary_t = Parser::binary_t;

  Walk(std::string_view text, const std::string& file, JsonVisitor& visitor)
      : text_(text), file_(file), visitor_(visitor) {}

  bool null() { return value(visitor_.null()); }
  bool boolean(bool b) { return value(visitor_.boolean(b)); }
  bool number_integer(int64_t n) { return value(visitor_.integer(n)); }
  bool number_unsigned(uint64_t n) {
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return value(visitor_.oversized({std::to_string(n), static_cast<double>(n)}));
    return value(visitor_.integer(static_cast<int64_t>(n)));
  }
  /// The parser gives integers beyond 64 bits here too; their spelling has no fraction or exponent.
  bool number_float(ParsedReal n, const std::string& spelling) {
    const bool whole = spelling.find_first_of(".eE") == std::string::npos;
    if (whole || !std::isfinite(n.value)) return value(visitor_.oversized({spelling, n.value}));
    return value(visitor_.real(n.value));
  }
  bool string(std::string& s) { return value(visitor_.string(std::move(s))); }
  bool binary(binary_t&) { return value(fail("a binary value")); }  // never in a JSON text

  bool start_object(size_t) { return open(visitor_.begin_object(), true); }
  bool start_array(size_t) { return open(visitor_.begin_array(), false); }
  bool end_object() { return close(visitor_.end_object()); }
  bool end_array() { return close(visitor_.end_array()); }
  bool key(std::string& name) {
    path_.back().key = name;
    return keep(visitor_.key(std::move(name)));
  }

  /// `position` counts the bytes read, the offending one included.
  bool parse_error(size_t position, const std::string& last,
                   const nlohmann::json::exception& error) {
    const size_t offset = std::min(position > 0 ? position - 1 : 0, text_.size());
    std::string what = fmt::format("not JSON: {}", reason(error.what()));
    if (!last.empty()) what += fmt::format(", at \"{}\"", printable(last, 40));
    status_ = fail(std::move(what), place(line_and_column(text_, file_, offset), pointer()),
                   "correct the file or download it again");
    return false;
  }

  Status take() { return std::move(status_); }

 private:
  struct Level {
    bool is_object = false;
    std::string key;
    size_t index = 0;
  };

  /// The parser's own words without its prefix and without the text it read last.
  static std::string reason(std::string_view what) {
    if (size_t at = what.find(": "); at != what.npos) what.remove_prefix(at + 2);
    return printable(what.substr(0, what.find("; last read")));
  }

  std::string pointer() const {
    std::string result;
    for (const Level& level : path_)
      result += level.is_object ? json_pointer_step(level.key) : fmt::format("/{}", level.index);
    return result;
  }

  bool keep(Status status) {
    if (status) return true;
    if (status.error().where.empty()) status.error().where = place(file_, pointer());
    status_ = std::move(status);
    return false;
  }
  bool value(Status status) {
    if (!keep(std::move(status))) return false;
    advance();
    return true;
  }
  bool open(Status status, bool is_object) {
    if (path_.size() == json_max_depth)
      return keep(fail(fmt::format("nested more than {} levels deep", json_max_depth), {},
                       "check that this is the right file"));
    if (!keep(std::move(status))) return false;
    path_.push_back({is_object, {}, 0});
    return true;
  }
  bool close(Status status) {
    // The pointer of a failure at the end of an object is the object's own.
    path_.pop_back();
    return value(std::move(status));
  }
  void advance() {
    if (!path_.empty() && !path_.back().is_object) ++path_.back().index;
  }

  std::string_view text_;
  const std::string& file_;
  JsonVisitor& visitor_;
  std::vector<Level> path_;
  Status status_;
};

/// Builds the DOM. `open_` holds the containers that are not closed yet, outermost first.
class DomBuilder final : public JsonVisitor {
 public:
  Status null() override { return add(JsonValue()); }
  Status boolean(bool value) override { return add(JsonValue(value)); }
  Status integer(int64_t value) override { return add(JsonValue(value)); }
  Status real(double value) override { return add(JsonValue(value)); }
  Status oversized(JsonOversized number) override { return add(JsonValue(std::move(number))); }
  Status string(std::string value) override { return add(JsonValue(std::move(value))); }
  Status begin_object() override {
    open_.push_back({JsonValue(JsonValue::Object{}), {}});
    return {};
  }
  Status begin_array() override {
    open_.push_back({JsonValue(JsonValue::Array{}), {}});
    return {};
  }
  Status key(std::string name) override {
    open_.back().key = std::move(name);
    return {};
  }
  Status end_object() override {
    SINTER_TRY(check_keys(*open_.back().value.object()));
    return end_array();
  }
  Status end_array() override {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  JsonValue root;

 private:
  struct Open {
    JsonValue value;
    std::string key;  // of the member that comes next
  };

  Status add(JsonValue value) {
    if (open_.empty())
      root = std::move(value);
    else if (auto* array = std::get_if<JsonValue::Array>(&open_.back().value.data))
      array->push_back(std::move(value));
    else
      std::get<JsonValue::Object>(open_.back().value.data)
          .push_back({std::move(open_.back().key), std::move(value)});
    return {};
  }

  static Status check_keys(const JsonValue::Object& members) {
    const auto order =
        text_order(members.size(), [&](uint32_t i) -> std::string_view { return members[i].key; });
    for (size_t i = 1; i < order.size(); ++i)
      if (members[order[i - 1]].key == members[order[i]].key)
        return fail(
            fmt::format("the key \"{}\" stands here twice", printable(members[order[i]].key)), {},
            "remove one of the two");
    return {};
  }

  std::vector<Open> open_;
};

}  // namespace

Status visit_json(std::string_view text, const std::string& file, JsonVisitor& visitor) {
  // The parser takes a zero byte for the end of the text and would not see what follows.
  if (size_t zero = text.find('\0'); zero != text.npos)
    return fail("not JSON: a zero byte", line_and_column(text, file, zero),
                "correct the file or download it again");
  Walk walk(text, file, visitor);
  const CLocale numbers_with_a_point;
  Parser::sax_parse(text.begin(), text.end(), &walk);
  return walk.take();
}

Result<JsonDocument> parse_json(std::string_view text, std::string file) {
  DomBuilder builder;
  SINTER_TRY(visit_json(text, file, builder));
  return JsonDocument{std::move(file), std::move(builder.root)};
}

Result<JsonDocument> read_json(const std::string& path, uint64_t max_bytes) {
  SINTER_LET(file, BoundedFile::open(path));
  SINTER_TRY(refuse_impostor(file));
  SINTER_LET(text, file.read_all(max_bytes));
  return parse_json(text, path);
}

}  // namespace sinter
