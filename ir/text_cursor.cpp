#include "ir/text_cursor.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "ir/ties.h"

namespace sinter {

Status TextCursor::advance() {
  SINTER_LET(token, lexer_.next());
  token_ = std::move(token);
  return {};
}

tl::unexpected<Error> TextCursor::expected(std::string_view what) const {
  return error(fmt::format("expected {}, got {}", what, describe(token_)), token_.at,
               "docs/sir.md describes the form of a module");
}

Result<bool> TextCursor::accept(std::string_view punctuation_or_word) {
  if (!at(punctuation_or_word)) return false;
  SINTER_TRY(advance());
  return true;
}

Status TextCursor::expect(std::string_view punctuation_or_word) {
  if (!at(punctuation_or_word)) return expected(fmt::format("'{}'", punctuation_or_word));
  return advance();
}

Result<Token> TextCursor::take(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) return expected(what);
  Token taken = std::move(token_);
  SINTER_TRY(advance());
  return taken;
}

Result<int64_t> TextCursor::integer(std::string_view what) {
  SINTER_LET(number, take(Token::Kind::number, what));
  int64_t value = 0;
  const char* end = number.text.data() + number.text.size();
  const auto [stop, status] = std::from_chars(number.text.data(), end, value);
  if (status == std::errc::result_out_of_range)
    return error(fmt::format("{} is not between {} and {}", describe(number), INT64_MIN, INT64_MAX),
                 number.at, "write a smaller number");
  if (status != std::errc() || stop != end)
    return error(fmt::format("expected {}, got {}", what, describe(number)), number.at,
                 "write a decimal integer");
  return value;
}

Result<double> TextCursor::real(std::string_view what) {
  const bool word = at("inf") || at("nan");
  SINTER_LET(number, take(word ? Token::Kind::word : Token::Kind::number, what));
  std::string_view text = number.text;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  double value = 0;
  const auto [stop, status] =
      std::from_chars(text.data(), text.data() + text.size(), value,
                      hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (status == std::errc::result_out_of_range)
    return error(
        fmt::format("{} is out of the range of a double, {} to {}", describe(number),
                    std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()),
        number.at, "write 0 or inf if that is meant");
  if (status != std::errc() || stop != text.data() + text.size() || text.starts_with('-'))
    return error(fmt::format("expected {}, got {}", what, describe(number)), number.at,
                 "write a decimal or hexadecimal floating-point number, inf or nan");
  return negative ? -value : value;
}

Result<Number> TextCursor::number(std::string_view what) {
  const std::string text = token_.text;
  SINTER_LET(nearest, real(what));
  int64_t integer = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), integer);
  const bool is_integer = status == std::errc() && stop == text.data() + text.size();
  if (is_integer && integer != 0) return integer;  // of 0 the double has the sign
  std::string_view digits = text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  return std::copysign(beside_tie(std::abs(nearest), digits, hexadecimal), nearest);
}

Result<DType> TextCursor::dtype() {
  const auto dtype = at(Token::Kind::word) ? parse_dtype(token_.text) : std::nullopt;
#define SINTER_DTYPE(name, ...) " " #name
  if (!dtype)
    return expected("an element type:"
#include "ir/dtypes.def"
    );
  SINTER_TRY(advance());
  return *dtype;
}

Result<Order> TextCursor::order() {
  const auto order = at(Token::Kind::word) ? parse_order(token_.text) : std::nullopt;
#define SINTER_ORDER(name, ...) " " #name
  if (!order)
    return expected("an order:"
#include "ir/orders.def"
    );
  SINTER_TRY(advance());
  return *order;
}

Result<Dim> TextCursor::dim() {
  if (at(Token::Kind::word)) {
    const auto symbol = symbols_.find(token_.text);
    if (symbol == symbols_.end())
      return error(fmt::format("no symbol {}", describe(token_)), token_.at,
                   "declare it at the head of the module: symbol NAME in [low, high]");
    SINTER_TRY(advance());
    return Dim(symbol->second);
  }
  const TextPosition start = token_.at;
  SINTER_LET(extent, integer("an extent"));
  if (extent < 0)
    return error(fmt::format("an extent of {} is below 0", extent), start, "write a size >= 0");
  return Dim(extent);
}

template <typename T, typename Read>
Result<T> TextCursor::bracketed(Read read) {
  T items;
  SINTER_TRY(expect("["));
  while (!at("]")) {
    if (!items.empty()) SINTER_TRY(expect(","));
    SINTER_LET(item, read());
    items.push_back(item);
  }
  SINTER_TRY(advance());
  return items;
}

Result<Dims> TextCursor::dims() {
  return bracketed<Dims>([&] { return dim(); });
}

Result<TensorType> TextCursor::type() {
  SINTER_LET(element, dtype());
  SINTER_LET(extents, dims());
  return TensorType{element, extents};
}

Result<AttrValue> TextCursor::attribute_value(AttrName name) {
  const std::string what = fmt::format("a value of attribute {}", to_string(name));
  const auto typed = [&](auto sample) -> Result<AttrValue> {
    using T = decltype(sample);
    if constexpr (std::is_same_v<T, int64_t>) {
      return integer(what);
    } else if constexpr (std::is_same_v<T, double>) {
      return real(what);
    } else if constexpr (std::is_same_v<T, Number>) {
      return number(what);
    } else if constexpr (std::is_same_v<T, DType>) {
      return dtype();
    } else if constexpr (std::is_same_v<T, Order>) {
      return order();
    } else if constexpr (std::is_same_v<T, Dim>) {
      return dim();
    } else if constexpr (std::is_same_v<T, Dims>) {
      return dims();
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      return bracketed<T>([&] { return integer(what); });
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      return bracketed<T>([&] { return real(what); });
    } else if constexpr (std::is_same_v<T, std::vector<Number>>) {
      return bracketed<T>([&] { return number(what); });
    } else {
      SINTER_LET(string, take(Token::Kind::string, what));
      return AttrValue(string.text);
    }
  };
  switch (name) {
#define X(attribute, type)  \
  case AttrName::attribute: \
    return typed(type());
    SINTER_ATTRIBUTES(X)
#undef X
  }
  SINTER_CHECK(false, "attribute name");
}

Result<Attributes> TextCursor::attributes() {
  Attributes attrs;
  SINTER_LET(some, accept("{"));
  if (!some) return attrs;
  while (!at("}")) {
    if (!attrs.empty()) SINTER_TRY(expect(","));
    SINTER_LET(word, take(Token::Kind::word, "an attribute's name"));
    const auto name = parse_attr_name(word.text);
#define X(attribute, type) " " #attribute
    if (!name)
      return error(fmt::format("no attribute {}", describe(word)), word.at,
                   "attributes are:" SINTER_ATTRIBUTES(X));
#undef X
    if (attrs.has(*name))
      return error(fmt::format("attribute {} stands twice", to_string(*name)), word.at,
                   "remove one");
    SINTER_TRY(expect("="));
    SINTER_LET(value, attribute_value(*name));
    attrs.set(*name, std::move(value));
  }
  SINTER_TRY(advance());
  return attrs;
}

std::optional<TextPosition> TextCursor::find_definition(std::string_view name) const {
  Lexer ahead = lexer_;
  Token previous = token_;
  size_t open = 0;  // attribute braces inside the block
  while (previous.kind != Token::Kind::end) {
    const auto next = ahead.next();
    if (!next) break;
    if (previous.kind == Token::Kind::value && previous.text == name && next->is("="))
      return previous.at;
    if (previous.is("{")) ++open;
    if (previous.is("}") && open-- == 0) break;
    previous = *next;
  }
  return std::nullopt;
}

}  // namespace sinter
