// How much longer a plan's calls take on a GPU than the calls of another plan of the module.
#pragma once

#include "driver/bisect/plan_runs.h"
#include "driver/measure/resident_calls.h"
#include "driver/measure/stopwatch.h"

namespace sinter {

/// The calls of one entry, or of one variant of it.
struct CallTimes {
  std::string entry;
  double plan_s = 0, reference_s = 0;  // of one call, medians
  double ratio = 0;                    // the median of the turns: plan by reference
};

/// Calls of plans, recorded as CUDA graphs and timed in turns with a reference plan's calls. One
/// thread at a time.
class PlanTimer {
 public:
  /// `reference`: a CudaExecutable. Of the calls, the first one of each entry and each variant is
  /// timed.
  static Result<PlanTimer> create(const PlanRuns& runs,
                                  std::shared_ptr<const Executable> reference);

  Result<std::vector<CallTimes>> measure(const std::shared_ptr<const Executable>& plan) const;

 private:
  /// A call that stays on the device.
  struct Recorded {
    ResidentCalls calls;
    CudaGraph graph;
  };
  static Result<Recorded> record(const std::shared_ptr<const Executable>& executable,
                                 const PlanRuns::Call& call, llvm::ArrayRef<int64_t> session);
  /// Seconds of one of `launches` launches.
  static Result<double> time(const Recorded& call, Stopwatch& watch, int64_t launches);

  std::vector<PlanRuns::Call> calls_;
  std::vector<int64_t> session_values_;
  std::vector<Recorded> reference_;  // one for each call
};

}  // namespace sinter
