// Tokens of a tokenizer's folder: transformers adds to a tokenizer what the files beside it say.
//
//   tokenizer_config.json    added_tokens_decoder: tokens with their flags, in the order of their
//                            ids. Where it stands, the two other files are not read.
//                            bos_token ... mask_token and other keys "..._token": named tokens, a
//                            text or {"__type": "AddedToken", ...}; special.
//                            extra_special_tokens (older: additional_special_tokens): a list of
//                            special tokens, or an object of named ones.
//                            split_special_tokens, clean_up_tokenization_spaces.
//   special_tokens_map.json  the same keys; its values replace those of tokenizer_config.json.
//   added_tokens.json        tokens and ids.
//
// A token that the tokenizer lacks gets the next free id. Flags of a token that it has replace its
// own. All other keys change no id and no text: model_max_length, padding_side and the like are for
// batches, add_bos_token and add_eos_token do not count beside a tokenizer.json.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/files/json.h"

namespace sinter {

struct AddedToken {
  int32_t id = -1;  // -1: the file gives none
  std::string content;
  bool single_word = false;  // not within a word
  bool left_strip = false;   // takes the white space before it along
  bool right_strip = false;  // and after it
  bool normalized = true;    // is looked for in the normalized text
  bool special = false;      // is not text: decoding can leave it out
};

/// The object at `view`, without its "id". `special`: it is special whatever the object says.
Result<AddedToken> read_added_token(const JsonView& view, bool special = false);

/// A token's key in tokenizer_config.json, and its text where no file gives one.
struct DefaultToken {
  std::string_view key;
  std::string_view text;
};

struct FolderTokens {
  /// Keys and texts, such as "eos_token" and "</s>".
  std::vector<std::pair<std::string, std::string>> named;
  struct Added {
    AddedToken token;
    std::string place;  // file and pointer, for errors
  };
  std::vector<Added> added;      // in the order in which they are added
  bool splits_special = false;   // a special token that a text spells is text
  bool cleans_up = false;        // decoding takes away spaces before punctuation
  bool cleans_up_pairs = false;  // and does so for byte-pair encoding too

  const std::string* find_named(std::string_view key) const;
};

/// Reads the files of `folder`. `tokenizer`: its tokenizer.json, where there is one; `defaults`:
/// named tokens that the tokenizer's class has by itself.
Result<FolderTokens> read_folder_tokens(const std::string& folder, const JsonView& tokenizer,
                                        std::span<const DefaultToken> defaults = {});

/// A JSON file of the folder; an empty object where it is not there.
Result<JsonDocument> read_folder_json(const std::string& folder, const char* name);

}  // namespace sinter
