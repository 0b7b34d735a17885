// The core of byte-pair encoding: which pairs of pieces merge, in what order, and doing it.
#pragma once

#include <cstdint>
#include <vector>

namespace sinter {

/// Pairs of ids, each with its rank and the id of the merged piece.
class MergeTable {
 public:
  struct Merge {
    int32_t left, right, merged;
    int32_t rank;  // lower ranks merge first; equal ones from left to right
  };

  MergeTable() = default;
  /// All ids are in [0, ids). Of equal pairs the last counts.
  MergeTable(std::vector<Merge> merges, int32_t ids);

  const Merge* find(int32_t left, int32_t right) const;

  /// Merges neighbours of `symbols` until none is left, in O(n log n).
  void apply(std::vector<int32_t>& symbols) const;

 private:
  void apply_short(std::vector<int32_t>& symbols) const;
  void apply_long(std::vector<int32_t>& symbols) const;

  std::vector<Merge> merges_;    // by left, then right
  std::vector<uint32_t> first_;  // of a left id, in merges_; one more than ids
};

}  // namespace sinter
