#include "driver/compile/predicted.h"

#include "passes/fusion_costs.h"

namespace sinter {

std::optional<double> predicted_seconds(const Compiled& compiled, std::string_view entry,
                                        llvm::ArrayRef<int64_t> sizes) {
  for (size_t i = 0; i < compiled.fusions.size(); ++i)
    if (compiled.module.entries[i].name == entry && compiled.fusions[i].state)
      return FusionCosts(compiled.fusions[i], sizes).seconds();
  return std::nullopt;
}

}  // namespace sinter
