#include "driver/explain/relaxed_attention.h"

#include "ir/variants.h"
#include "passes/fusion/fusion_costs.h"
#include "passes/passes.h"

namespace sinter {
namespace {

/// Predictions for an entry as RelaxedSavings, without places.
RelaxedSavings costs_of(const Fusion& fusion, llvm::ArrayRef<int64_t> sizes) {
  const FusionCosts costs(fusion, sizes);
  RelaxedSavings sum{0, costs.seconds(), 0};
  for (const Group& group : fusion.grouping.groups) sum.bytes += costs.bytes(group).total();
  return sum;
}

}  // namespace

Result<EntrySavings> relaxed_savings(const OpenedModel& model, const CompileOptions& wanted,
                                     const Compiled& compiled) {
  EntrySavings all;
  for (const Entry& entry : compiled.module.entries) {
    const size_t places = rounded_attentions(entry.graph).size();
    all.push_back(places == 0 ? std::nullopt : std::optional(RelaxedSavings{places}));
  }
  if (llvm::none_of(all, [](const auto& savings) { return savings.has_value(); })) return all;
  CompileOptions options = compile_options(model, wanted);
  options.recipe.attention = Recipe::Attention::relaxed;
  SINTER_LET(module, freeze(model.module, options.entries, {}, pass_options(options)));
  SINTER_LET(device, find_device(options.target));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    // Relaxed, an entry may have other variants.
    const std::vector<int64_t> sizes = compiled.sizes_of(i);
    const Entry* called = variant_for(module.entries, compiled.module.entries[i].name, sizes);
    const auto index = static_cast<size_t>(called - module.entries.data());
    const RelaxedSavings now = costs_of(compiled.fusions[i], sizes);
    const RelaxedSavings relaxed = costs_of(fuse_entry(module, index, device, options), sizes);
    all[i]->seconds = now.seconds - relaxed.seconds;
    all[i]->bytes = now.bytes - relaxed.bytes;
  }
  return all;
}

}  // namespace sinter
