// Reads the small parts of the text form: punctuation, numbers, types, attributes.
#pragma once

#include <llvm/ADT/StringMap.h>

#include "ir/attributes.h"
#include "ir/graph.h"
#include "ir/text_lexer.h"

namespace sinter {

/// A lexer with one token of lookahead and the symbols declared so far.
class TextCursor {
 public:
  TextCursor(std::string_view text, std::string_view file) : lexer_(text, file) {}

  /// Reads the first token; every other call comes after it.
  Status start() { return advance(); }
  const Token& token() const { return token_; }
  bool at(std::string_view punctuation_or_word) const { return token_.is(punctuation_or_word); }
  bool at(Token::Kind kind) const { return token_.kind == kind; }

  Status advance();
  /// Steps over the token if it is that one.
  Result<bool> accept(std::string_view punctuation_or_word);
  Status expect(std::string_view punctuation_or_word);
  Result<Token> take(Token::Kind kind, std::string_view what);

  Result<int64_t> integer(std::string_view what);
  Result<double> real(std::string_view what);
  /// An integer of i64 exactly; of any other number a double that every float type rounds as it
  /// rounds the number itself.
  Result<Number> number(std::string_view what);
  Result<DType> dtype();
  Result<Order> order();
  Result<Dim> dim();
  Result<Dims> dims();
  Result<TensorType> type();
  /// "{name = value, ...}", or nothing.
  Result<Attributes> attributes();

  /// Where a later `%name =` of the same block stands, if anywhere.
  std::optional<TextPosition> find_definition(std::string_view name) const;

  void declare_symbol(std::string_view name, SymbolId id) { symbols_[name] = id; }

  std::string where(TextPosition position) const { return lexer_.where(position); }
  tl::unexpected<Error> error(std::string what, TextPosition position, std::string hint) const {
    return fail(std::move(what), where(position), std::move(hint));
  }
  /// "expected ..., got <the token>".
  tl::unexpected<Error> expected(std::string_view what) const;

 private:
  Result<AttrValue> attribute_value(AttrName name);
  template <typename T, typename Read>
  Result<T> bracketed(Read read);

  Lexer lexer_;
  Token token_;
  llvm::StringMap<SymbolId> symbols_;
};

}  // namespace sinter
