#include "frontends/tokenizer/merges.h"

#include <algorithm>
#include <queue>

namespace sinter {
namespace {

// Up to here a scan for the best pair is faster than a heap; it is quadratic.
constexpr size_t max_scanned_symbols = 24;

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges, int32_t ids) {
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return a.left != b.left ? a.left < b.left : a.right < b.right;
  });
  first_.assign(static_cast<size_t>(ids) + 1, 0);
  for (const Merge& merge : merges) {
    const bool again = !merges_.empty() && merges_.back().left == merge.left &&
                       merges_.back().right == merge.right;
    if (again) {
      merges_.back() = merge;
      continue;
    }
    merges_.push_back(merge);
    ++first_[static_cast<size_t>(merge.left) + 1];
  }
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

const MergeTable::Merge* MergeTable::find(int32_t left, int32_t right) const {
  const auto begin = merges_.begin() + first_[static_cast<size_t>(left)];
  const auto end = merges_.begin() + first_[static_cast<size_t>(left) + 1];
  const auto at = std::lower_bound(begin, end, right,
                                   [](const Merge& merge, int32_t id) { return merge.right < id; });
  return at != end && at->right == right ? &*at : nullptr;
}

void MergeTable::apply(std::vector<int32_t>& symbols) const {
  if (symbols.size() <= max_scanned_symbols)
    apply_short(symbols);
  else
    apply_long(symbols);
}

void MergeTable::apply_short(std::vector<int32_t>& symbols) const {
  const Merge* pairs[max_scanned_symbols] = {};  // of each symbol with the next
  for (size_t i = 1; i < symbols.size(); ++i) pairs[i - 1] = find(symbols[i - 1], symbols[i]);
  for (size_t count = symbols.size(); count > 1;) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; ++i)
      if (pairs[i] && (best == count || pairs[i]->rank < pairs[best]->rank)) best = i;
    if (best == count) break;
    symbols[best] = pairs[best]->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --count;
    std::copy(pairs + best + 1, pairs + count, pairs + best);
    pairs[best] = best + 1 < count ? find(symbols[best], symbols[best + 1]) : nullptr;
    if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
  }
}

// Symbols in a linked list; possible merges in a heap, where they stay when one of the two symbols
// has changed, and are then passed over.
void MergeTable::apply_long(std::vector<int32_t>& symbols) const {
  constexpr size_t none = ~size_t{0};
  struct Candidate {
    const Merge* merge;
    size_t at;  // of the left symbol

    bool operator>(const Candidate& other) const {
      return merge->rank != other.merge->rank ? merge->rank > other.merge->rank : at > other.at;
    }
  };
  std::vector<size_t> next(symbols.size()), previous(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    next[i] = i + 1 < symbols.size() ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
  }
  std::vector<Candidate> start;
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    if (const Merge* merge = find(symbols[i], symbols[i + 1])) start.push_back({merge, i});
  std::priority_queue heap(std::greater<Candidate>(), std::move(start));
  const auto consider = [&](size_t at) {
    if (at == none || next[at] == none) return;
    if (const Merge* merge = find(symbols[at], symbols[next[at]])) heap.push({merge, at});
  };
  constexpr int32_t gone = -1;
  while (!heap.empty()) {
    const auto [merge, at] = heap.top();
    heap.pop();
    const size_t right = next[at];
    if (symbols[at] != merge->left || right == none || symbols[right] != merge->right) continue;
    symbols[at] = merge->merged;
    symbols[right] = gone;
    next[at] = next[right];
    if (next[at] != none) previous[next[at]] = at;
    consider(previous[at]);
    consider(at);
  }
  std::erase(symbols, gone);
}

}  // namespace sinter
