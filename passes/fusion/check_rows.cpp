// Row numbers that the module computes may name rows that are not there.
//
//   %i = add %n, %n                         %i = add %n, %n
//   %v = slice %i {...}                 =>  %v = slice %i {...}
//   %y = embedding %t, %v                   %c = copy %v
//                                           %y = embedding %t, %c {checked = 1}
//
// Afterwards every op with row numbers that are neither an entry's input nor known to be in range
// is `checked` (ops.def says what that means), and these numbers are a value in memory, which the
// runtime looks at after the call. Runs last: canonicalize would not keep the copies. An attention
// without an order stays as it is, so choose_kernels and expand_attention run before.
//
// In a decode step (entry tokens one_each) an op whose addresses are an input X is `checked` too
// where `sample` gives the module's output next.X: a device may begin the next step before the host
// sees that logits chose no token, -1.
//
// With `device_inputs`, nobody looks at inputs before a call: ops whose addresses they are become
// `checked` too, and the inputs are looked at after the call, where they are.
#include <functional>
#include <map>
#include <set>

#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// X of each output next.X that `sample` gives.
std::set<std::string, std::less<>> chosen_names(const Module& module) {
  constexpr std::string_view kNext = "next.";
  std::set<std::string, std::less<>> names;
  for (const Entry& entry : module.entries)
    for (ValueId output : entry.graph.outputs)
      if (const Op& op = entry.graph[output];
          op.kind == OpKind::sample && std::string_view(op.name).starts_with(kNext))
        names.insert(op.name.substr(kNext.size()));
  return names;
}

class RowChecks : RewriteRule {
 public:
  RowChecks(const Graph& from, Builder& builder, GraphRewriter& rewriter, const Entry& entry,
            const Module& module, bool device_inputs,
            const std::set<std::string, std::less<>>& chosen)
      : RewriteRule(from, builder, rewriter), module_(module) {
    std::vector<RowNumbers> all = row_numbers(from);
    llvm::erase_if(all, [&](const RowNumbers& numbers) {
      return is_without_order(from[numbers.op], OpKind::attention);
    });
    for (const RowNumbers& numbers : all)
      if (((device_inputs || is_chosen(entry, numbers, chosen)) &&
           are_given_addresses(from, numbers)) ||
          (!are_given(from, numbers) && !known(numbers, is_checked(from[numbers.op]))))
        unsure_[numbers.op];
    for (const RowNumbers& numbers : all)
      if (unsure_.contains(numbers.op) && !are_given(from, numbers) && !known(numbers, true))
        unsure_[numbers.op].push_back(numbers.values);
  }

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    const auto unsure = unsure_.find(id);
    if (unsure == unsure_.end()) return std::nullopt;
    for (const auto& [operand, original] : llvm::zip(op.operands, from_[id].operands))
      if (llvm::is_contained(unsure->second, original)) operand = in_memory(original);
    op.attrs.set(AttrName::checked, int64_t{1});
    return rewriter_.add(std::move(op));
  }

 private:
  /// The numbers are tokens of the step before, which may be on their way to the host.
  bool is_chosen(const Entry& entry, const RowNumbers& numbers,
                 const std::set<std::string, std::less<>>& chosen) const {
    return entry.tokens == Tokens::one_each &&
           chosen.contains(from_[root_of(from_, numbers.values)].name);
  }

  /// The numbers need no check. If the op is checked, numbers in weights are checked too.
  bool known(const RowNumbers& numbers, bool checked) const {
    const Op& root = from_[root_of(from_, numbers.values)];
    if (root.kind != OpKind::weight || checked)
      return are_known(from_, numbers.values, numbers.rows, numbers.ends, builder_.symbols());
    const Graph& init = module_.find_weight(root.name)->init;
    return are_known(init, init.outputs[0], numbers.rows, numbers.ends, builder_.symbols());
  }

  /// A value of its own with the numbers, which stays as it is until the call ends: no view or
  /// generator, and no state, whose next version takes its place.
  ValueId in_memory(ValueId id) {
    const Op& op = from_[id];
    const ValueId moved = rewriter_[id];
    if (op.kind == OpKind::weight || (computes(op) && !writes_state(op))) return moved;
    const auto [at, is_new] = in_memory_.try_emplace(id, moved);
    // A state keeps its name; others give theirs to the copy.
    const bool keeps_name = is_state_version(op);
    if (is_new && !keeps_name) builder_.graph()[moved].name += ".view";
    if (is_new)
      at->second = builder_.op(OpKind::copy, {moved}, {}, keeps_name ? op.name + ".rows" : op.name);
    return at->second;
  }

  const Module& module_;
  // For each op to be checked, the numbers that must be stored in memory.
  std::map<ValueId, llvm::SmallVector<ValueId, 2>> unsure_;
  std::map<ValueId, ValueId> in_memory_;
};

}  // namespace

bool check_rows(Module& module, const PassOptions& options) {
  bool changed = false;
  const std::set<std::string, std::less<>> chosen = chosen_names(module);
  for (Entry& entry : module.entries)
    changed |= rewrite_graph(entry.graph, narrowed(module.symbols, entry.range),
                             by_rule<RowChecks>(std::cref(entry), std::cref(module),
                                                options.device_inputs, std::cref(chosen)));
  return changed;
}

}  // namespace sinter
