// Added tokens: pieces that are found in a text before anything else is done with it.
#pragma once

#include <functional>
#include <map>

#include "frontends/files/json.h"
#include "frontends/tokenizer/regex.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not within a word
  bool left_strip = false;   // takes the white space before it along
  bool right_strip = false;  // and after it
  bool normalized = true;    // is looked for in the normalized text
  bool special = false;      // is not text: decoding can leave it out
};

/// A part of a text: an added token (id >= 0) or text between added tokens (id -1).
struct Segment {
  TextRange range;
  int32_t id = -1;
};

class AddedTokens {
 public:
  using Normalize = std::function<Result<std::string>(std::string_view)>;

  /// The "added_tokens" of a tokenizer.json. A token of the model's vocabulary has the id that it
  /// has there, another one an id that is free there. `normalize` gives the form in which a
  /// normalized token stands in normalized text.
  static Result<AddedTokens> read(const JsonView& view, const Vocabulary& model,
                                  const Normalize& normalize);

  /// Cuts a text at the tokens that are looked for before normalization, or after it. Leftmost
  /// tokens win, then longer ones.
  std::vector<Segment> split(std::string_view text, bool normalized) const;

  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  /// The largest id and one, or 0.
  int32_t size() const;

 private:
  std::map<int32_t, AddedToken> tokens_;
  Trie contents_;
  Trie before_, after_;  // what split() looks for
};

}  // namespace sinter
