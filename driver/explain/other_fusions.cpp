#include "driver/explain/other_fusions.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/graph_copier.h"
#include "ir/variants.h"
#include "passes/fusion/fusion_state.h"

namespace sinter {
namespace {

// Ops of an entry that is still fused anew at smaller sizes.
constexpr size_t kFewOps = 200;

bool is_norm(const Op& op) { return op.attrs.has(AttrName::eps); }

}  // namespace

bool together(const Fusion& fusion, ValueId a, ValueId b) {
  const std::vector<uint32_t>& group_of = fusion.grouping.group_of;
  return group_of[a.index] != UINT32_MAX && group_of[a.index] == group_of[b.index];
}

OtherFusions::OtherFusions(const Compiled& compiled, size_t entry)
    : compiled_(compiled),
      symbols_(narrowed(compiled.module.symbols, compiled.module.entries[entry].range)),
      sizes_(compiled.sizes_of(entry)),
      graph_(compiled.module.entries[entry].graph),
      fusion_(compiled.fusions[entry]) {}

Fusion OtherFusions::fuse_again(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                                Numerics numerics) const {
  FusionOptions options;
  options.numerics = numerics;
  return fuse(graph, symbols, *find_device(compiled_.program->target), options);
}

const OtherFusions::Fast& OtherFusions::fast() {
  if (!fast_) {
    fast_ = {fuse_again(graph_, symbols_, Numerics::fast), {}, {}};
    fast_->merges = FusionCosts(fast_->fusion, sizes_).merges();
    fast_->tree = MergeTree(fast_->merges);
  }
  return *fast_;
}

std::optional<OtherFusions::Bound> OtherFusions::smaller_sizes(ValueId a, ValueId b) {
  if (graph_.size() > kFewOps) return std::nullopt;
  if (!smaller_) {
    smaller_.emplace();
    for (size_t s = 0; s < symbols_.size(); ++s) {
      std::vector<Symbol> symbols = symbols_;
      Symbol& symbol = symbols[s];
      while (true) {
        int64_t high = symbol.high / 2;
        high -= high % symbol.multiple;
        if (high < std::max<int64_t>(symbol.low, 1)) break;
        symbol.high = high;
        smaller_->emplace_back(Bound{s, high},
                               fuse_again(graph_, symbols, compiled_.program->numerics));
      }
    }
  }
  for (const auto& [bound, fusion] : *smaller_)
    if (together(fusion, a, b)) return bound;
  return std::nullopt;
}

bool OtherFusions::is_pre_norm(ValueId norm, ValueId add) const {
  if (!is_norm(graph_[norm]) || graph_[add].kind != OpKind::add ||
      graph_[graph_[norm].operands[0]].type != graph_[add].type)
    return false;
  const FusionProblem& problem = fusion_.state->problem;
  return llvm::any_of(problem.facts(norm).reads, [&](const Read& x) {
    return graph_[x.root].kind != OpKind::weight &&
           llvm::any_of(problem.facts(add).reads, [&](const Read& y) { return x.root == y.root; });
  });
}

bool OtherFusions::shares_with_norm_behind(ValueId norm, ValueId add) const {
  const Groups& groups = fusion_.state->groups;
  const Members members = groups.members(groups.find(add));
  Graph kernel;
  // A value that another kernel computes is an input of this one.
  GraphCopier copy(graph_, kernel, [&](ValueId id) {
    return computes(graph_[id]) && !llvm::is_contained(members, id);
  });
  for (ValueId member : members) {
    const ValueId added = copy(member);
    if (fusion_.state->problem.read_outside(member, members)) kernel.outputs.push_back(added);
  }
  Op behind = graph_[norm];
  behind.operands[0] = add;
  for (ValueId& operand : behind.operands) operand = copy(operand);
  behind.name += " behind " + graph_[add].name;
  const ValueId last = kernel.add(std::move(behind));
  kernel.outputs.push_back(last);
  return together(fuse_again(kernel, symbols_, compiled_.program->numerics), copy(add), last);
}

}  // namespace sinter
