#include "gpu/kernel_store.h"

#include <chrono>
#include <ctime>

#include "gpu/kernel_unit.h"
#include "kernels/library.h"

namespace sinter {
namespace {

/// Processor time of this thread.
double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<const Kernel*> KernelStore::claim(llvm::ArrayRef<const Kernel*> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<const Kernel*> claimed;
  for (const Kernel* kernel : kernels)
    if (entries_.try_emplace(kernel->name).second) claimed.push_back(kernel);
  return claimed;
}

Result<std::shared_ptr<const CudaLibrary>> KernelStore::compile(
    llvm::ArrayRef<const Kernel*> kernels) const {
  const std::string text = kernel_unit(kernels);
  const std::string name =
      kernels.size() == 1 ? kernels[0]->name : fmt::format("one of {}", kernels.size());
  SINTER_LET(cubin, compile_kernel(nvrtc_, {name, text}, kernel_library(), arch_));
  if (!device_) return nullptr;
  SINTER_LET(library, CudaLibrary::load(device_, cubin.bytes, name));
  return std::make_shared<const CudaLibrary>(std::move(library));
}

Result<KernelStore::Loaded> KernelStore::load(const std::shared_ptr<const CudaLibrary>& library,
                                              const Kernel& kernel) const {
  if (!device_) return Loaded{};
  SINTER_LET(loaded, library->kernel(kernel.name));
  return Loaded{library, loaded};
}

void KernelStore::publish(llvm::ArrayRef<const Kernel*> kernels,
                          std::vector<Result<Loaded>> results, double seconds) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kernels.size(); ++i) entries_[kernels[i]->name] = std::move(results[i]);
  compile_seconds_ += seconds;
  published_.notify_all();
}

void KernelStore::add(llvm::ArrayRef<const Kernel*> kernels) {
  const std::vector<const Kernel*> claimed = claim(kernels);
  if (!claimed.empty()) {
    const double begin = thread_seconds();
    const auto library = compile(claimed);
    std::vector<Result<Loaded>> results;
    for (const Kernel* kernel : claimed) {
      // A program that does not compile: one kernel at a time, to find whose fault it is.
      const auto own = library ? library : compile({kernel});
      results.push_back(own ? load(*own, *kernel) : tl::make_unexpected(own.error()));
    }
    publish(claimed, std::move(results), thread_seconds() - begin);
  }
  // Everyone publishes what they claimed before they wait: nobody waits for ever.
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  published_.wait(lock, [&] {
    return llvm::all_of(
        kernels, [&](const Kernel* kernel) { return entries_.at(kernel->name).has_value(); });
  });
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<KernelStore::Loaded> KernelStore::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(name);
  SINTER_CHECK(entry != entries_.end() && entry->second, "kernel {} was not added", name);
  return *entry->second;
}

size_t KernelStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

double KernelStore::compile_seconds() const {
  const std::lock_guard lock(mutex_);
  return compile_seconds_;
}

double KernelStore::wait_seconds() const {
  const std::lock_guard lock(mutex_);
  return wait_seconds_;
}

}  // namespace sinter
