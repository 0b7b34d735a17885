#include "driver/decoder.h"
#include "driver/run.h"
#include "driver/verify_parts.h"
#include "runtime/host_eval.h"

namespace sinter {
namespace {

std::vector<std::string> stored_values(const EntryPlan& entry) {
  std::vector<std::string> names;
  for (const Buffer& buffer : entry.buffers)
    if (buffer.place == Buffer::Place::arena) names.push_back(buffer.value);
  return names;
}

Status compare_values(std::string_view entry, std::string_view name, const HostTensor& fused,
                      const HostTensor& unfused, DTypeReport& report) {
  SINTER_LET(difference, compare_bits(fused, unfused));
  ++report.values;
  report.elements += fused.volume();
  if (difference && report.difference.empty())
    report.difference = fmt::format("{} %{}: {}", entry, name, to_string(*difference));
  return {};
}

/// The entry's graph with weights and states as further inputs.
Graph with_leaves_as_inputs(const Graph& graph, std::vector<std::pair<OpKind, std::string>>& leaves) {
  Graph result = graph;
  for (uint32_t i = 0; i < result.size(); ++i) {
    Op& op = result[{i}];
    if (op.kind != OpKind::weight && op.kind != OpKind::state) continue;
    leaves.push_back({op.kind, op.name});
    op.kind = OpKind::input;
    result.inputs.push_back({i});
  }
  return result;
}

template <typename T>
size_t index_of(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return i;
  SINTER_CHECK(false, "{}", name);
}

}  // namespace

std::vector<std::string> Plans::common_values(std::string_view entry) const {
  const std::vector<std::string> in_fused = stored_values(*fused->program().find_entry(entry));
  const std::vector<std::string> in_unfused = stored_values(*unfused->program().find_entry(entry));
  std::vector<std::string> common;
  for (const Op& op : module.find_entry(entry)->graph.ops())
    if (llvm::is_contained(in_fused, op.name) && llvm::is_contained(in_unfused, op.name)) common.push_back(op.name);
  return common;
}

Result<Plans> make_plans(const LoadedModel& model, const std::string& target, Backend& backend) {
  SINTER_TRY(require_weights(model));
  SINTER_LET(module, freeze(model.module, {}));
  CompileOptions options;
  options.target = backend.target(target);
  SINTER_LET(fused, compile(module, options));
  options.fusion.enabled = false;
  SINTER_LET(unfused, compile(module, options));
  SINTER_LET(models, backend.load({fused.program, unfused.program}, model.tensors.get()));
  return Plans{std::move(module), models[0], models[1]};
}

Status compare_runs(std::string_view entry, const RunResult& fused, const RunResult& unfused, DTypeReport& report) {
  ++report.calls;
  for (size_t i = 0; i < fused.kept.size(); ++i)
    SINTER_TRY(compare_values(entry, fused.kept[i].first, fused.kept[i].second, unfused.kept[i].second, report));
  for (size_t i = 0; i < fused.outputs.size(); ++i)
    SINTER_TRY(compare_values(entry, fmt::format("output {}", i), fused.outputs[i], unfused.outputs[i], report));
  return {};
}

Status compare_states(const Session& fused, const Session& unfused, const Program& program,
                      DTypeReport& report) {
  for (size_t i = 0; i < program.states.size(); ++i) {
    SINTER_LET(a, fused.state(i));
    SINTER_LET(b, unfused.state(i));
    SINTER_TRY(compare_values("state", program.states[i].name, a, b, report));
  }
  return {};
}

Status measure_float64(const Plans& plans, std::string_view entry, const DecoderCall& call,
                       const HostTensor& fused, const HostTensor& unfused, DTypeReport& report) {
  std::vector<std::pair<OpKind, std::string>> leaves;
  const Graph graph = with_leaves_as_inputs(plans.module.find_entry(entry)->graph, leaves);
  std::vector<const HostTensor*> inputs;
  for (const HostTensor& input : call.inputs) inputs.push_back(&input);
  std::vector<HostTensor> held;
  held.reserve(leaves.size());
  for (const auto& [kind, name] : leaves) {
    if (kind == OpKind::weight) {
      SINTER_LET(weight, plans.unfused->read_weight(index_of(plans.unfused->program().weights, name)));
      held.push_back(std::move(weight));
      inputs.push_back(&held.back());
      continue;
    }
    const State& state = plans.unfused->program().states[index_of(plans.unfused->program().states, name)];
    SINTER_LET(zeros, make_tensor(state.type.dtype, concrete_dims(state.type, call.symbol_values)));
    std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
    held.push_back(std::move(zeros));
    inputs.push_back(&held.back());
  }
  SINTER_LET(exact, evaluate(graph, plans.module.symbols, call.symbol_values, inputs, {.precise = true}));
  const std::vector<double> reference = to_doubles(exact[0]);
  SINTER_LET(fused_error, accuracy(fused, reference));
  SINTER_LET(unfused_error, accuracy(unfused, reference));
  report.fused_error = fused_error;
  report.unfused_error = unfused_error;
  return {};
}

}  // namespace sinter
