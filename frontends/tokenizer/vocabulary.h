// The pieces of a tokenizer and their ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontends/files/json.h"
#include "frontends/tokenizer/trie.h"

namespace sinter {

class Vocabulary {
 public:
  // Ten times what the largest vocabularies have.
  static constexpr int64_t max_ids = int64_t{1} << 22;
  // Bounds the search for all pieces that start at a place of a text.
  static constexpr size_t longest_piece = 4096;  // bytes

  struct Entry {
    std::string piece;
    int32_t id;
  };

  /// Ids need not be dense. Fails, without a place, if an id is outside 0 .. max_ids - 1 or stands
  /// twice, if a piece is too long, or if there is none. Of equal pieces the last is found.
  static Result<Vocabulary> create(const std::vector<Entry>& entries);

  std::optional<int32_t> find(std::string_view piece) const { return trie_.find(piece); }
  std::optional<std::string_view> piece(int32_t id) const;
  /// The largest id and one.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }
  /// The number of pieces.
  int32_t count() const { return count_; }
  const Trie& trie() const { return trie_; }

 private:
  static constexpr uint32_t absent = ~uint32_t{0};
  struct Place {
    uint32_t begin = 0, bytes = absent;
  };

  std::string text_;           // all pieces, one after the other
  std::vector<Place> places_;  // in text_, by id
  int32_t count_ = 0;
  Trie trie_;
};

/// An object of pieces and ids.
Result<Vocabulary> read_vocabulary(const JsonView& view);

}  // namespace sinter
