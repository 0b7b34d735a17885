#include "driver/explain/option_lifts.h"

#include <llvm/ADT/STLExtras.h>

#include "driver/explain/other_fusions.h"
#include "ir/graph_copier.h"
#include "ir/variants.h"
#include "kernels/family.h"
#include "passes/fusion/fusion_state.h"
#include "passes/products/choose_kernels.h"

namespace sinter {
namespace {

struct Option {
  std::string_view text;
  Numerics numerics;
  Recipe recipe = {};
};

constexpr Option kFast{"--numerics fast", Numerics::fast},
    kOwn{"--products own", Numerics::strict, {.products = Recipe::Products::own}},
    kFree{"without --forbid and --stop-after", Numerics::strict};

llvm::ArrayRef<Option> options_against(Reason reason) {
  static constexpr Option kCall[] = {kOwn}, kStrict[] = {kFast, kOwn}, kConstraint[] = {kFree};
  switch (reason) {
    case Reason::port_of_call:
      return kCall;
    case Reason::numerics_strict:
      return kStrict;
    case Reason::forbidden:
    case Reason::stopped:
      return kConstraint;
    default:
      return {};
  }
}

}  // namespace

OptionLifts::OptionLifts(const Compiled& compiled, size_t entry, const FusionCosts& costs)
    : compiled_(compiled),
      costs_(costs),
      entry_(compiled.module.entries[entry]),
      fusion_(compiled.fusions[entry]),
      symbols_(narrowed(compiled.module.symbols, entry_.range)) {}

std::optional<OptionLifts::Lift> OptionLifts::lift(ValueId a, ValueId b, Reason reason) const {
  const llvm::ArrayRef<Option> options = options_against(reason);
  if (options.empty()) return std::nullopt;
  const Graph& graph = entry_.graph;
  const Grouping& grouping = fusion_.grouping;
  llvm::SmallVector<ValueId, 8> members;
  double now = 0;  // seconds of both kernels
  for (ValueId id : {a, b}) {
    const Group& group = grouping.groups[grouping.group_of[id.index]];
    llvm::append_range(members, group.members);
    now += costs_.seconds(group);
  }
  llvm::sort(members);
  // The two kernels as an entry of its own: what others compute are inputs, what others read are
  // outputs.
  Entry pair;
  pair.name = entry_.name;
  pair.tokens = entry_.tokens;
  pair.range = entry_.range;
  GraphCopier copy(graph, pair.graph, [&](ValueId id) {
    return computes(graph[id]) && !llvm::is_contained(members, id);
  });
  for (ValueId member : members) {
    const ValueId added = copy(member);
    if (costs_.problem().read_outside(member, members)) pair.graph.outputs.push_back(added);
  }
  const std::string& name_a = graph[a].name;
  const std::string& name_b = graph[b].name;
  std::optional<Lift> best;
  for (const Option& option : options) {
    FusionOptions asked;
    asked.numerics =
        option.numerics == Numerics::fast ? Numerics::fast : compiled_.program->numerics;
    const Graph* tried = &pair.graph;
    std::optional<Graph> chosen;
    if (option.recipe != Recipe()) {
      chosen = with_chosen_kernels(pair, symbols_, option.recipe);
      if (!chosen) continue;
      tried = &*chosen;
    }
    const Fusion fusion = fuse(*tried, symbols_, costs_.problem().device(), asked);
    const ValueId x = tried->find(name_a), y = tried->find(name_b);
    if (!x.valid() || !y.valid() || !together(fusion, x, y)) continue;
    const double saved =
        now - FusionCosts(fusion, costs_.problem().sizes(), &costs_.problem().device()).seconds();
    if (!best || saved > best->seconds) best = Lift{option.text, saved};
  }
  return best;
}

}  // namespace sinter
