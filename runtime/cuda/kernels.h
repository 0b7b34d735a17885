// Kernels compiled and loaded on a device, by their text: models that have kernels in common share
// them.
#pragma once

#include <map>
#include <memory>

#include "device/embedded_header.h"
#include "plan/program.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/memory.h"

namespace sinter {

class CudaKernels {
 public:
  struct Loaded {
    std::shared_ptr<const CudaLibrary> library;
    CudaApi::Kernel kernel = nullptr;  // valid as long as the library is
  };

  /// `headers` are what the kernels include; they must stay.
  CudaKernels(CudaDevicePtr device, llvm::ArrayRef<EmbeddedHeader> headers, KernelCache cache)
      : device_(std::move(device)), headers_(headers), cache_(std::move(cache)) {}

  /// Compiles for the device's architecture what is not there yet, all at once and from the cache
  /// where it can, and loads it.
  Status add(llvm::ArrayRef<const Kernel*> kernels);
  /// A kernel that was added.
  const Loaded& operator[](const Kernel& kernel) const { return loaded_.at(kernel.source); }

 private:
  CudaDevicePtr device_;
  llvm::ArrayRef<EmbeddedHeader> headers_;
  KernelCache cache_;
  std::map<std::string, Loaded> loaded_;  // by text
};

}  // namespace sinter
