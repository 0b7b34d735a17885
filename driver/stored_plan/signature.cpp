#include "driver/stored_plan/signature.h"

namespace sinter {
namespace {

/// Names and types, in order. Names are any text: the lists are compared, not their text.
struct Signature {
  using Values = std::vector<std::pair<std::string, std::string>>;
  Values inputs, outputs;
  friend bool operator==(const Signature&, const Signature&) = default;

  /// "(%x: f32[N]) -> (%y: f32[N])"
  std::string text() const {
    const auto listed = [](const Values& values) {
      std::vector<std::string> parts;
      for (const auto& [name, type] : values)
        parts.push_back(fmt::format("%{}: {}", printable(name), type));
      return fmt::format("({})", fmt::join(parts, ", "));
    };
    return printable(fmt::format("{} -> {}", listed(inputs), listed(outputs)), 400);
  }
};

Signature signature(const EntryPlan& entry, llvm::ArrayRef<Symbol> symbols) {
  const auto type = [&](uint32_t id) { return to_string(entry.buffers[id].type, symbols); };
  Signature signature;
  for (uint32_t id : entry.inputs) signature.inputs.emplace_back(entry.buffers[id].value, type(id));
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    signature.outputs.emplace_back(entry.output_names[i], type(entry.outputs[i]));
  return signature;
}

Signature signature(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  Signature signature;
  for (ValueId id : graph.inputs)
    signature.inputs.emplace_back(graph[id].name, to_string(graph[id].type, symbols));
  for (ValueId id : graph.outputs)
    signature.outputs.emplace_back(graph[id].name, to_string(graph[id].type, symbols));
  return signature;
}

/// "N in [1, 64] step 1, K in [8, 64] step 8 at_most N".
std::string sizes(llvm::ArrayRef<Symbol> symbols) {
  std::vector<std::string> texts;
  for (const Symbol& symbol : symbols) {
    texts.push_back(fmt::format("{} in [{}, {}] step {}", symbol.name, symbol.low, symbol.high,
                                symbol.multiple));
    if (symbol.at_most)
      texts.back() += fmt::format(" at_most {}", symbols[symbol.at_most->index].name);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Status check_signature(const Program& program, const Module& module, const std::string& whose,
                       const std::string& place) {
  const auto differs = [&](std::string what) {
    return fail(std::move(what), place, "compile the model again");
  };
  const std::string ours = sizes(program.symbols), theirs = sizes(module.symbols);
  if (ours != theirs)
    return differs(fmt::format("the plan's sizes are {}; {} has {}", printable(ours, 400), whose,
                               printable(theirs, 400)));
  for (const EntryPlan& entry : program.entries) {
    const Entry* other = module.find_entry(entry.name);
    if (!other)
      return differs(
          fmt::format("the plan has an entry {}; {} has none", printable(entry.name), whose));
    const Signature plan = signature(entry, program.symbols),
                    graph = signature(other->graph, module.symbols);
    if (plan != graph)
      return differs(fmt::format("the plan's entry {} is {}; that of {} is {}",
                                 printable(entry.name), plan.text(), whose, graph.text()));
  }
  return {};
}

}  // namespace sinter
