#include "driver/bisect/plan_times.h"

#include <algorithm>
#include <cmath>

#include "ir/variants.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

constexpr int kTurns = 15;
// A sample takes at least this long, so that the clock's resolution and a launch's latency count
// for little.
constexpr double kSampleSeconds = 2e-3;
constexpr int64_t kMaxLaunches = 2000;

}  // namespace

Result<PlanTimer::Recorded> PlanTimer::record(const std::shared_ptr<const Executable>& executable,
                                              const PlanRuns::Call& call,
                                              llvm::ArrayRef<int64_t> session_values) {
  SINTER_LET(session, executable->new_session(session_values));
  SINTER_LET(calls, ResidentCalls::create(std::move(session),
                                          {resident_call(executable->program(), call.entry,
                                                         call.symbol_values, call.inputs)}));
  SINTER_LET(graph, calls.record());
  return Recorded{std::move(calls), std::move(graph)};
}

Result<double> PlanTimer::time(const Recorded& call, Stopwatch& watch, int64_t launches) {
  const CudaStream& stream = call.calls.stream();
  SINTER_TRY(watch.start(stream));
  for (int64_t i = 0; i < launches; ++i) SINTER_TRY(call.graph.launch(stream));
  SINTER_LET(times, watch.stop(stream));
  return times.device_s / static_cast<double>(launches);
}

Result<PlanTimer> PlanTimer::create(const PlanRuns& runs,
                                    std::shared_ptr<const Executable> reference) {
  PlanTimer times;
  times.session_values_ = runs.calls().front().symbol_values;
  std::vector<const EntryPlan*> seen;
  for (const PlanRuns::Call& call : runs.calls()) {
    const EntryPlan* entry =
        variant_for(reference->program().entries, call.entry, call.symbol_values);
    if (llvm::is_contained(seen, entry)) continue;
    seen.push_back(entry);
    times.calls_.push_back(call);
    SINTER_LET(recorded, record(reference, call, times.session_values_));
    times.reference_.push_back(std::move(recorded));
  }
  return times;
}

Result<std::vector<CallTimes>> PlanTimer::measure(
    const std::shared_ptr<const Executable>& plan) const {
  SINTER_LET(watch, Stopwatch::create(plan->on_cuda()->cuda_device()));
  std::vector<CallTimes> all;
  for (size_t i = 0; i < calls_.size(); ++i) {
    SINTER_LET(own, record(plan, calls_[i], session_values_));
    const Recorded& other = reference_[i];
    SINTER_TRY(time(own, watch, kWarmLaunches));
    SINTER_LET(warm, time(other, watch, kWarmLaunches));
    const auto launches = static_cast<int64_t>(std::clamp(
        std::ceil(kSampleSeconds / std::max(warm, 1e-9)), 1.0, static_cast<double>(kMaxLaunches)));
    std::vector<double> own_s, other_s, ratios;
    for (int turn = 0; turn < kTurns; ++turn) {
      // Neither always runs after the other.
      const bool swapped = turn % 2 == 1;
      SINTER_LET(first, time(swapped ? other : own, watch, launches));
      SINTER_LET(second, time(swapped ? own : other, watch, launches));
      own_s.push_back(swapped ? second : first);
      other_s.push_back(swapped ? first : second);
      ratios.push_back(own_s.back() / other_s.back());
    }
    all.push_back({calls_[i].entry, median(own_s), median(other_s), median(ratios)});
  }
  return all;
}

}  // namespace sinter
