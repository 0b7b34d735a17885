#include "frontends/tokenizer/score_merges.h"

#include <algorithm>
#include <functional>
#include <string>

namespace sinter {
namespace {

/// Ids of the symbols that `text` starts with, by length in bytes; -1 where there is none.
std::vector<int32_t> prefixes(const Trie& symbols, std::string_view text) {
  std::vector<int32_t> ids(text.size() + 1, -1);
  Trie::Node node = Trie::root;
  for (size_t i = 0; i < text.size(); ++i) {
    node = symbols.step(node, text[i]);
    if (node == Trie::nowhere) break;
    ids[i + 1] = symbols.id(node);
  }
  return ids;
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

Trie reversed_trie(const std::vector<Trie::Entry>& symbols) {
  std::vector<std::string> keys;
  keys.reserve(symbols.size());  // keys do not move
  std::vector<Trie::Entry> entries;
  for (const Trie::Entry& symbol : symbols)
    entries.push_back({keys.emplace_back(reversed(symbol.key)), symbol.id});
  return Trie(entries);
}

}  // namespace

MergeTable merges_by_score(const std::vector<Trie::Entry>& pieces, const std::vector<float>& scores,
                           const std::vector<Trie::Entry>& symbols, int32_t ids) {
  std::vector<float> order = scores;  // equal scores have equal ranks
  std::sort(order.begin(), order.end(), std::greater<>());
  const Trie starts(symbols), ends = reversed_trie(symbols);
  std::vector<MergeTable::Merge> merges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view text = pieces[i].key;
    const auto rank = std::lower_bound(order.begin(), order.end(), scores[i], std::greater<>());
    const auto left = prefixes(starts, text), right = prefixes(ends, reversed(text));
    for (size_t cut = 1; cut < text.size(); ++cut)
      if (left[cut] >= 0 && right[text.size() - cut] >= 0)
        merges.push_back({left[cut], right[text.size() - cut], pieces[i].id,
                          static_cast<int32_t>(rank - order.begin())});
  }
  return MergeTable(std::move(merges), ids);
}

}  // namespace sinter
