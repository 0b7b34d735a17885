#include "codegen/emission/kernel_body.h"

#include <fmt/ranges.h>

namespace sinter {

std::string arguments_of(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs,
                         size_t symbols) {
  std::vector<std::string> arguments;
  for (uint32_t input : inputs) arguments.push_back(fmt::format("x{}", input));
  for (uint32_t output : outputs) arguments.push_back(fmt::format("y{}", output));
  for (size_t k = 0; k < symbols; ++k) arguments.push_back(fmt::format("n{}", k));
  return fmt::format("{}", fmt::join(arguments, ", "));
}

std::string wait_text(const Overlap& overlap) {
  return overlap.triggers_after_wait
             ? "griddepcontrol_wait();\ngriddepcontrol_launch_dependents();\n"
             : "griddepcontrol_wait();\n";
}

}  // namespace sinter
