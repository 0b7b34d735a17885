// Sets of the elements of a value, by their row-major index: what reads of it reach.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>

namespace sinter {

/// Runs of neighbouring indices of a period, repeated over an extent: columns 0 to 63 of [N, 128]
/// are the run 0 .. 63 of a period of 128. Sets with more runs than kMaxRuns, and sets of which
/// only the size is known, are inexact: size() is then an upper bound.
class IndexSet {
 public:
  struct Run {
    int64_t begin, end;
    friend bool operator==(const Run&, const Run&) = default;
  };
  static constexpr size_t kMaxRuns = 1 << 14;

  /// None of the indices 0 .. extent - 1.
  explicit IndexSet(int64_t extent = 0) : extent_(extent), period_(extent) {}
  static IndexSet whole(int64_t extent);
  /// The runs, in any order and overlapping or not, as far as they lie within the extent.
  static IndexSet of(int64_t extent, llvm::ArrayRef<Run> runs);
  /// At most `size` indices, not known which.
  static IndexSet at_most(int64_t extent, int64_t size);

  int64_t extent() const { return extent_; }
  bool exact() const { return !inexact_size_; }
  bool is_whole() const { return size() == extent_; }
  /// How many indices are in it.
  int64_t size() const;

  /// Adds the indices of a set of the same extent.
  IndexSet& unite(const IndexSet& other);
  /// The indices i * inner.extent() + k for all i of `outer` and k of `inner`.
  static IndexSet product(const IndexSet& outer, const IndexSet& inner);

 private:
  int64_t repeats() const { return period_ > 0 ? extent_ / period_ : 0; }
  size_t runs_in(int64_t period) const;
  llvm::SmallVector<Run, 2> runs_over(int64_t period) const;
  void normalize();

  int64_t extent_, period_;         // the period divides the extent
  llvm::SmallVector<Run, 2> runs_;  // of the first period; ascending, apart
  std::optional<int64_t> inexact_size_;
};

}  // namespace sinter
