// The ranks of one run: threads of a process, each with its own session, that meet at the steps
// that are collectives.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "ir/dtype.h"
#include "ir/error.h"

namespace sinter {

class RankGroup {
 public:
  explicit RankGroup(size_t ranks) : values_(ranks), left_(ranks, false) {}
  size_t size() const { return values_.size(); }

  /// A rank's value in a collective. `step` names the collective; all ranks give the same name,
  /// type and size.
  struct Value {
    std::string step;
    DType dtype = DType::f32;
    const std::byte* data = nullptr;  // stays as it is until the call returns
    size_t bytes = 0;
  };
  /// Waits for the values of all ranks and writes their sum to `result`: added in the order of the
  /// ranks, in float32 and rounded once; i32 wraps around. Errors: the ranks are at different
  /// collectives, or one has left.
  Status all_reduce(size_t rank, const Value& own, std::byte* result);

  /// The rank takes part in no further collective. Ranks that wait for it get an error.
  void leave(size_t rank, bool failed);
  /// The rank that failed first; the errors of later ones may follow from it.
  std::optional<size_t> first_failed() const { return first_failed_; }

 private:
  Status meet(const std::string& step);
  Status same_collective(size_t rank) const;

  mutable std::mutex mutex_;
  std::condition_variable met_;
  std::vector<Value> values_;
  std::vector<bool> left_;
  size_t waiting_ = 0;
  uint64_t meetings_ = 0;
  std::optional<size_t> first_failed_;
};

}  // namespace sinter
