// The order of work tiles whose inputs the L2 cache has to keep; the same text on host and device.
//
// A launch has `lists` lists of `tiles` work tiles each. The tiles of a list read the same memory,
// `list_bytes`, and are sorted by cost, the costliest first. A block computes the tile of its
// number, and blocks begin in the order of their numbers. Neighbouring lists whose memory fits into
// `cached_bytes` make a group: first the costliest tiles of all lists of the group, then the next
// ones. So the inputs of a group are read from memory once, and each group ends with cheap tiles.
// Groups have the same number of lists, but for the first one: the cheap tiles at the end of the
// launch belong to a whole group.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

struct ListTile {
  int place, list;
};

class CachedLists {
 public:
  SINTER_DEVICE CachedLists(int tiles, int lists, long long list_bytes, long long cached_bytes)
      : tiles_(tiles), lists_(lists), group_(lists) {
    if (list_bytes * lists <= cached_bytes) return;
    const int most = static_cast<int>(cached_bytes / list_bytes);
    const int groups = most > 1 ? (lists + most - 1) / most : lists;
    group_ = (lists + groups - 1) / groups;
    first_group_ = lists - (groups - 1) * group_;
  }

  SINTER_DEVICE bool has(int number) const { return number < tiles_ * lists_; }
  SINTER_DEVICE ListTile tile(int number) const {
    const int behind = number - tiles_ * first_group_;
    if (behind < 0) return {number / first_group_, number % first_group_};
    const int group = behind / (tiles_ * group_), rest = behind - tiles_ * group_ * group;
    return {rest / group_, first_group_ + group * group_ + rest % group_};
  }

 private:
  int tiles_, lists_, group_, first_group_ = group_;  // lists of a group
};

}  // namespace sinter
