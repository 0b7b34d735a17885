#include "passes/pipeline.h"

#include "ir/guarded.h"
#include "ir/verifier.h"
#include "passes/attention/attention_masks.h"
#include "passes/attention/expand_attention.h"
#include "passes/attention/recognize_attention.h"
#include "passes/attention/shared_heads.h"
#include "passes/fusion/check_rows.h"
#include "passes/fusion/materialize.h"
#include "passes/fusion/placed_parts.h"
#include "passes/fusion/recompute_parts.h"
#include "passes/products/choose_kernels.h"
#include "passes/products/entry_variants.h"
#include "passes/products/merge_linears.h"
#include "passes/reductions/block_sums.h"
#include "passes/reductions/column_operands.h"
#include "passes/reductions/label_sums.h"
#include "passes/reductions/run_sums.h"
#include "passes/simplify/canonicalize.h"
#include "passes/simplify/fold_positions.h"
#include "passes/simplify/moved_views.h"
#include "passes/simplify/padded_formulas.h"
#include "passes/simplify/unit_axes.h"

namespace sinter {
namespace {

/// A pass that has no options.
template <bool (*pass)(Module&)>
bool plain(Module& module, const PassOptions&) {
  return pass(module);
}

/// The pass, and the verifier behind it. An invariant that the pass breaks is an error.
Status run_verified(const Pass& pass, Module& module, const PassOptions& options) {
  const InvariantsThrow throws;
  try {
    pass.run(module, options);
  } catch (BrokenInvariant& broken) {
    return tl::make_unexpected(std::move(broken.error));
  }
  return verify(module);
}

constexpr Pass kPipeline[] = {
    {"canonicalize", plain<canonicalize>},
    {"label_sums", plain<label_sums>},
    {"padded_formulas", plain<padded_formulas>},
    {"recognize_attention",
     [](Module& module, const PassOptions& options) {
       return recognize_attention(module, options.recipe.attention == Recipe::Attention::relaxed);
     }},
    {"fold_positions", plain<fold_positions>},
    {"attention_masks", plain<attention_masks>},
    {"shared_heads", plain<shared_heads>},
    {"merge_linears", plain<merge_linears>},
    {"unit_axes", plain<unit_axes>},
    {"entry_variants",
     [](Module& module, const PassOptions& options) {
       return entry_variants(module, options.recipe);
     }},
    {"choose_kernels",
     [](Module& module, const PassOptions& options) {
       return choose_kernels(module, options.recipe);
     }},
    {"expand_attention", plain<expand_attention>},
    {"moved_views", plain<moved_views>},
    {"cleanup", plain<canonicalize>},
    {"materialize", plain<materialize>},
    {"recompute_parts", plain<recompute_parts>},
    {"block_sums", plain<block_sums>},
    {"run_sums", plain<run_sums>},
    {"column_operands", plain<column_operands>},
    {"placed_parts", plain<placed_parts>},
    {"check_rows",
     [](Module& module, const PassOptions& options) {
       return check_rows(module, options.device_inputs);
     }},
};

}  // namespace

llvm::ArrayRef<Pass> pipeline() { return kPipeline; }

void run_pass(const Pass& pass, Module& module, const PassOptions& options) {
  for (Entry& entry : module.entries)
    if (entry.output_names.empty())
      for (ValueId id : entry.graph.outputs) entry.output_names.push_back(entry.graph[id].name);
  const Status valid = run_verified(pass, module, options);
  SINTER_CHECK(valid.has_value(), "after {}: {}", pass.name, valid.error().message());
}

void run_passes(Module& module, const PassObserver& observer, const PassOptions& options) {
  for (const Pass& pass : pipeline()) {
    run_pass(pass, module, options);
    if (observer) observer(pass.name, module);
  }
}

}  // namespace sinter
