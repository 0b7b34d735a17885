#include "ir/index_set.h"

#include <algorithm>
#include <numeric>

#include "ir/error.h"

namespace sinter {

IndexSet IndexSet::whole(int64_t extent) {
  IndexSet set(extent);
  if (extent > 0) set.runs_.push_back({0, extent});
  return set;
}

IndexSet IndexSet::of(int64_t extent, llvm::ArrayRef<Run> runs) {
  IndexSet set(extent);
  for (const Run& run : runs)
    if (const Run inside{std::max<int64_t>(run.begin, 0), std::min(run.end, extent)};
        inside.begin < inside.end)
      set.runs_.push_back(inside);
  set.normalize();
  return set;
}

IndexSet IndexSet::at_most(int64_t extent, int64_t size) {
  IndexSet set(extent);
  set.inexact_size_ = std::min(size, extent);
  return set;
}

void IndexSet::normalize() {
  llvm::sort(runs_, [](const Run& a, const Run& b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t i = 1; i < runs_.size(); ++i)
    if (runs_[i].begin <= runs_[last].end)
      runs_[last].end = std::max(runs_[last].end, runs_[i].end);
    else
      runs_[++last] = runs_[i];
  if (!runs_.empty()) runs_.truncate(last + 1);
  const bool full = runs_.size() == 1 && runs_[0] == Run{0, period_};
  if (full) *this = whole(extent_);
  if (runs_.size() > kMaxRuns) *this = at_most(extent_, size());
}

int64_t IndexSet::size() const {
  if (inexact_size_) return *inexact_size_;
  int64_t in_period = 0;
  for (const Run& run : runs_) in_period += run.end - run.begin;
  return in_period * repeats();
}

size_t IndexSet::runs_in(int64_t period) const {
  const bool whole_period = runs_.size() == 1 && runs_[0] == Run{0, period_};
  return whole_period ? 1 : runs_.size() * static_cast<size_t>(period / period_);
}

/// The runs of a longer period, or of one of a set that is whole.
llvm::SmallVector<IndexSet::Run, 2> IndexSet::runs_over(int64_t period) const {
  if (is_whole()) return {{0, period}};
  llvm::SmallVector<Run, 2> runs;
  for (int64_t start = 0; start < period; start += period_)
    for (const Run& run : runs_) runs.push_back({start + run.begin, start + run.end});
  return runs;
}

IndexSet& IndexSet::unite(const IndexSet& other) {
  SINTER_CHECK(extent_ == other.extent_, "sets of {} and {} indices", extent_, other.extent_);
  if (other.size() == 0 || (is_whole() && exact())) return *this;
  if (size() == 0 || (other.is_whole() && other.exact())) return *this = other;
  const int64_t most = std::min(extent_, size() + other.size());
  if (!exact() || !other.exact()) return *this = at_most(extent_, most);
  const int64_t period = std::lcm(period_, other.period_);
  if (runs_in(period) + other.runs_in(period) > kMaxRuns) return *this = at_most(extent_, most);
  runs_ = runs_over(period);
  llvm::append_range(runs_, other.runs_over(period));
  period_ = period;
  normalize();
  return *this;
}

IndexSet IndexSet::product(const IndexSet& outer, const IndexSet& inner) {
  const int64_t extent = outer.extent_ * inner.extent_;
  if (outer.size() == 0 || inner.size() == 0) return IndexSet(extent);
  if (!outer.exact() || !inner.exact()) return at_most(extent, outer.size() * inner.size());
  if (outer.is_whole() && inner.is_whole()) return whole(extent);
  IndexSet result(extent);
  if (outer.is_whole()) {
    result.period_ = inner.period_;
    result.runs_ = inner.runs_;
    return result;
  }
  result.period_ = outer.period_ * inner.extent_;
  if (inner.is_whole()) {
    for (const Run& run : outer.runs_)
      result.runs_.push_back({run.begin * inner.extent_, run.end * inner.extent_});
    return result;
  }
  const int64_t copies = outer.size() / outer.repeats();
  if (static_cast<size_t>(copies) > kMaxRuns ||
      inner.runs_in(inner.extent_) * static_cast<size_t>(copies) > kMaxRuns)
    return at_most(extent, outer.size() * inner.size());
  const auto inner_runs = inner.runs_over(inner.extent_);
  for (const Run& run : outer.runs_)
    for (int64_t i = run.begin; i < run.end; ++i)
      for (const Run& own : inner_runs)
        result.runs_.push_back({i * inner.extent_ + own.begin, i * inner.extent_ + own.end});
  result.normalize();
  return result;
}

}  // namespace sinter
