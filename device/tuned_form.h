// Forms of kernels that were measured on a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sinter {

/// The form of a kernel, a number by its name: {"warps": 16, "stages": 4}. The kernel's family says
/// what the names mean and which numbers fit (Tuning in kernels/family.h).
struct TunedForm {
  std::map<std::string, int64_t> numbers;
  double seconds = 0;  // of a decode step, measured by the tuner; 0: not measured

  friend bool operator==(const TunedForm&, const TunedForm&) = default;
};

/// "stage_bytes 2048, stages 4, warps 16"
std::string to_string(const TunedForm& form);

/// By kernel family, then by what the form is chosen for (Tuning::key).
using TunedForms = std::map<std::string, std::map<std::string, TunedForm>>;

}  // namespace sinter
