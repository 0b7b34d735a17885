// Which keys a condition on positions lets a query see, as one range of keys, perhaps beside a
// sink: a constant number of leading keys.
//
//   k <= q  and  q - k < 8              q - 7 .. q
//   k / 4 == q / 4                      4 * (q / 4) .. 4 * (q / 4) + 3
//   k <= q  and  (q - k < 8  or  k < 2) q - 7 .. q, and 0 .. 1 up to q
#pragma once

#include <vector>

#include "ir/position_terms.h"

namespace sinter {

/// The keys that are at least all of `lows` or less than `sink`, and at most all of `highs`; none
/// unless all of `conditions` (truth values) hold. Nothing of it depends on the key.
struct KeyRange {
  std::vector<Term> lows, highs, conditions;
  int64_t sink = 0;
};

class KeyRanges {
 public:
  /// `key`: the loop variable that is the key. `others`: loop variables on which no range may
  /// depend.
  KeyRanges(PositionTerms& terms, uint32_t key, llvm::ArrayRef<uint32_t> others)
      : terms_(terms), key_(key), others_(others) {}

  /// Restricts a range to the keys for which `truth` holds. False: it is not known to leave one
  /// range, and `range` is as it was.
  bool restrict(const Term& truth, KeyRange& range);

 private:
  bool add(const Term& truth, KeyRange& range);
  bool add_at_most_zero(const Term& x, KeyRange& range);
  bool add_function_at_most(const TermNode& function, const Term& most, KeyRange& range);
  bool add_function_at_least(const TermNode& function, const Term& least, KeyRange& range);
  bool add_low(const Term& low, KeyRange& range);
  bool add_union(const Term& a, const Term& b, KeyRange& range);
  bool add_touching(const KeyRange& a, const KeyRange& b, KeyRange& range);
  bool add_sink(const KeyRange& leading, const KeyRange& other, KeyRange& range);
  bool is_free(const Term& term) const;  // of the key and of others

  PositionTerms& terms_;
  uint32_t key_;
  llvm::ArrayRef<uint32_t> others_;
};

}  // namespace sinter
