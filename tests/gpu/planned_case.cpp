#include "gpu/planned_case.h"

#include "driver/compile/compile.h"
#include "ir/verifier.h"

namespace sinter {

Result<PlannedCase> plan_case(uint64_t seed, const Case& test, const std::string& target) {
  SINTER_TRY(verify(test.module));
  PlannedCase planned{seed, test.symbol_values, {}, {}, {}};
  PassOptions passes;
  passes.recipe = test.recipe;
  SINTER_LET(frozen, freeze(test.module, {}, {}, passes));
  CompileOptions options;
  options.target = target;
  options.fusion.enabled = false;
  SINTER_LET(unfused, compile(frozen, options));
  options.fusion.enabled = true;
  SINTER_LET(fused, compile(std::move(frozen), options));
  planned.unfused = std::move(unfused.program);
  planned.fused = std::move(fused.program);
  for (int call = 0; call < kCallsOfCase; ++call) {
    SINTER_LET(data, random_data(test, seed + static_cast<uint64_t>(call)));
    planned.calls.push_back(std::move(data));
  }
  return planned;
}

}  // namespace sinter
