#include "gpu/kernel_unit.h"

#include "shim/shim_source.h"

namespace sinter {

std::string kernel_unit(llvm::ArrayRef<const Kernel*> kernels) {
  std::set<std::string> includes;
  std::string body;
  for (size_t i = 0; i < kernels.size(); ++i)
    body += fmt::format("namespace kernel_{} {{\n#line 1 \"{}.cu\"\n{}\n}}\n", i, kernels[i]->name,
                        hoist_includes(kernels[i]->source, includes));
  return fmt::format("{}\n{}", fmt::join(includes, "\n"), body);
}

}  // namespace sinter
