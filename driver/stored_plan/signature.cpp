#include "driver/stored_plan/signature.h"

#include "ir/text.h"

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

}  // namespace

Status check_signature(const Program& program, const Module& module, const std::string& place) {
  const auto differs = [&](std::string what) {
    return fail(std::move(what), place, "compile the model again");
  };
  const auto sizes = [](llvm::ArrayRef<Symbol> symbols) {
    return print_module(Module{"sizes", {symbols.begin(), symbols.end()}, {}, {}, {}});
  };
  const std::string ours = sizes(program.symbols), theirs = sizes(module.symbols);
  if (ours != theirs)
    return differs(fmt::format("the plan's sizes are {}, its module's {}", printable(ours),
                               printable(theirs)));
  for (const EntryPlan& entry : program.entries) {
    const Entry* other = module.find_entry(entry.name);
    if (!other)
      return differs(fmt::format("the plan's entry {} is none of its module", entry.name));
    const std::string plan = signature(entry, program.symbols),
                      graph = signature(other->graph, module.symbols);
    if (plan != graph)
      return differs(fmt::format("the plan's entry {} is {}, its module's {}", entry.name,
                                 printable(plan, 400), printable(graph, 400)));
  }
  return {};
}

}  // namespace sinter
