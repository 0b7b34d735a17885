#include "frontends/tokenizer/vocabulary.h"

#include <algorithm>

namespace sinter {

Result<Vocabulary> Vocabulary::create(const std::vector<Entry>& entries) {
  if (entries.empty()) return fail("the vocabulary is empty");
  int32_t largest = 0;
  size_t bytes = 0;
  for (const Entry& entry : entries) {
    if (entry.id < 0 || entry.id >= max_ids)
      return fail(fmt::format("the piece \"{}\" has the id {}, expected 0 to {}",
                              printable(entry.piece, 60), entry.id, max_ids - 1));
    if (entry.piece.size() > longest_piece)
      return fail(fmt::format("the piece of id {} has {} bytes, at most {} are read", entry.id,
                              entry.piece.size(), longest_piece));
    largest = std::max(largest, entry.id);
    bytes += entry.piece.size();
  }
  if (bytes >= absent) return fail(fmt::format("the pieces have {} bytes together", bytes));

  Vocabulary made;
  made.text_.reserve(bytes);
  made.places_.resize(static_cast<size_t>(largest) + 1);
  made.count_ = static_cast<int32_t>(entries.size());
  for (const Entry& entry : entries) {
    Place& place = made.places_[static_cast<size_t>(entry.id)];
    if (place.bytes != absent)
      return fail(fmt::format("the id {} stands for \"{}\" and for \"{}\"", entry.id,
                              printable(*made.piece(entry.id), 60), printable(entry.piece, 60)));
    place = {static_cast<uint32_t>(made.text_.size()), static_cast<uint32_t>(entry.piece.size())};
    made.text_ += entry.piece;
  }
  std::vector<Trie::Entry> keys;
  keys.reserve(entries.size());
  for (const Entry& entry : entries) keys.push_back({entry.piece, entry.id});
  made.trie_ = Trie(keys);
  return made;
}

std::optional<std::string_view> Vocabulary::piece(int32_t id) const {
  if (id < 0 || id >= size()) return std::nullopt;
  const Place& place = places_[static_cast<size_t>(id)];
  if (place.bytes == absent) return std::nullopt;
  return std::string_view(text_).substr(place.begin, place.bytes);
}

Result<Vocabulary> read_vocabulary(const JsonView& view) {
  SINTER_LET(members, view.object());
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(members->size());
  for (const JsonMember& member : *members) {
    const int64_t* id = member.value.integer();
    if (!id || *id < 0 || *id >= Vocabulary::max_ids)
      return view[member.key].mismatch(fmt::format("an id from 0 to {}", Vocabulary::max_ids - 1));
    entries.push_back({member.key, static_cast<int32_t>(*id)});
  }
  auto vocabulary = Vocabulary::create(entries);
  if (!vocabulary) return view.fail(vocabulary.error().what, "download the tokenizer again");
  return vocabulary;
}

}  // namespace sinter
