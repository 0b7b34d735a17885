#include "passes/plan_runs.h"

#include <map>

#include "frontends/files/random_tensors.h"
#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/host/executable.h"
#include "runtime/random_inputs.h"

namespace sinter::test {
namespace {

constexpr uint64_t kSeed = 7;

RandomTensorSource file_tensors(const Module& module) {
  RandomTensorSource::Types types;
  for (const Weight& weight : module.weights)
    for (const Op& op : weight.init.ops())
      if (op.kind == OpKind::file) types[op.attrs.get<std::string>(AttrName::tensor)] = op.type;
  return RandomTensorSource(kSeed, std::move(types));
}

/// The module evaluated op by op: no passes, no plan.
class Reference {
 public:
  Reference(const Module& module, llvm::ArrayRef<int64_t> symbol_values)
      : module_(module), symbol_values_(symbol_values) {}

  Status load(const TensorSource& source) {
    for (const Weight& weight : module_.weights) {
      SINTER_LET(values, evaluate(weight.init, {}, {}, {}, {.precise = false, .source = &source}));
      leaves_[weight.name] = std::move(values[0]);
    }
    for (const State& state : module_.states) {
      std::vector<int64_t> dims;
      for (Dim dim : state.type.dims)
        dims.push_back(dim.is_constant() ? dim.constant() : symbol_values_[dim.symbol().index]);
      SINTER_LET(zeros, make_tensor(state.type.dtype, dims));
      std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
      leaves_[state.name] = std::move(zeros);
    }
    return {};
  }

  Result<std::vector<HostTensor>> run(const Entry& entry, const std::vector<HostTensor>& inputs) {
    Graph graph = entry.graph;
    std::vector<const HostTensor*> values = addresses_of(inputs);
    std::map<uint32_t, std::string> states;  // by version: the state it is a version of
    for (uint32_t i = 0; i < graph.size(); ++i) {
      Op& op = graph[ValueId{i}];
      if (op.kind == OpKind::state) states[i] = op.name;
      if (writes_state(op)) {
        states[i] = states.at(operand_with(op, OperandRole::state).index);
        graph.outputs.push_back({i});
      }
      if (op.kind != OpKind::weight && op.kind != OpKind::state) continue;
      op.kind = OpKind::input;
      graph.inputs.push_back({i});
      values.push_back(&leaves_.at(op.name));
    }
    SINTER_LET(results, evaluate(graph, module_.symbols, symbol_values_, values));
    for (size_t i = entry.graph.outputs.size(); i < results.size(); ++i)
      leaves_[states.at(graph.outputs[i].index)] = results[i];
    results.resize(entry.graph.outputs.size());
    return std::move(results);
  }

  const HostTensor& leaf(const std::string& name) const { return leaves_.at(name); }

 private:
  const Module& module_;
  llvm::ArrayRef<int64_t> symbol_values_;
  std::map<std::string, HostTensor> leaves_;
};

Result<HostSession> session_of(const Compiled& compiled, const TensorSource& source,
                               llvm::ArrayRef<int64_t> symbol_values) {
  SINTER_LET(model, HostExecutable::load(compiled.program, &source));
  return HostSession::create(std::move(model), symbol_values);
}

Result<std::string> difference(const HostTensor& got, const HostTensor& wanted, bool exact) {
  if (exact) {
    SINTER_LET(bits, compare_bits(got, wanted));
    return bits ? to_string(*bits) : std::string();
  }
  constexpr int64_t kLongestSum = 4096;
  SINTER_LET(excess, exceeds(got, to_doubles(wanted), tolerance(got.dtype, kLongestSum)));
  if (!excess) return std::string();
  return fmt::format("element {}: {} against {}", excess->index, excess->value, excess->reference);
}

Result<std::string> compare(const Module& module, llvm::ArrayRef<int64_t> symbol_values,
                            const CompileOptions& options, const InputEditor& edit) {
  SINTER_LET(frozen, freeze(module, {}, {}, {.device_inputs = options.device_inputs}));
  CompileOptions apart = options;
  apart.fusion = {};
  apart.fusion.enabled = false;
  SINTER_LET(fused, compile(frozen, options));
  SINTER_LET(unfused, compile(frozen, apart));
  const RandomTensorSource source = file_tensors(module);
  SINTER_LET(fused_session, session_of(fused, source, symbol_values));
  SINTER_LET(unfused_session, session_of(unfused, source, symbol_values));
  Reference reference(module, symbol_values);
  SINTER_TRY(reference.load(source));
  const bool exact = llvm::none_of(module.entries, [](const Entry& entry) {
    return llvm::any_of(entry.graph.ops(),
                        [](const Op& op) { return op_class(op) == OpClass::contraction; });
  });
  for (uint64_t call = 0; call < 2; ++call)
    for (const Entry& entry : module.entries) {
      SINTER_LET(inputs, random_inputs(entry.graph, module.symbols, symbol_values, kSeed + call));
      if (edit) edit(entry.name, inputs);
      const CallOptions poison{.poison_freed = true, .keep = {}};
      SINTER_LET(a, fused_session.run(entry.name, symbol_values, addresses_of(inputs), poison));
      SINTER_LET(b, unfused_session.run(entry.name, symbol_values, addresses_of(inputs), poison));
      SINTER_LET(c, reference.run(entry, inputs));
      for (size_t i = 0; i < c.size(); ++i) {
        SINTER_LET(plans, difference(a.outputs[i], b.outputs[i], true));
        SINTER_LET(meaning, difference(b.outputs[i], c[i], exact));
        for (const auto& [what, text] :
             {std::pair("fused against unfused", plans), {"against the evaluator", meaning}})
          if (!text.empty())
            return fmt::format("@{}, output {}, {}: {}", entry.name, i, what, text);
      }
    }
  for (size_t i = 0; i < fused.program->states.size(); ++i) {
    const std::string& name = fused.program->states[i].name;
    SINTER_LET(plans, difference(fused_session.states()[i], unfused_session.states()[i], true));
    SINTER_LET(meaning, difference(unfused_session.states()[i], reference.leaf(name), exact));
    if (!plans.empty()) return fmt::format("state {}, fused against unfused: {}", name, plans);
    if (!meaning.empty()) return fmt::format("state {}, against the evaluator: {}", name, meaning);
  }
  return std::string();
}

}  // namespace

std::vector<int64_t> small_symbol_values(llvm::ArrayRef<Symbol> symbols) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    int64_t high = symbol.high;
    if (symbol.at_most) high = std::min(high, values[symbol.at_most->index]);
    // Different symbols get different values, so that a mix-up shows.
    const int64_t wanted = std::max<int64_t>(symbol.low, 5 + static_cast<int64_t>(i));
    const int64_t rounded = (wanted + symbol.multiple - 1) / symbol.multiple * symbol.multiple;
    values.push_back(std::min(high, rounded));
  }
  return values;
}

std::string compare_plans(const Module& module, llvm::ArrayRef<int64_t> symbol_values,
                          const CompileOptions& options, const InputEditor& edit) {
  const Result<std::string> result = compare(module, symbol_values, options, edit);
  return result ? *result : result.error().message();
}

}  // namespace sinter::test
