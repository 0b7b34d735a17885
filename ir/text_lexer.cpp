#include "ir/text_lexer.h"

#include "ir/characters.h"

namespace sinter {
namespace {

bool is_bare(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the text";
    case Token::Kind::value:
      return fmt::format("%{}", printable(token.text));
    case Token::Kind::global:
      return fmt::format("@{}", printable(token.text));
    case Token::Kind::string:
      return fmt::format("\"{}\"", printable(token.text));
    default:
      return fmt::format("'{}'", printable(token.text));
  }
}

std::string Lexer::where(TextPosition at) const {
  return fmt::format("{}:{}:{}", printable(file_, 4096), at.line, at.column);
}

tl::unexpected<Error> Lexer::error(std::string what, TextPosition at, std::string hint) const {
  return fail(std::move(what), where(at), std::move(hint));
}

void Lexer::advance() {
  if (text_[position_++] == '\n') {
    ++at_.line;
    at_.column = 1;
  } else {
    ++at_.column;
  }
}

void Lexer::skip_blank() {
  while (!at_end()) {
    const char c = peek();
    if (c == '/' && text_.substr(position_, 2) == "//") {
      while (!at_end() && peek() != '\n') advance();
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      advance();
    } else {
      return;
    }
  }
}

std::string Lexer::bare_text() {
  const size_t begin = position_;
  while (!at_end() && is_bare(peek())) advance();
  return std::string(text_.substr(begin, position_ - begin));
}

std::string Lexer::number_text() {
  // Takes a sign inside only after an exponent's letter; the reader of the number judges the rest.
  const size_t begin = position_;
  advance();
  while (!at_end()) {
    const char before = text_[position_ - 1];
    const bool sign = (peek() == '+' || peek() == '-') &&
                      (before == 'e' || before == 'E' || before == 'p' || before == 'P');
    if (!is_bare(peek()) && !sign) break;
    advance();
  }
  return std::string(text_.substr(begin, position_ - begin));
}

Result<std::string> Lexer::quoted_text() {
  const TextPosition start = at_;
  std::string out;
  advance();
  while (!at_end() && peek() != '"') {
    const TextPosition here = at_;
    const char c = peek();
    if (c == '\n') break;
    advance();
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escape = peek();
    if (at_end()) break;
    advance();
    if (escape == 'n') {
      out += '\n';
    } else if (escape == 't') {
      out += '\t';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'x' && position_ + 1 < text_.size() && hex_digit(text_[position_]) >= 0 &&
               hex_digit(text_[position_ + 1]) >= 0) {
      out += static_cast<char>(hex_digit(text_[position_]) * 16 + hex_digit(text_[position_ + 1]));
      advance();
      advance();
    } else {
      return error(fmt::format("unknown escape \"\\{}\" in a string",
                               printable(std::string_view(&escape, 1))),
                   here, "write one of \\\" \\\\ \\n \\t \\xNN");
    }
  }
  if (at_end() || peek() != '"')
    return error("a string does not end on its line", start,
                 "close it with '\"', write \\n for a line end");
  advance();
  return out;
}

Result<Token> Lexer::next() {
  skip_blank();
  Token token;
  token.at = at_;
  if (at_end()) return token;
  const char c = peek();
  if (c == '%' || c == '@') {
    token.kind = c == '%' ? Token::Kind::value : Token::Kind::global;
    advance();
    if (peek() == '"') {
      SINTER_LET(text, quoted_text());
      token.text = std::move(text);
    } else {
      token.text = bare_text();
      if (token.text.empty())
        return error(fmt::format("no name after '{}'", c), token.at,
                     "write a name of letters, digits, '_' and '.', or quote it");
    }
  } else if (c == '"') {
    token.kind = Token::Kind::string;
    SINTER_LET(text, quoted_text());
    token.text = std::move(text);
  } else if (is_letter(c)) {
    token.kind = Token::Kind::word;
    token.text = bare_text();
  } else if (text_.substr(position_, 2) == "->") {
    token.kind = Token::Kind::punctuation;
    token.text = "->";
    advance();
    advance();
  } else if (is_digit(c) || c == '-') {
    token.kind = Token::Kind::number;
    token.text = number_text();
  } else if (std::string_view("()[]{},:=").find(c) != std::string_view::npos) {
    token.kind = Token::Kind::punctuation;
    token.text = c;
    advance();
  } else {
    return error(fmt::format("unexpected character '{}'", printable(std::string_view(&c, 1))),
                 token.at, "remove it, or quote the name that it belongs to");
  }
  return token;
}

}  // namespace sinter
