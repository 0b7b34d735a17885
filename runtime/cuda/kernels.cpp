#include "runtime/cuda/kernels.h"

#include <set>

#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

Status CudaKernels::add(llvm::ArrayRef<const Kernel*> kernels) {
  std::vector<KernelSource> sources;
  std::set<std::string_view> texts;
  for (const Kernel* kernel : kernels)
    if (!loaded_.contains(kernel->source) && texts.insert(kernel->source).second)
      sources.push_back({kernel->name, kernel->source});
  if (sources.empty()) return {};
  SINTER_LET(nvrtc, find_nvrtc());
  SINTER_LET(compiled, compile_cached(nvrtc, cache_, sources, headers_, device_->arch()));
  for (size_t i = 0; i < sources.size(); ++i) {
    SINTER_LET(library, CudaLibrary::load(device_, compiled.cubins[i].bytes, sources[i].name));
    SINTER_LET(kernel, library.kernel(std::string(sources[i].name)));
    loaded_[std::string(sources[i].text)] = {
        std::make_shared<const CudaLibrary>(std::move(library)), kernel};
  }
  return {};
}

}  // namespace sinter
