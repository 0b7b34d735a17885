// Compiled kernels of many plans, shared by threads: each is compiled once in a run.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "plan/program.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/nvrtc.h"

namespace sinter {

/// Kernels by name: names end in a hash of the text, so that equal names are equal kernels.
/// Thread-safe.
class KernelStore {
 public:
  struct Loaded {
    std::shared_ptr<const CudaLibrary> library;  // keeps the kernel
    CudaApi::Kernel kernel = nullptr;
  };

  /// Compiles for `arch`. Without a device kernels are compiled and not loaded.
  KernelStore(CudaDevicePtr device, NvrtcFile nvrtc, std::string arch)
      : device_(std::move(device)), nvrtc_(std::move(nvrtc)), arch_(std::move(arch)) {}

  /// Compiles the kernels that no thread has begun, as one program, loads it, and waits for the
  /// others. find() reports what fails.
  void add(llvm::ArrayRef<const Kernel*> kernels);
  /// A kernel that was added, or why it cannot be run.
  Result<Loaded> find(const std::string& name) const;

  size_t size() const;
  /// Sums over all threads in add(): processor seconds compiling, seconds waiting for others.
  double compile_seconds() const;
  double wait_seconds() const;

 private:
  using Entry = std::optional<Result<Loaded>>;  // nullopt: a thread is at it

  std::vector<const Kernel*> claim(llvm::ArrayRef<const Kernel*> kernels);
  Result<std::shared_ptr<const CudaLibrary>> compile(llvm::ArrayRef<const Kernel*> kernels) const;
  Result<Loaded> load(const std::shared_ptr<const CudaLibrary>& library,
                      const Kernel& kernel) const;
  void publish(llvm::ArrayRef<const Kernel*> kernels, std::vector<Result<Loaded>> results,
               double seconds);

  CudaDevicePtr device_;
  NvrtcFile nvrtc_;
  std::string arch_;
  mutable std::mutex mutex_;
  std::condition_variable published_;
  std::map<std::string, Entry> entries_;
  double compile_seconds_ = 0, wait_seconds_ = 0;
};

}  // namespace sinter
