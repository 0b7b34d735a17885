// Kernels compiled and loaded on a device, by their text: models that have kernels in common share
// them.
#pragma once

#include <map>
#include <memory>

#include "device/embedded_header.h"
#include "plan/program.h"
#include "runtime/cuda/kernel_compiler.h"
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

  /// Loads what is not there yet. Machine code is taken from `ready`; the rest is compiled for the
  /// device's architecture, all at once and from the cache where it can. A kernel without text
  /// (Kernel::source) that `ready` lacks is an error.
  Status add(llvm::ArrayRef<const Kernel*> kernels, const MachineCodeByText& ready = {});
  /// check_orders() of the device, once.
  Status check_orders();
  /// A kernel that was added.
  const Loaded& operator[](const Kernel& kernel) const;

 private:
  CudaDevicePtr device_;
  llvm::ArrayRef<EmbeddedHeader> headers_;
  KernelCache cache_;
  Status load(const Kernel& kernel, const std::string& machine_code);

  std::map<std::string, Loaded> loaded_;  // by the hash of the text
  bool orders_checked_ = false;
};

}  // namespace sinter
