#include "driver/bisect/search.h"

#include <algorithm>
#include <iterator>

namespace sinter {
namespace {

FusionSet united(const FusionSet& a, const FusionSet& b) {
  FusionSet all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

FusionSet common(const FusionSet& a, const FusionSet& b) {
  FusionSet both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

FusionSet without(const FusionSet& all, const FusionSet& left_out) {
  FusionSet rest;
  std::set_difference(all.begin(), all.end(), left_out.begin(), left_out.end(),
                      std::back_inserter(rest));
  return rest;
}

Result<bool> ask(const FusionSearch& search, const FusionSet& set) {
  SINTER_LET(answers, search.wrong({set}));
  return bool(answers[0]);
}

/// The least n for which `base` and the first n of `list` are wrong, given that this holds for
/// `high` and not for 0.
Result<size_t> first_wrong(const FusionSet& base, const FusionSet& list, size_t high,
                           const FusionSearch& search) {
  size_t low = 0;
  while (high - low > 1) {
    const size_t points = std::min(search.at_once, high - low - 1);
    std::vector<size_t> ends;
    std::vector<FusionSet> sets;
    for (size_t i = 1; i <= points; ++i) {
      const size_t end = low + (high - low) * i / (points + 1);
      if (end == low || (!ends.empty() && end == ends.back())) continue;
      ends.push_back(end);
      sets.push_back(
          united(base, FusionSet(list.begin(), list.begin() + static_cast<ptrdiff_t>(end))));
    }
    SINTER_LET(answers, search.wrong(sets));
    const auto wrong = std::find(answers.begin(), answers.end(), true);
    const auto at = static_cast<size_t>(wrong - answers.begin());
    if (wrong != answers.end()) high = ends[at];
    if (at > 0) low = ends[at - 1];
  }
  return high;
}

/// One set that fails, of the fusions of `list`, which fail.
Result<FusionSet> find_one(const FusionSet& list, const FusionSearch& search) {
  const auto kernels_of = [&](FusionSet fusions) {
    std::sort(fusions.begin(), fusions.end());
    return common(with_context(fusions, search), list);
  };
  FusionSet guilty;  // as found
  size_t end = list.size();
  do {
    const FusionSet base = kernels_of(guilty);
    SINTER_LET(first, first_wrong(base, list, end, search));
    guilty.push_back(list[first - 1]);
    end = first - 1;
    SINTER_LET(enough, ask(search, kernels_of(guilty)));
    if (enough) break;
  } while (end > 0);
  // The first one is needed: the search for the second began without it being enough. Each other
  // one may be in vain once those after it are known.
  for (size_t i = 1; i + 1 < guilty.size() && guilty.size() > 2;) {
    FusionSet fewer = guilty;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    SINTER_LET(wrong, ask(search, kernels_of(fewer)));
    if (wrong)
      guilty = std::move(fewer);
    else
      ++i;
  }
  return guilty;
}

}  // namespace

std::string to_string(const FusionSet& set) {
  std::string text;
  for (size_t i = 0; i < set.size();) {
    size_t end = i + 1;
    while (end < set.size() && set[end] == set[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", set[i]);
    if (end > i + 1) text += fmt::format("-{}", set[end - 1]);
    i = end;
  }
  return text.empty() ? "none" : text;
}

FusionSet with_context(const FusionSet& fusions, const FusionSearch& search) {
  FusionSet all = fusions;
  for (const int64_t fusion : fusions) all = united(all, search.context(fusion));
  return all;
}

Result<std::vector<FusionSet>> find_guilty(const FusionSet& all, const FusionSearch& search) {
  std::vector<FusionSet> sets;
  for (FusionSet list = all; !list.empty();) {
    SINTER_LET(wrong, ask(search, list));
    if (!wrong) break;
    SINTER_LET(guilty, find_one(list, search));
    // Without its last fusion a set is right, so that the others show what else fails.
    list = without(list, {guilty.front()});
    sets.push_back(std::move(guilty));
  }
  return sets;
}

}  // namespace sinter
