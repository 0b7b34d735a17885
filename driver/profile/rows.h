// A table of kernels from profiled tokens: how often each runs, how long, and what holds it back.
#pragma once

#include "driver/profile/costs.h"
#include "driver/profile/records.h"
#include "driver/step_class.h"
#include "runtime/cuda/ceiling.h"

namespace sinter {

/// A step of a token: of all its entries' steps, in the order of launch.
struct ProfiledStep {
  std::string entry;
  std::string title;                // of step_title()
  std::vector<std::string> values;  // IR values that it computes
  StepCost cost;
  StepClass step_class = StepClass::copies;
};

/// Measured in the same run.
struct ProfileCeilings {
  Ceiling read, copy;  // bytes a second
  Ceiling gemm;        // operations a second, in the model's element type
};

/// The bound of a kernel's time. Its bytes at the ceiling of memory and its operations at the
/// ceiling of matrix products give the least times it could take. The longer one is the bound if it
/// is at least half of the measured time. Otherwise the bound is latency: the kernel waits for its
/// launch or for one access after the other, or has too few threads.
enum class Bound : uint8_t { memory, compute, latency };
std::string_view to_string(Bound bound);
inline constexpr double kBoundShare = 0.5;

/// Steps of one kind: the same kernel, or products of the same size.
struct ProfileRow {
  std::string title;
  std::vector<std::string>
      functions;                    // of the device, by first launch: more than one for a library's
  std::vector<std::string> values;  // see shortened()
  size_t steps = 0;                 // per token
  double launches = 0;              // of functions, per token
  double seconds = 0;               // per token: the median over the tokens of added_seconds()
  double share = 0;                 // of the seconds of all rows
  StepCost cost;                    // per token
  double of_ceiling = 0;            // bytes a second, as a share of the ceiling
  // The copy's ceiling where at least a third of the bytes is written, else the read's.
  bool against_copy = false;
  Bound bound = Bound::latency;
  KernelRecord first;                   // launch configuration of the first launch
  std::optional<StepClass> step_class;  // none: outside the plan

  double bytes_per_s() const { return seconds > 0 ? cost.bytes() / seconds : 0; }
  double flops_per_s() const { return seconds > 0 ? cost.flops / seconds : 0; }
};

/// Longest first. Kernels without a step have a row of their own, "(outside the plan)". Steps that
/// launched nothing have none.
std::vector<ProfileRow> profile_rows(const std::vector<ProfiledStep>& steps,
                                     const std::vector<ProfiledToken>& tokens,
                                     const ProfileCeilings& ceilings);

/// The rows of one class.
struct ProfileClass {
  std::optional<StepClass> step_class;  // none: outside the plan
  double launches = 0, seconds = 0;     // per token
  double share = 0;                     // of the seconds of all rows
};
/// The name of a class, "outside the plan" of none.
std::string_view class_name(std::optional<StepClass> step_class);
/// Longest first; classes without a row have none.
std::vector<ProfileClass> profile_classes(const std::vector<ProfileRow>& rows);

/// Values with layers' numbers as stars, each once: l0.res1, l1.res1 → l*.res1.
std::vector<std::string> shortened(const std::vector<std::string>& values);

}  // namespace sinter
