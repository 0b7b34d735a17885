#include "passes/products/choose_kernels.h"

#include <llvm/ADT/StringSet.h>

#include "device/named_devices.h"
#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "ir/match.h"
#include "ir/variants.h"
#include "kernels/family.h"
#include "passes/fusion/fusion_state.h"
#include "passes/pipeline.h"

namespace sinter {
namespace {

/// `op`, whose operands are values of the builder's graph. `gaining`: the names of the ops that
/// gain in their groups; null: all that gain in some groups are tried.
std::optional<ValueId> chosen(Builder& builder, const Op& op, Tokens tokens, const Recipe& recipe,
                              const llvm::StringSet<>* gaining) {
  for (const KernelFamily* family : kernel_families()) {
    const Choosing& choosing = family->choosing;
    if (!choosing.choose) continue;
    const Gain gain = choosing.gain
                          ? choosing.gain(builder.graph(), op, builder.symbols(), tokens, recipe)
                          : Gain::always;
    if (gain == Gain::never) continue;
    if (gain == Gain::in_some_groups && gaining && !gaining->contains(op.name)) continue;
    if (const auto own = choosing.choose(builder, op, tokens, recipe)) return own;
  }
  return std::nullopt;
}

/// The matrix of codes of a product that reads it rounded to the type of its other operand.
std::optional<ValueId> unrounded_matrix(const Graph& graph, const Op& op) {
  ValueId matrix;
  const bool is_rounded = is_without_order(op, OpKind::linear) &&
                          match::cast(match::value(matrix))(graph, op.operands[1]) &&
                          graph[matrix].kind == OpKind::dequantize;
  return is_rounded ? std::optional(matrix) : std::nullopt;
}

/// A product with a matrix of float32 and an operand of another type, for which no family has a
/// kernel, is one of float32: its operands are widened, which is exact, and the result is rounded.
/// Or, where that was asked for, the matrix is rounded to the operand's type.
std::optional<ValueId> of_one_type(Builder& b, const Op& op, const Recipe& recipe) {
  if (!is_without_order(op, OpKind::linear) ||
      b.type(op.operands[0]).dtype == b.type(op.operands[1]).dtype)
    return std::nullopt;
  if (recipe.codes == Recipe::Codes::rounded) {
    llvm::SmallVector<ValueId, 3> rounded = op.operands;
    rounded[1] = b.cast(op.operands[1], b.type(op.operands[0]).dtype, op.name + ".rounded");
    return b.op(OpKind::linear, rounded, op.attrs, op.name);
  }
  llvm::SmallVector<ValueId, 3> operands;
  for (ValueId id : op.operands) operands.push_back(b.cast(id, DType::f32, op.name + ".operand"));
  return b.cast(b.op(OpKind::linear, operands, {}, op.name + ".wide"), op.type.dtype, op.name);
}

/// The entry's graph with chosen ops; nullopt: none is chosen.
std::optional<Graph> rewritten(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                               const Recipe& recipe, const llvm::StringSet<>* gaining) {
  bool changed = false;
  Graph result;
  Builder builder(result, symbols);
  GraphRewriter rewriter(entry.graph, result);
  rewriter.rewrite([&](ValueId, Op op) {
    if (recipe.codes == Recipe::Codes::unrounded)
      if (const auto matrix = unrounded_matrix(result, op)) op.operands[1] = *matrix;
    std::optional<ValueId> own = chosen(builder, op, entry.tokens, recipe, gaining);
    if (!own) own = of_one_type(builder, op, recipe);
    changed |= own.has_value();
    return own ? *own : rewriter.add(std::move(op));
  });
  if (!changed) return std::nullopt;
  make_names_unique(result);
  return result;
}

/// Whether a family's gain by an op of the entry depends on the op's group.
bool needs_trial(const Entry& entry, llvm::ArrayRef<Symbol> symbols, const Recipe& recipe) {
  return llvm::any_of(kernel_families(), [&](const KernelFamily* family) {
    const auto gain = family->choosing.gain;
    return gain && llvm::any_of(entry.graph.ops(), [&](const Op& op) {
             return gain(entry.graph, op, symbols, entry.tokens, recipe) == Gain::in_some_groups;
           });
  });
}

/// The groups of a graph after the passes that follow this one. nullopt: it has an op that no
/// kernel computes.
std::optional<Fusion> groups_of(const Entry& entry, Graph graph, llvm::ArrayRef<Symbol> symbols) {
  Module trial;
  trial.symbols.assign(symbols.begin(), symbols.end());
  trial.entries.push_back({.name = entry.name, .graph = std::move(graph), .tokens = entry.tokens});
  const auto* choice =
      llvm::find_if(pipeline(), [](const Pass& pass) { return pass.name == "choose_kernels"; });
  for (const Pass& pass : llvm::ArrayRef(choice + 1, pipeline().end())) pass.run(trial, {});
  const Graph& tried = trial.entries[0].graph;
  if (llvm::any_of(tried.ops(),
                   [](const Op& op) { return is_without_order(op, OpKind::attention); }))
    return std::nullopt;
  // A recipe knows no more of its target than that it has products of warpgroups.
  const auto* device = llvm::find_if(
      named_devices(), [](const DeviceDescription& device) { return device.has.wgmma; });
  return fuse(tried, symbols, *device, {});
}

/// The names of the ops that gain in their groups of a trial, with the symbols at their largest.
llvm::StringSet<> gaining(const Fusion& trial, llvm::ArrayRef<Symbol> symbols) {
  std::vector<int64_t> sizes;
  for (const Symbol& symbol : symbols) sizes.push_back(symbol.high);
  const FusionProblem problem = trial.state->problem.at(sizes);
  const Groups& groups = trial.state->groups;
  llvm::StringSet<> names;
  for (uint32_t i = 0; i < problem.graph().size(); ++i) {
    const KernelFamily* family = problem.family({i});
    if (!family || !family->choosing.gains_in) continue;
    const uint32_t group = groups.find({i});
    if (family->choosing.gains_in({problem, groups.members(group), groups.shape(group)}))
      names.insert(problem.name({i}));
  }
  return names;
}

}  // namespace

KernelChooser::KernelChooser(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                             const Recipe& recipe)
    : entry_(entry), recipe_(recipe) {
  if (!needs_trial(entry, symbols, recipe)) return;
  if (auto tried = rewritten(entry, symbols, recipe, nullptr))
    trial_ = groups_of(entry, std::move(*tried), symbols);
}

std::optional<Graph> KernelChooser::choose(llvm::ArrayRef<Symbol> symbols) const {
  const llvm::StringSet<> names = trial_ ? gaining(*trial_, symbols) : llvm::StringSet<>();
  return rewritten(entry_, symbols, recipe_, &names);
}

std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const Recipe& recipe) {
  return KernelChooser(entry, symbols, recipe).choose(symbols);
}

std::vector<ValueId> rounded_matrices(const Graph& graph) {
  std::vector<ValueId> casts;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (match::cast(match::dequantize())(graph, {i}) &&
        dtype_info(graph.ops()[i].type.dtype).bits == 16)
      casts.push_back(ValueId{i});
  return casts;
}

bool choose_kernels(Module& module, const PassOptions& options) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    auto graph = with_chosen_kernels(entry, narrowed(module.symbols, entry.range), options.recipe);
    if (!graph) continue;
    entry.graph = std::move(*graph);
    changed = true;
  }
  return changed;
}

}  // namespace sinter
