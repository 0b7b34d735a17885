#include "driver/explain/change.h"

#include <llvm/ADT/STLExtras.h>

#include <unordered_map>

#include "driver/explain/layers.h"
#include "driver/explain/other_fusions.h"
#include "driver/shell_word.h"
#include "driver/text_table.h"
#include "kernels/family.h"
#include "kernels/pointers.h"
#include "passes/fusion/fusion_state.h"

namespace sinter {

struct Changes::State {
  /// One entry, with what answers about it have in common. Filled when it is first asked for.
  struct EntryAnswers {
    std::unordered_map<std::string_view, ValueId> by_name;
    std::vector<GroupMerge> merges;
    /// The first fusion of each op.
    std::unordered_map<uint32_t, size_t> merge_of;
    OtherFusions others;
  };

  explicit State(const Compiled& compiled) : compiled(compiled), answers(compiled.fusions.size()) {}

  const Graph& graph(size_t entry) const { return compiled.module.entries[entry].graph; }
  const std::string& name(size_t entry, ValueId id) const { return graph(entry)[id].name; }

  EntryAnswers& of(size_t entry) {
    std::unique_ptr<EntryAnswers>& own = answers[entry];
    if (own) return *own;
    own = std::make_unique<EntryAnswers>(EntryAnswers{{}, {}, {}, OtherFusions(compiled, entry)});
    const Graph& graph = this->graph(entry);
    for (uint32_t i = 0; i < graph.size(); ++i) own->by_name[graph.ops()[i].name] = {i};
    const Fusion& fusion = compiled.fusions[entry];
    own->merges = FusionCosts(fusion, compiled.sizes_of(entry)).merges();
    for (size_t i = 0; i < own->merges.size(); ++i)
      for (ValueId op :
           {fusion.ledger[own->merges[i].decision].a, fusion.ledger[own->merges[i].decision].b})
        own->merge_of.try_emplace(op.index, i);
    return *own;
  }

  std::string partner(size_t entry, ValueId id);
  std::string elsewhere(size_t entry, ValueId a, ValueId b, ValueId closed);
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
    const std::string where = compiled.title_of(i);
    if (closed.valid())
      if (const auto z = names.find(name(entry, closed)); z != names.end())
        return fmt::format("in {}, where it is a {}, they share a kernel", where,
                           algorithm_name(graph(i)[z->second]));
    return fmt::format("in {} they share a kernel", where);
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
  const auto is_closed = [&](ValueId id) { return anchored_by(graph[id]) != nullptr; };
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
  OtherFusions& others = of(entry).others;
  if (others.is_pre_norm(a, b) && others.shares_with_norm_behind(a, b))
    text += "; with the norm behind the residual add (post-LN) they would share one";
  return text;
}

std::string Changes::State::of_closed(size_t entry, ValueId a, ValueId b) {
  const Graph& graph = this->graph(entry);
  const FusionState& state = *compiled.fusions[entry].state;
  const Groups& groups = state.groups;
  const auto gives = [&](const GroupShape& shape) {
    return !shape.closed() &&
           (!shape.anchor || is_open(state.problem.ports(*shape.anchor).result.port));
  };
  const uint32_t closed = groups.find(gives(groups.shape(groups.find(a))) ? b : a);
  const GroupView group{state.problem, groups.members(closed), groups.shape(closed)};
  const bool has_anchor = group.shape.family->kind != KernelFamily::Kind::rows;
  const ValueId anchor = has_anchor ? group.anchor() : group.members[0];
  if (group.shape.family->kind != KernelFamily::Kind::call)
    return fmt::format("{} is a kernel of the family {}, which would have to open a port for it",
                       graph[anchor].name,
                       has_anchor ? group.shape.family->name : "that computes it");
  if (graph[anchor].kind == OpKind::all_reduce)
    return graph[anchor].name + " exchanges values between ranks, which is no kernel";
  std::string text = graph[anchor].name + " is a call of cuBLASLt";
  const std::string other = elsewhere(entry, a, b, anchor);
  if (!other.empty()) return text + "; " + other;
  if (graph[anchor].kind == OpKind::linear)
    return text + ", which neighbours can join only as a gemv of at most 8 tokens";
  return text + "; it would have to be a generated kernel with a port";
}

std::string Changes::State::of_strict(size_t entry, ValueId a, ValueId b) {
  const OtherFusions::Fast& fast = of(entry).others.fast();
  if (!together(fast.fusion, a, b)) return "fast numerics would fuse one of them with another op";
  if (const auto joining = fast.tree.joining(a, b))
    return fmt::format("fast numerics (--numerics fast) would save {}{}",
                       with_unit(fast.merges[*joining].saved_bytes, "B"),
                       layer_of(name(entry, b)) < 0 ? "" : " a layer");
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
      return with_partner("both would have to have the same leading axes");
    case Reason::space_reduction:
      return "a reduction over the trailing axes, or over a run of leading ones, can be joined: "
             "transpose the value first";
    case Reason::port_closed:
    case Reason::port_of_call:
      return state.of_closed(entry, a, b);
    case Reason::port_other_element:
      return with_partner("both would have to read the same elements of a row");
    case Reason::port_gathered:
      return with_partner("the rows would have to be computed after the lookup, not before it");
    case Reason::state_version:
      return with_partner(
          "the reader would have to take what is written from its value, not from the state");
    case Reason::anchor_second:
      return with_partner("each of the two products needs a kernel of its own");
    case Reason::anchor_other_block:
      return with_partner("an epilogue would have to need only what its own block computes");
    case Reason::convexity_path:
      return state.of_path(entry, a, b, refusal.path);
    case Reason::numerics_strict:
      return state.of_strict(entry, a, b);
    case Reason::profit_configuration:
      return fmt::format(
          "rows would have to fit the shared memory of a block, and the kernel {} ops and {} "
          "pointers",
          kMaxOps, kMaxPointers);
    case Reason::profit_slower: {
      const auto smaller = state.of(entry).others.smaller_sizes(a, b);
      if (!smaller) return with_partner("one kernel would have to be as fast");
      return fmt::format("with {} of at most {} they would share one",
                         state.compiled.module.symbols[smaller->symbol].name, smaller->high);
    }
    case Reason::forbidden:
      return "leave out --forbid";
    case Reason::stopped:
      return "give a larger --stop-after, or leave it out";
    case Reason::no_candidate:
      return fmt::format(
          "the engine asks about a value and its reader, and about two readers of one value; with "
          "--require {} it would ask about them",
          shell_word(state.name(entry, a) + "," + state.name(entry, b)));
    case Reason::no_kernel:
      return "ask about the value that it reads";
  }
  return "";
}

}  // namespace sinter
