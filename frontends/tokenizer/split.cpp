// How a word splits at the matches of a pattern.
#include <algorithm>

#include "frontends/tokenizer/pre_tokenizer.h"

namespace sinter {
namespace {

/// Joins each first of a row of matches to the part before it in the order of `parts`.
void merge_matches(std::vector<Part>& parts) {
  size_t kept = 0;
  bool after_match = false;
  for (const Part& part : parts) {
    const bool joins = part.matched && !after_match && kept > 0;
    after_match = part.matched;
    if (joins) {
      TextRange& range = parts[kept - 1].range;
      range = {std::min(range.begin, part.range.begin), std::max(range.end, part.range.end)};
    } else {
      parts[kept++] = part;
    }
  }
  parts.resize(kept);
}

void join_equal_neighbours(std::vector<Part>& parts) {
  size_t kept = 0;
  for (const Part& part : parts) {
    if (kept > 0 && parts[kept - 1].matched == part.matched)
      parts[kept - 1].range.end = part.range.end;
    else
      parts[kept++] = part;
  }
  parts.resize(kept);
}

}  // namespace

Result<SplitBehavior> read_split_behavior(const JsonView& view) {
  SINTER_LET(name, view.string());
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return view.mismatch("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

void append_split(std::vector<Part>& parts, SplitBehavior behavior, std::vector<TextRange>& words) {
  switch (behavior) {
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::removed:
      std::erase_if(parts, [](const Part& part) { return part.matched; });
      break;
    case SplitBehavior::contiguous:
      join_equal_neighbours(parts);
      break;
    case SplitBehavior::merged_with_previous:
      merge_matches(parts);
      break;
    case SplitBehavior::merged_with_next:
      std::reverse(parts.begin(), parts.end());
      merge_matches(parts);
      std::reverse(parts.begin(), parts.end());
      break;
  }
  for (const Part& part : parts)
    if (part.range.size() > 0) words.push_back(part.range);
}

}  // namespace sinter
