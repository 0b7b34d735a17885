// Added tokens: pieces that are found in a text before anything else is done with it.
#pragma once

#include <functional>
#include <map>

#include "frontends/files/json.h"
#include "frontends/tokenizer/folder_tokens.h"
#include "frontends/tokenizer/regex.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {

/// A part of a text: an added token (id >= 0) or text between added tokens (id -1).
struct Segment {
  TextRange range;
  int32_t id = -1;
};

class AddedTokens {
 public:
  using Normalize = std::function<Result<std::string>(std::string_view)>;

  /// The "added_tokens" of a tokenizer.json, then those of its folder. A token of the model's
  /// vocabulary has the id that it has there, another one of tokenizer.json an id that is free
  /// there, and another one of the folder the next id. `normalize` gives the form in which a
  /// normalized token stands in normalized text.
  static Result<AddedTokens> read(const JsonView& view, const FolderTokens& folder,
                                  const Vocabulary& model, const Normalize& normalize);

  /// Cuts a text at the tokens that are looked for before normalization, or after it. Leftmost
  /// tokens win, then longer ones.
  std::vector<Segment> split(std::string_view text, bool normalized) const;

  /// The token as decoding spells it: a normalized one as the normalizer writes it.
  std::optional<std::string_view> piece(int32_t id) const;
  /// Whether decoding leaves it out: its text, as decoding spells it, is that of a special token.
  bool is_special(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  /// The largest id and one, or 0.
  int32_t size() const;

 private:
  struct Token : AddedToken {
    explicit Token(AddedToken token)
        : AddedToken(std::move(token)), decodes_normalized(normalized) {}
    bool decodes_normalized;
    std::string piece = {};  // as decoding spells it
    bool skipped = false;    // by decoding without special tokens
  };

  /// Adds a token, or gives the one with its content new flags.
  Status add(const FolderTokens::Added& added, const Vocabulary& model,
             std::map<std::string, int32_t, std::less<>>& ids);
  /// Fills what is looked up, when all tokens are there.
  Status finish(const Normalize& normalize);

  std::map<int32_t, Token> tokens_;
  bool splits_special_ = false;  // FolderTokens::splits_special
  Trie contents_;
  Trie before_, after_;  // what split() looks for
};

}  // namespace sinter
