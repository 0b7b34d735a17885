#include "codegen/emission/kernel_body.h"

#include <fmt/ranges.h>

#include "codegen/emission/emit_scalar.h"

namespace sinter {

std::string parameters_of(const Graph& graph, size_t symbols, bool restricted) {
  const std::string_view pointer = restricted ? "* __restrict__" : "*";
  std::string text;
  const auto add = [&](std::string parameter) {
    text += (text.empty() ? "" : ", ") + std::move(parameter);
  };
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    add(fmt::format("const {}{} x{}", memory_type(graph[graph.inputs[k]].type.dtype), pointer, k));
  for (size_t k = 0; k < graph.outputs.size(); ++k)
    add(fmt::format("{}{} y{}", memory_type(graph[graph.outputs[k]].type.dtype), pointer, k));
  for (size_t k = 0; k < symbols; ++k) add(fmt::format("long long n{}", k));
  return text;
}

std::string arguments_of(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs,
                         size_t symbols) {
  std::vector<std::string> arguments;
  for (uint32_t input : inputs) arguments.push_back(fmt::format("x{}", input));
  for (uint32_t output : outputs) arguments.push_back(fmt::format("y{}", output));
  for (size_t k = 0; k < symbols; ++k) arguments.push_back(fmt::format("n{}", k));
  return fmt::format("{}", fmt::join(arguments, ", "));
}

std::string wait_text(const Overlap& overlap) {
  return overlap.triggers_after_wait ? "pdl_wait();\npdl_trigger();\n" : "pdl_wait();\n";
}

}  // namespace sinter
