#include "driver/compile/predicted.h"

#include "ir/variants.h"
#include "passes/fusion/fusion_costs.h"

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

std::string estimates_for(std::string_view target, bool measured) {
  static constexpr std::pair<std::string_view, std::string_view> kBoards[] = {
      {"sm_80", "A100 80GB"}, {"sm_86", "RTX 3090"}, {"sm_89", "L40S"},     {"sm_90", "H100 PCIe"},
      {"sm_90a", "H200"},     {"sm_100", "B200"},    {"sm_120", "RTX 5090"}};
  constexpr std::string_view kWhat = "a cost model's estimates";
  if (measured) return fmt::format("{} at the rates that were measured of a board", kWhat);
  for (const auto& [name, board] : kBoards)
    if (name == target) return fmt::format("{} for one {}", kWhat, board);
  return fmt::format("{} for a board of {}", kWhat, target);
}

}  // namespace sinter
