#include "device/capabilities.h"

#include <charconv>

namespace sinter {
namespace {

/// 80 of "sm_80", 90 of "sm_90a"; 0 of what is no such name.
int compute_capability(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  if (!arch.starts_with(kPrefix)) return 0;
  int number = 0;
  std::from_chars(arch.data() + kPrefix.size(), arch.data() + arch.size(), number);
  return number;
}

}  // namespace

Capabilities capabilities_of(std::string_view arch) {
  const int version = compute_capability(arch);
  return {
      .async_copy = version >= 80,
      .mma = version >= 80,
      .bf16_arithmetic = version >= 80,
      .fp8_conversion = version >= 89,
      .clusters = version >= 90,
      .pdl = version >= 90,
      // Devices of 12.0 have the instruction, but too little shared memory for the kernels that
      // copy so.
      .bulk_copy = version >= 90 && version < 120,
      .wgmma = arch == "sm_90a",
  };
}

std::vector<std::string> kernel_macros(const Capabilities& has) {
  std::vector<std::string> macros;
  const auto add = [&](bool present, const char* name) {
    if (present) macros.push_back(std::string("SINTER_HAS_") + name);
  };
  add(has.async_copy, "ASYNC_COPY");
  add(has.mma, "MMA");
  add(has.bf16_arithmetic, "BF16_ARITHMETIC");
  add(has.fp8_conversion, "FP8_CONVERSION");
  add(has.clusters, "CLUSTERS");
  add(has.pdl, "PDL");
  add(has.bulk_copy, "BULK_COPY");
  add(has.wgmma, "WGMMA");
  return macros;
}

}  // namespace sinter
