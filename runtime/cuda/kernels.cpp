#include "runtime/cuda/kernels.h"

#include <set>

#include "plan/plan_file.h"
#include "runtime/cuda/compared_orders.h"

namespace sinter {

Status CudaKernels::load(const Kernel& kernel, const std::string& machine_code) {
  SINTER_LET(library, CudaLibrary::load(device_, machine_code, kernel.name));
  SINTER_LET(function, library.kernel(kernel.name));
  loaded_[text_hash(kernel)] = {std::make_shared<const CudaLibrary>(std::move(library)), function};
  return {};
}

Status CudaKernels::add(llvm::ArrayRef<const Kernel*> kernels, const MachineCodeByText& ready) {
  std::vector<const Kernel*> missing;
  std::vector<KernelSource> sources;
  std::set<std::string> hashes;
  for (const Kernel* kernel : kernels) {
    const std::string hash = text_hash(*kernel);
    if (loaded_.contains(hash) || !hashes.insert(hash).second) continue;
    if (const auto code = ready.find(hash); code != ready.end()) {
      SINTER_TRY(load(*kernel, code->second));
    } else if (kernel->source.empty()) {
      return fail(
          fmt::format("there is neither machine code for {} nor CUDA text", device_->arch()),
          "kernel " + kernel->name,
          fmt::format("compile the model with --arch {}", device_->arch()));
    } else {
      missing.push_back(kernel);
      sources.push_back({kernel->name, kernel->source});
    }
  }
  if (sources.empty()) return {};
  SINTER_LET(nvrtc, find_nvrtc());
  SINTER_LET(compiled, compile_cached(nvrtc, cache_, sources, headers_, device_->arch()));
  for (size_t i = 0; i < missing.size(); ++i)
    SINTER_TRY(load(*missing[i], compiled.cubins[i].bytes));
  return {};
}

Status CudaKernels::check_orders() {
  if (!orders_checked_) SINTER_TRY(sinter::check_orders(device_, headers_, cache_));
  orders_checked_ = true;
  return {};
}

const CudaKernels::Loaded& CudaKernels::operator[](const Kernel& kernel) const {
  return loaded_.at(text_hash(kernel));
}

}  // namespace sinter
