// The device of plans that a host program calls, as that program describes it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "runtime/cuda/gemm.h"

namespace sinter {

struct GpuOptions {
  int ordinal = 0;
  /// The caller's CUcontext, which must stay until the device is gone; null: the device's primary
  /// context.
  void* context = nullptr;
  /// The caller's allocator of device memory; both or none. `allocate` gives memory aligned to 256
  /// bytes, or null: out of memory. `stream`: the CUstream of a session whose memory it is, null
  /// for what sessions share. Called with the device's context current, by several threads at once.
  std::function<void*(size_t bytes, void* stream)> allocate;
  std::function<void(void* memory, size_t bytes, void* stream)> release;
};

/// The CPU, or a GPU. No function of this folder changes the calling thread's current context, nor
/// does the end of an object.
class CallDevice {
 public:
  static std::shared_ptr<CallDevice> cpu();
  /// Errors: no driver, no such device, a context of another device, half an allocator.
  static Result<std::shared_ptr<CallDevice>> gpu(const GpuOptions& options);
  ~CallDevice();
  CallDevice(const CallDevice&) = delete;
  CallDevice& operator=(const CallDevice&) = delete;

  bool on_gpu() const { return cuda_ != nullptr; }
  std::string name() const;    // "cpu", "cuda:0 (NVIDIA H200)"
  std::string target() const;  // of a GPU: what to compile plans for, "sm_90a"; of the CPU: empty

  const CudaDevicePtr& cuda() const { return cuda_; }  // null: the CPU
  /// For CudaContextGuard; null: the CPU.
  const CudaApi* cuda_api() const { return cuda_ ? &cuda_->api() : nullptr; }
  /// Decisions of the products that plans on this device tune.
  const std::shared_ptr<TunedProducts>& tuned() const { return tuned_; }

 private:
  CallDevice() = default;

  CudaDevicePtr cuda_;
  std::shared_ptr<TunedProducts> tuned_ = std::make_shared<TunedProducts>();
};

}  // namespace sinter
