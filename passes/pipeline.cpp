#include "passes/pipeline.h"

#include "ir/guarded.h"
#include "ir/verifier.h"

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
    {"recognize_attention", recognize_attention},
    {"fold_positions", plain<fold_positions>},
    {"attention_masks", plain<attention_masks>},
    {"shared_heads", plain<shared_heads>},
    {"merge_linears", plain<merge_linears>},
    {"unit_axes", plain<unit_axes>},
    {"entry_variants", entry_variants},
    {"choose_kernels", choose_kernels},
    {"expand_attention", plain<expand_attention>},
    {"moved_views", plain<moved_views>},
    {"cleanup", plain<canonicalize>},
    {"materialize", plain<materialize>},
    {"recompute_parts", plain<recompute_parts>},
    {"block_sums", plain<block_sums>},
    {"run_sums", plain<run_sums>},
    {"column_operands", plain<column_operands>},
    {"placed_parts", plain<placed_parts>},
    {"check_rows", check_rows},
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
