#include "frontends/tokenizer/trie.h"

#include <deque>

#include "frontends/files/text_order.h"

namespace sinter {

Trie::Trie(std::span<const Entry> entries) {
  std::vector<Entry> sorted;
  sorted.reserve(entries.size());
  for (const uint32_t i : text_order(entries.size(), [&](uint32_t i) { return entries[i].key; }))
    sorted.push_back(entries[i]);
  struct Range {
    size_t begin, end;  // entries below a node
    size_t depth;       // bytes that they share
  };
  std::deque<Range> open{{0, sorted.size(), 0}};  // nodes whose children are not there yet
  bytes_.push_back('\0');                         // of the root, never looked at
  for (; !open.empty(); open.pop_front()) {
    auto [at, end, depth] = open.front();
    int32_t id = -1;
    for (; at < end && sorted[at].key.size() == depth; ++at) id = sorted[at].id;
    ids_.push_back(id);
    first_child_.push_back(static_cast<uint32_t>(bytes_.size()));
    while (at < end) {
      const char byte = sorted[at].key[depth];
      const size_t begin = at;
      while (at < end && sorted[at].key[depth] == byte) ++at;
      bytes_.push_back(byte);
      open.push_back({begin, at, depth + 1});
    }
  }
  first_child_.push_back(static_cast<uint32_t>(bytes_.size()));
}

std::optional<Trie::Match> Trie::longest_prefix(std::string_view text, Node node) const {
  std::optional<Match> longest;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == nowhere) break;
    if (ids_[node] >= 0) longest = Match{i + 1, ids_[node]};
  }
  return longest;
}

}  // namespace sinter
