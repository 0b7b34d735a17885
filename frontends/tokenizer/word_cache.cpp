#include "frontends/tokenizer/word_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sinter {
namespace {

// Together 1.3 MB: stays in a core's second-level cache. A text of English has about as many
// different words.
constexpr size_t max_slots = size_t{1} << 15;
constexpr size_t fewest_slots = 16;
constexpr size_t bytes_per_slot = 8;  // of text

uint64_t hash(std::string_view word) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;
  uint64_t state = word.size();
  while (!word.empty()) {
    uint64_t chunk = 0;
    const size_t bytes = std::min(word.size(), sizeof chunk);
    std::memcpy(&chunk, word.data(), bytes);
    state = (std::rotl(state, 23) ^ chunk) * odd;
    word.remove_prefix(bytes);
  }
  return state ^ state >> 32;
}

}  // namespace

WordCache::WordCache(size_t bytes)
    : slots_(std::bit_ceil(std::clamp(bytes / bytes_per_slot, fewest_slots, max_slots))) {}

WordCache::Slot* WordCache::slot(std::string_view word) {
  if (word.size() > Slot::longest_word) return nullptr;
  return &slots_[hash(word) & (slots_.size() - 1)];
}

const WordCache::Ids* WordCache::Slot::find(std::string_view word) const {
  const bool same = bytes_ == word.size() && std::memcmp(word_, word.data(), word.size()) == 0;
  return same ? &ids_ : nullptr;
}

void WordCache::Slot::set(std::string_view word, Ids ids) {
  bytes_ = static_cast<uint8_t>(word.size());
  word.copy(word_, word.size());
  ids_ = ids;
}

}  // namespace sinter
