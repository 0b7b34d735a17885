// The passes, in the order of the pipeline. Each stands in the file of its name, whose head says
// what it does to a module, with an example before and after. True: something changed.
#pragma once

#include "ir/graph.h"
#include "kernels/recipe.h"

namespace sinter {

/// The options of a compilation for its passes.
struct PassOptions {
  /// The caller's inputs are in device memory, where nobody checks them before a call
  /// (check_rows).
  bool device_inputs = false;
  Recipe recipe = {};
};

bool canonicalize(Module& module);
bool label_sums(Module& module);
bool padded_formulas(Module& module);
bool recognize_attention(Module& module, const PassOptions& options);
bool fold_positions(Module& module);
bool attention_masks(Module& module);
bool shared_heads(Module& module);
bool merge_linears(Module& module);
bool unit_axes(Module& module);
bool entry_variants(Module& module, const PassOptions& options);
bool choose_kernels(Module& module, const PassOptions& options);
bool expand_attention(Module& module);
bool moved_views(Module& module);
bool materialize(Module& module);
bool recompute_parts(Module& module);
bool block_sums(Module& module);
bool run_sums(Module& module);
bool column_operands(Module& module);
bool placed_parts(Module& module);
bool check_rows(Module& module, const PassOptions& options);

/// Attention that recognize_attention leaves composed, since its scores are rounded: the last
/// products, whose scores Recipe::Attention::relaxed would keep in float32.
std::vector<ValueId> rounded_attentions(const Graph& graph);

}  // namespace sinter
