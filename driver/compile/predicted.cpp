#include "driver/compile/predicted.h"

#include "ir/variants.h"
#include "passes/fusion_costs.h"

namespace sinter {

std::optional<double> predicted_seconds(const Compiled& compiled, std::string_view entry,
                                        llvm::ArrayRef<int64_t> sizes,
                                        const DeviceDescription* board) {
  const Entry* called = variant_for(compiled.module.entries, entry, sizes);
  if (!called) return std::nullopt;
  const Fusion& fusion = compiled.fusions[called - compiled.module.entries.data()];
  if (!fusion.state) return std::nullopt;
  return FusionCosts(fusion, sizes, board).seconds();
}

}  // namespace sinter
