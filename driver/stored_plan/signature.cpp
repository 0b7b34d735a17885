#include "driver/stored_plan/signature.h"

namespace sinter {
namespace {

std::string describe(std::string_view name, const TensorType& type,
                     llvm::ArrayRef<Symbol> symbols) {
  return fmt::format("%{}: {}", printable(name), to_string(type, symbols));
}

/// "(%x: f32[N]) -> (%y: f32[N])", the form in which signatures are compared.
std::string signature(const EntryPlan& entry, llvm::ArrayRef<Symbol> symbols) {
  std::vector<std::string> inputs, outputs;
  for (uint32_t id : entry.inputs)
    inputs.push_back(describe(entry.buffers[id].value, entry.buffers[id].type, symbols));
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    outputs.push_back(
        describe(entry.output_names[i], entry.buffers[entry.outputs[i]].type, symbols));
  return fmt::format("({}) -> ({})", fmt::join(inputs, ", "), fmt::join(outputs, ", "));
}

std::string signature(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  std::vector<std::string> inputs, outputs;
  for (ValueId id : graph.inputs)
    inputs.push_back(describe(graph[id].name, graph[id].type, symbols));
  for (ValueId id : graph.outputs)
    outputs.push_back(describe(graph[id].name, graph[id].type, symbols));
  return fmt::format("({}) -> ({})", fmt::join(inputs, ", "), fmt::join(outputs, ", "));
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
      return differs(fmt::format("the plan has an entry {}; {} has none", entry.name, whose));
    const std::string plan = signature(entry, program.symbols),
                      graph = signature(other->graph, module.symbols);
    if (plan != graph)
      return differs(fmt::format("the plan's entry {} is {}; that of {} is {}", entry.name,
                                 printable(plan, 400), whose, printable(graph, 400)));
  }
  return {};
}

}  // namespace sinter
