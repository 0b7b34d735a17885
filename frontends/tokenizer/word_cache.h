// Remembers the ids of the words of a text: natural text repeats them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sinter {

/// A table of fixed size in which a word has one place; a newer word takes it over. So no text can
/// make it slow. The ids are kept where they already stand, in the list that encoding fills.
class WordCache {
 public:
  /// For a text of `bytes`.
  explicit WordCache(size_t bytes);

  struct Ids {
    uint64_t begin;  // in the list of ids
    uint64_t count;
  };
  /// The place of `word`; none for long words, which hardly repeat.
  class Slot {
   public:
    const Ids* find(std::string_view word) const;
    void set(std::string_view word, Ids ids);

   private:
    static constexpr size_t longest_word = 23;
    friend class WordCache;
    uint8_t bytes_ = 0;  // 0: empty
    char word_[longest_word];
    Ids ids_;
  };
  Slot* slot(std::string_view word);

 private:
  std::vector<Slot> slots_;  // a power of two
};

}  // namespace sinter
