#include "differential/source_module.h"

#include <algorithm>

#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/executable.h"

namespace sinter {
namespace {

/// The ops that a result or a state depends on.
std::vector<bool> needed_ops(const Graph& graph) {
  std::vector<bool> needed(graph.size(), false);
  for (ValueId output : graph.outputs) needed[output.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Op& op = graph.ops()[i];
    if (!needed[i] && !writes_state(op)) continue;
    for (ValueId operand : op.operands) needed[operand.index] = true;
  }
  return needed;
}

/// A sum down columns, of which a pass may make a sum of sums of blocks of rows.
bool sums_rows(const Op& op) {
  if (op.kind != OpKind::reduce_sum || !is_float(op.type.dtype)) return false;
  const auto last = static_cast<int64_t>(op.type.rank()) - 1;
  return !llvm::is_contained(op.attrs.get<std::vector<int64_t>>(AttrName::axes), last);
}

}  // namespace

ObservedModule observe_contractions(const Module& module, bool with_sums) {
  ObservedModule observed{module, {}};
  Graph& graph = observed.module.entries[0].graph;
  const std::vector<bool> needed = needed_ops(graph);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    // Products of many tokens with experts may be made in runs, in another order.
    const bool is_product = op_class(op) == OpClass::contraction ||
                            (op.kind == OpKind::expert_linear && !op.attrs.has(AttrName::codes));
    const bool has_bound = is_product || (with_sums && sums_rows(op));
    if (has_bound && needed[i]) observed.contractions.push_back(ValueId{i});
  }
  graph.outputs.append(observed.contractions.begin(), observed.contractions.end());
  return observed;
}

SourceModule::SourceModule(const Case& test, const CaseData& data,
                           llvm::ArrayRef<ValueId> contractions)
    : test_(test),
      entry_(test.module.entries[0].graph),
      files_(data),
      contractions_(contractions.begin(), contractions.end()),
      graph_(entry_) {
  std::vector<std::string> state_of(entry_.size());
  std::map<std::string, ValueId> newest;
  for (uint32_t i = 0; i < entry_.size(); ++i) {
    Op& op = graph_[ValueId{i}];
    if (op.kind == OpKind::state) state_of[i] = op.name;
    if (writes_state(op)) state_of[i] = state_of[operand_with(op, OperandRole::state).index];
    if (!state_of[i].empty()) newest[state_of[i]] = ValueId{i};
    if (op.kind == OpKind::weight || op.kind == OpKind::state || is_dead_attention(ValueId{i})) {
      op = Op{OpKind::input, op.type, {}, {}, op.name};
      graph_.inputs.push_back(ValueId{i});
    }
  }
  // An op's result for a number that names no row is defined if the op is checked. A plan whose
  // results need such an op ends with an error, so only other ops meet such numbers here.
  for (const RowNumbers& numbers : row_numbers(entry_))
    if (op_class(entry_[numbers.op]) != OpClass::contraction)
      graph_[numbers.op].attrs.set(AttrName::checked, int64_t{1});
  for (const auto& [state, version] : newest) {
    state_results_.push_back(state);
    graph_.outputs.push_back(version);
  }
  for (ValueId id : contractions_) {
    for (ValueId operand : entry_[id].operands) graph_.outputs.push_back(operand);
    graph_[id] = Op{OpKind::input, entry_[id].type, {}, {}, entry_[id].name};
    graph_.inputs.push_back(id);
  }
}

/// Nothing needs its result: it may see rows that are not there.
bool SourceModule::is_dead_attention(ValueId id) const {
  return is_without_order(entry_[id], OpKind::attention) && !llvm::is_contained(contractions_, id);
}

/// The value of a weight or a state; zeros for what is dead.
Result<HostTensor> SourceModule::leaf(const Op& op) {
  if (op.kind == OpKind::weight) {
    EvalOptions options;
    options.source = &files_;
    SINTER_LET(value, evaluate(test_.module.find_weight(op.name)->init, test_.module.symbols,
                               test_.symbol_values, {}, options));
    return std::move(value[0]);
  }
  if (const auto known = states_.find(op.name); known != states_.end()) return known->second;
  SINTER_LET(zeros, make_tensor(op.type.dtype, concrete_dims(op.type, test_.symbol_values)));
  std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
  return std::move(zeros);
}

Result<std::vector<HostTensor>> SourceModule::call(llvm::ArrayRef<HostTensor> inputs,
                                                   llvm::ArrayRef<HostTensor> contractions,
                                                   BoundedElements& elements) {
  const llvm::ArrayRef<Symbol> symbols = test_.module.symbols;
  std::vector<HostTensor> tensors(inputs.begin(), inputs.end());
  for (ValueId id : llvm::ArrayRef(graph_.inputs).drop_front(inputs.size())) {
    const Op& op = entry_[id];
    if (op.kind != OpKind::weight && op.kind != OpKind::state && !is_dead_attention(id)) continue;
    SINTER_LET(value, leaf(op));
    tensors.push_back(std::move(value));
  }
  tensors.insert(tensors.end(), contractions.begin(), contractions.end());
  SINTER_LET(results, evaluate(graph_, symbols, test_.symbol_values, addresses_of(tensors)));
  size_t next = entry_.outputs.size();
  for (const std::string& state : state_results_) states_[state] = std::move(results[next++]);
  for (size_t i = 0; i < contractions_.size(); ++i) {
    const Op& op = entry_[contractions_[i]];
    const auto operands = addresses_of(llvm::ArrayRef(results).slice(next, op.operands.size()));
    next += op.operands.size();
    SINTER_LET(bounded, bounded_contraction(entry_, op, operands, symbols, test_.symbol_values));
    SINTER_TRY(check_bound(fmt::format("{} %{} against float64", algorithm_name(op), op.name),
                           contractions[i], bounded, elements));
  }
  results.resize(entry_.outputs.size());
  return std::move(results);
}

}  // namespace sinter
