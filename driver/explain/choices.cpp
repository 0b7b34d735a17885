#include "driver/explain/choices.h"

#include <llvm/ADT/STLExtras.h>

#include <cmath>

#include "driver/text_table.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "passes/products/choose_kernels.h"

namespace sinter {
namespace {

/// Why attention of many tokens is not one kernel.
constexpr const char* kWhyComposed = "by --attention composed, or heads that no kernel takes";

}  // namespace

std::vector<LedgerChoice> choices_of(const Graph& graph) {
  std::vector<LedgerChoice> choices;
  const auto add = [&](const Op& op, std::string_view by, KernelChoice choice) {
    auto known = llvm::find_if(choices, [&](const LedgerChoice& one) {
      return one.what == choice.what && one.by == by && one.why == choice.why;
    });
    if (known == choices.end())
      known = choices.insert(
          known, {std::string(choice.what), std::string(by), std::move(choice.why), {}});
    known->values.push_back(op.name);
  };
  for (const Op& op : graph.ops()) {
    const KernelFamily* family = anchored_by(op);
    if (family && family->choosing.explain)
      add(op, algorithm_name(op), family->choosing.explain(graph, op));
    if (op.kind == OpKind::attention_softmax) add(op, "composed", {"attention", kWhyComposed});
  }
  for (ValueId id : rounded_attentions(graph))
    add(graph[id], "composed",
        {"attention", fmt::format("its scores are rounded to {}; --attention relaxed keeps them in "
                                  "float32 and makes it one kernel",
                                  to_string(graph[id].type.dtype))});
  for (ValueId id : rounded_matrices(graph))
    add(graph[id], "cast",
        {"quantized matrix",
         fmt::format("its elements are rounded to {}", to_string(graph[id].type.dtype))});
  return choices;
}

std::string choice_text(const LedgerChoice& choice) {
  return fmt::format("{}: {} by {} ({})", choice.what, choice.values.size(), choice.by, choice.why);
}

std::string savings_text(const RelaxedSavings& savings) {
  const auto verb = [](double saved) { return saved < 0 ? "cost" : "save"; };
  const std::string_view of_time = verb(savings.seconds), of_bytes = verb(savings.bytes);
  return fmt::format("would {} {} and {}{}{}", of_time, duration(std::abs(savings.seconds)),
                     of_time == of_bytes ? "" : fmt::format("{} ", of_bytes),
                     with_unit(std::abs(savings.bytes), "B"),
                     savings.places == 1 ? "" : fmt::format(" in {} places", savings.places));
}

}  // namespace sinter
