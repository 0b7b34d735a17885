#include "driver/explain/change.h"

#include <llvm/ADT/STLExtras.h>

#include <unordered_map>

#include "driver/explain/layers.h"
#include "driver/text_table.h"
#include "ir/op_roles.h"
#include "kernels/family.h"
#include "kernels/pointers.h"
#include "passes/fusion_costs.h"
#include "passes/fusion_state.h"

namespace sinter {
namespace {

// Larger graphs are not fused anew at smaller sizes: each takes as long as the first fusion.
constexpr size_t kFewOps = 200;

bool together(const Fusion& fusion, ValueId a, ValueId b) {
  const std::vector<uint32_t>& group_of = fusion.grouping.group_of;
  return group_of[a.index] != UINT32_MAX && group_of[a.index] == group_of[b.index];
}

bool is_norm(const Op& op) { return op.attrs.has(AttrName::eps); }

/// "a call of cuBLASLt", "a kernel of its own".
std::string what_it_is(const Op& op) {
  const KernelFamily* family = anchored_by(op.kind);
  const bool call = family && family->kind == KernelFamily::Kind::call;
  return call ? "a call of cuBLASLt" : "a kernel of its own";
}

}  // namespace

struct Changes::State {
  /// One entry, with what answers about it have in common. Filled when it is first asked for.
  struct EntryAnswers {
    std::unordered_map<std::string_view, ValueId> by_name;
    std::vector<GroupMerge> merges;
    /// The first fusion of each op.
    std::unordered_map<uint32_t, size_t> merge_of;
    std::optional<Fusion> fast;
    std::vector<GroupMerge> fast_merges;
  };

  explicit State(const Compiled& compiled) : compiled(compiled), answers(compiled.fusions.size()) {}

  const Graph& graph(size_t entry) const { return compiled.module.entries[entry].graph; }
  const std::string& name(size_t entry, ValueId id) const { return graph(entry)[id].name; }

  EntryAnswers& of(size_t entry) {
    std::unique_ptr<EntryAnswers>& own = answers[entry];
    if (own) return *own;
    own = std::make_unique<EntryAnswers>();
    const Graph& graph = this->graph(entry);
    for (uint32_t i = 0; i < graph.size(); ++i) own->by_name[graph.ops()[i].name] = {i};
    const Fusion& fusion = compiled.fusions[entry];
    own->merges = FusionCosts(fusion, compiled.sizes).merges();
    for (size_t i = 0; i < own->merges.size(); ++i)
      for (ValueId op :
           {fusion.ledger[own->merges[i].decision].a, fusion.ledger[own->merges[i].decision].b})
        own->merge_of.try_emplace(op.index, i);
    return *own;
  }

  /// The same entry with other numerics or symbols.
  Fusion fuse_again(size_t entry, llvm::ArrayRef<Symbol> symbols, Numerics numerics) const {
    FusionOptions options;
    options.numerics = numerics;
    return fuse(graph(entry), symbols, *find_device(compiled.program->target), options);
  }

  std::string partner(size_t entry, ValueId id);
  std::string elsewhere(size_t entry, ValueId a, ValueId b, ValueId closed);
  std::string smaller_sizes(size_t entry, ValueId a, ValueId b) const;
  std::string of_path(size_t entry, ValueId a, ValueId b, llvm::ArrayRef<ValueId> path);
  std::string of_closed(size_t entry, ValueId a, ValueId b);
  std::string of_strict(size_t entry, ValueId a, ValueId b);

  const Compiled& compiled;
  std::vector<std::unique_ptr<EntryAnswers>> answers;
};

/// "l0.res1 fuses with l0.norm2 (saves 4.19 MB)"; empty: with nothing.
std::string Changes::State::partner(size_t entry, ValueId id) {
  EntryAnswers& own = of(entry);
  const auto at = own.merge_of.find(id.index);
  if (at == own.merge_of.end()) return "";
  const GroupMerge& merge = own.merges[at->second];
  const LedgerEntry& decision = compiled.fusions[entry].ledger[merge.decision];
  const ValueId other = decision.a == id ? decision.b : decision.a;
  return fmt::format("{} fuses with {} (saves {})", name(entry, id), name(entry, other),
                     merge.saved_bytes > 0 ? with_unit(merge.saved_bytes, "B") : "a launch");
}

/// Another entry in which the values of these names share a kernel; empty: there is none.
std::string Changes::State::elsewhere(size_t entry, ValueId a, ValueId b, ValueId closed) {
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i == entry || !compiled.fusions[i].state) continue;
    const auto& names = of(i).by_name;
    const auto x = names.find(name(entry, a)), y = names.find(name(entry, b));
    if (x == names.end() || y == names.end() ||
        !together(compiled.fusions[i], x->second, y->second))
      continue;
    const std::string& where = compiled.module.entries[i].name;
    if (closed.valid())
      if (const auto z = names.find(name(entry, closed)); z != names.end())
        return fmt::format("in {}, where it is a {}, they share a kernel", where,
                           op_info(graph(i)[z->second].kind).name);
    return fmt::format("in {} they share a kernel", where);
  }
  return "";
}

/// The largest bound of a symbol, of those that halving leads to, at which they share a kernel.
std::string Changes::State::smaller_sizes(size_t entry, ValueId a, ValueId b) const {
  if (graph(entry).size() > kFewOps) return "";
  const std::vector<Symbol>& symbols = compiled.module.symbols;
  for (size_t s = 0; s < symbols.size(); ++s) {
    std::vector<Symbol> smaller = symbols;
    while (true) {
      int64_t high = smaller[s].high / 2;
      high -= high % smaller[s].multiple;
      if (high < std::max<int64_t>(smaller[s].low, 1)) break;
      smaller[s].high = high;
      if (together(fuse_again(entry, smaller, compiled.program->numerics), a, b))
        return fmt::format("with {} of at most {} they would share one", symbols[s].name, high);
    }
  }
  return "";
}

std::string Changes::State::of_path(size_t entry, ValueId a, ValueId b,
                                    llvm::ArrayRef<ValueId> path) {
  const Graph& graph = this->graph(entry);
  const llvm::ArrayRef<ValueId> between =
      path.size() > 2 ? path.drop_front().drop_back() : llvm::ArrayRef<ValueId>();
  // Attention tells more than the products with weights around it.
  const auto has_weight = [&](ValueId id) {
    return llvm::any_of(graph[id].operands, [&](ValueId operand) {
      return graph[root_of(graph, operand)].kind == OpKind::weight;
    });
  };
  const auto is_closed = [&](ValueId id) { return anchored_by(graph[id].kind) != nullptr; };
  auto at = llvm::find_if(between, [&](ValueId id) { return is_closed(id) && !has_weight(id); });
  if (at == between.end()) at = llvm::find_if(between, is_closed);
  if (at == between.end()) at = between.begin();
  std::string text;
  if (at != between.end())
    text = fmt::format("no kernel can hold both while {} needs {} and is needed by {}",
                       graph[*at].name, graph[path.front()].name, graph[path.back()].name);
  std::string fused = partner(entry, b);
  if (fused.empty()) fused = partner(entry, a);
  if (!fused.empty()) text += (text.empty() ? "" : "; ") + fused;
  // x + f(norm(x)): the norm stands before the branch.
  const FusionProblem& problem = compiled.fusions[entry].state->problem;
  const auto reads_same = [&] {
    return llvm::any_of(problem.facts(a).reads, [&](const Read& x) {
      return graph[x.root].kind != OpKind::weight &&
             llvm::any_of(problem.facts(b).reads, [&](const Read& y) { return x.root == y.root; });
    });
  };
  if (is_norm(graph[a]) && graph[b].kind == OpKind::add && reads_same())
    text += fmt::format("; with the norm behind the residual add (post-LN) they would share one");
  return text;
}

std::string Changes::State::of_closed(size_t entry, ValueId a, ValueId b) {
  const Graph& graph = this->graph(entry);
  const GroupShape* shapes[] = {nullptr, nullptr};
  const Groups& groups = compiled.fusions[entry].state->groups;
  shapes[0] = &groups.shape(groups.find(a));
  shapes[1] = &groups.shape(groups.find(b));
  const ValueId closed = shapes[0]->closed() ? a : b;
  std::string text = fmt::format("{} is {}", graph[closed].name, what_it_is(graph[closed]));
  const std::string other = elsewhere(entry, a, b, closed);
  if (!other.empty()) return text + "; " + other;
  if (graph[closed].kind == OpKind::linear)
    return text + ", which neighbours can join only as a gemv of at most 8 tokens";
  return text + ", whose values pass through memory";
}

std::string Changes::State::of_strict(size_t entry, ValueId a, ValueId b) {
  EntryAnswers& own = of(entry);
  if (!own.fast) {
    own.fast = fuse_again(entry, compiled.module.symbols, Numerics::fast);
    own.fast_merges = FusionCosts(*own.fast, compiled.sizes).merges();
  }
  if (!together(*own.fast, a, b)) return "fast numerics would fuse one of them with another op";
  for (const GroupMerge& merge : own.fast_merges) {
    const auto joins = [&](const std::vector<ValueId>& x, const std::vector<ValueId>& y) {
      return llvm::is_contained(x, a) && llvm::is_contained(y, b);
    };
    if (joins(merge.first, merge.second) || joins(merge.second, merge.first))
      return fmt::format("fast numerics (--numerics fast) would save {}{}",
                         with_unit(merge.saved_bytes, "B"),
                         layer_of(name(entry, b)) < 0 ? "" : " a layer");
  }
  return "fast numerics (--numerics fast) would fuse them";
}

Changes::Changes(const Compiled& compiled) : state_(std::make_unique<State>(compiled)) {}
Changes::~Changes() = default;

std::string Changes::text(size_t entry, ValueId a, ValueId b, const Verdict& refusal) const {
  State& state = *state_;
  const auto with_partner = [&](std::string text) {
    std::string other = state.elsewhere(entry, a, b, {});
    if (other.empty()) other = state.partner(entry, b);
    if (other.empty()) other = state.partner(entry, a);
    return other.empty() ? text : text + "; " + other;
  };
  switch (refusal.reason) {
    case Reason::fused:
    case Reason::fused_horizontal:
      return "";
    case Reason::space_prefix:
      return with_partner("ops share a kernel that have the same leading axes");
    case Reason::space_reduction:
      return "a reduction over the trailing axes, or over a run of leading ones, can be joined: "
             "transpose the value first";
    case Reason::port_closed:
      return state.of_closed(entry, a, b);
    case Reason::port_other_element:
      return with_partner("they share a kernel where both read the same elements of a row");
    case Reason::port_gathered:
      return with_partner("what is read by number must stand in memory first");
    case Reason::state_version:
      return with_partner("an append and a reader of its state are two launches");
    case Reason::anchor_second:
      return with_partner("each of the two products is a kernel of its own");
    case Reason::anchor_other_block:
      return with_partner("what needs the sums of other blocks runs after the product");
    case Reason::convexity_path:
      return state.of_path(entry, a, b, refusal.path);
    case Reason::numerics_strict:
      return state.of_strict(entry, a, b);
    case Reason::profit_configuration:
      return fmt::format(
          "rows that fit the shared memory of a block, and at most {} pointers, fit a kernel",
          kMaxPointers);
    case Reason::profit_slower: {
      const std::string smaller = state.smaller_sizes(entry, a, b);
      return smaller.empty() ? with_partner("at the largest sizes one launch less does not pay")
                             : smaller;
    }
    case Reason::forbidden:
      return "leave out --forbid";
    case Reason::stopped:
      return "give a larger --stop-after, or leave it out";
    case Reason::no_candidate:
      return "the engine asks about values of which one reads the other, and about readers of one "
             "value: two others save nothing but a launch";
    case Reason::no_kernel:
      return "ask about the value that it reads";
  }
  return "";
}

}  // namespace sinter
