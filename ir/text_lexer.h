// Tokens of the text form.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// A place in the text; columns count bytes from 1.
struct TextPosition {
  uint32_t line = 1, column = 1;
};

struct Token {
  enum class Kind : uint8_t {
    end,
    word,    // keyword, op, attribute, symbol, element type
    value,   // %name; `text` is the name, unquoted
    global,  // @name
    string,  // "..."; `text` is unescaped
    number,
    punctuation,  // one of ( ) [ ] { } , : = or ->
  };
  Kind kind = Kind::end;
  std::string text;
  TextPosition at;

  bool is(std::string_view punctuation_or_word) const {
    return (kind == Kind::punctuation || kind == Kind::word) && text == punctuation_or_word;
  }
};

/// The token for a person: "'{'", "%x", "the end of the file".
std::string describe(const Token& token);

/// Cuts a text into tokens, one at a time. The text must outlive the lexer. Copies are cheap and
/// independent.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<Token> next();
  /// "file:line:column".
  std::string where(TextPosition at) const;

 private:
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  bool at_end() const { return position_ == text_.size(); }
  void advance();
  void skip_blank();
  Result<std::string> quoted_text();
  std::string bare_text();
  std::string number_text();
  tl::unexpected<Error> error(std::string what, TextPosition at, std::string hint) const;

  std::string_view text_, file_;
  size_t position_ = 0;
  TextPosition at_;
};

}  // namespace sinter
