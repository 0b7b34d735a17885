#include "driver/verify/precise_session.h"

#include <algorithm>

#include "ir/op_roles.h"
#include "ir/variants.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter {
namespace {

template <typename T>
size_t index_of(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return i;
  SINTER_CHECK(false, "{}", name);
}

}  // namespace

Result<PreciseSession> PreciseSession::create(const Module& module, const Executable& executable) {
  PreciseSession precise(module);
  for (const Weight& weight : module.weights) {
    SINTER_LET(tensor, executable.read_weight(index_of(executable.program().weights, weight.name)));
    precise.weights_.push_back(std::move(tensor));
  }
  return precise;
}

Result<std::vector<HostTensor>> PreciseSession::run(std::string_view entry,
                                                    llvm::ArrayRef<int64_t> symbol_values,
                                                    llvm::ArrayRef<HostTensor> inputs) {
  for (size_t i = states_.size(); i < module_.states.size(); ++i) {
    const TensorType& type = module_.states[i].type;
    SINTER_LET(zeros, make_tensor(type.dtype, concrete_dims(type, symbol_values)));
    std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
    states_.push_back(std::move(zeros));
  }
  // Weights and states are further inputs, the last version of each state a further output.
  Graph graph = variant_for(module_.entries, entry, symbol_values)->graph;
  std::vector<const HostTensor*> values = addresses_of(inputs);
  std::vector<ssize_t> state_of(graph.size(), -1);
  std::vector<ValueId> newest(module_.states.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Op& op = graph[ValueId{i}];
    if (writes_state(op)) state_of[i] = state_of[operand_with(op, OperandRole::state).index];
    if (op.kind == OpKind::state)
      state_of[i] = static_cast<ssize_t>(index_of(module_.states, op.name));
    if (state_of[i] >= 0) newest[static_cast<size_t>(state_of[i])] = {i};
    if (op.kind != OpKind::weight && op.kind != OpKind::state) continue;
    values.push_back(op.kind == OpKind::weight ? &weights_[index_of(module_.weights, op.name)]
                                               : &states_[static_cast<size_t>(state_of[i])]);
    op.kind = OpKind::input;
    graph.inputs.push_back({i});
  }
  for (ValueId version : newest)
    if (version.valid()) graph.outputs.push_back(version);
  SINTER_LET(results, evaluate(graph, module_.symbols, symbol_values, values, {.precise = true}));
  size_t next = results.size();
  for (size_t i = newest.size(); i-- > 0;)
    if (newest[i].valid()) states_[i] = std::move(results[--next]);
  results.resize(next);
  return std::move(results);
}

}  // namespace sinter
