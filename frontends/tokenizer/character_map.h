// The character map that SentencePiece compiles into a model: byte strings to byte strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

class CharacterMap {
 public:
  /// `blob` holds the bytes of a double-array trie (u32), the trie (u32 units, as Darts lays them
  /// out), and zero-terminated replacements, which the trie's values are offsets into. Little
  /// endian. Errors have no place.
  static Result<CharacterMap> create(std::string_view blob);

  struct Match {
    size_t bytes;                  // of the key
    std::string_view replacement;  // UTF-8
  };
  /// The shortest or the longest key that `text` starts with. A trie that leads out of itself, or
  /// into the middle of a character, ends there.
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool stop_at_first) const;
  std::optional<std::string_view> replacement(size_t at) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace sinter
