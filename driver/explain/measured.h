// Measured times that replace predicted ones: what `profile --json` or `bench --json` saved.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile/compile.h"

namespace sinter {

/// A launch as the device ran it; absent where the file does not have it.
struct MeasuredLaunch {
  std::vector<int64_t> grid, block;  // x, y, z
  int64_t registers = 0;             // of a thread
  int64_t shared_bytes = 0;          // of a block
};

struct MeasuredStep {
  double seconds = 0;  // a launch, the mean over the steps of one kernel
  std::optional<MeasuredLaunch> launch;
};

class MeasuredTimes {
 public:
  bool empty() const { return steps_.empty() && calls_.empty(); }
  const std::string& device() const { return device_; }

  /// The step of an entry that computes these values; null: the file does not have it.
  const MeasuredStep* step(const std::string& entry, const std::vector<std::string>& values) const;
  /// The seconds of a call of an entry that was measured as a whole.
  std::optional<double> call(const std::string& entry) const;
  /// An error where a measured step of an entry of the plan is no step of it: the file is about
  /// another plan.
  Status check(const Program& program, const std::string& file) const;

 private:
  friend Result<MeasuredTimes> read_measured(const std::string& path);

  std::string device_;
  std::map<std::pair<std::string, std::string>, MeasuredStep> steps_;  // entry, values
  std::map<std::string, double> calls_;
};

/// Errors: a file that is neither, or that has no times.
Result<MeasuredTimes> read_measured(const std::string& path);

}  // namespace sinter
