// A random module compiled with and without fusion, and its data: all of a case that needs no
// device.
#pragma once

#include <memory>
#include <vector>

#include "differential/random_tensors.h"
#include "plan/program.h"

namespace sinter {

inline constexpr int kCallsOfCase = 2;  // the second finds states that the first left

struct PlannedCase {
  uint64_t seed = 0;
  std::vector<int64_t> symbol_values;
  std::shared_ptr<const Program> fused, unfused;
  std::vector<CaseData> calls;  // all use the weights of the first
};

/// The case of a seed (generate.h), planned for the device description `target`. Both plans come
/// from one frozen module.
Result<PlannedCase> plan_case(uint64_t seed, const Case& test, const std::string& target);

}  // namespace sinter
