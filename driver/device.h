// The CPU or a GPU: what executables are loaded on.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "runtime/cuda/gemm.h"
#include "runtime/executable.h"

namespace sinter {

/// What a user calls a device: auto (the first GPU, or the CPU where there is none), cpu, cuda or
/// cuda:N.
struct DeviceChoice {
  std::optional<int> gpu;  // its number; nothing: the CPU
  std::string why;         // for people: "the first of 1 GPU", "no NVIDIA driver on this machine"
};
Result<DeviceChoice> choose_device(std::string_view name);

/// A GPU as a host program describes it.
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

/// How Device::load() loads; borrows what it points to.
struct ExecutableOptions {
  const TensorSource* source = nullptr;  // of the tensors that weights are made of
  /// GPU: where weights stand already, as CudaWeights::load() takes them.
  llvm::ArrayRef<CudaAddress> places = {};
  /// GPU: computes the products of all sessions; null: each session has its own.
  std::shared_ptr<CudaGemm> gemm = nullptr;
  /// GPU: kernels that it lacks are compiled from their text.
  const MachineCodeByText* machine_code = nullptr;
  WeightProgress progress = {};
};

/// Of a GPU: its context, the allocator of its memory, and what its products have tuned.
class Device {
 public:
  static std::shared_ptr<Device> cpu();
  /// Of a program that has no contexts of its own.
  static Result<std::shared_ptr<Device>> open(const DeviceChoice& choice);
  /// A GPU of a host program, whose current context stays as it is, at the device's end too.
  /// Errors: no driver, no such device, a context of another device, half an allocator.
  static Result<std::shared_ptr<Device>> gpu(const GpuOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool on_gpu() const { return cuda_ != nullptr; }
  std::string name() const;    // "cpu", "cuda:0 (NVIDIA H200)"
  std::string target() const;  // of a GPU: what to compile plans for, "sm_90a"; of the CPU: empty
  /// Programs of one module: they have the same weights, which are loaded once where they can be
  /// shared. A GPU's context is current afterwards.
  Result<std::vector<std::shared_ptr<const Executable>>> load(
      llvm::ArrayRef<std::shared_ptr<const Program>> programs,
      const ExecutableOptions& options) const;

  const CudaDevicePtr& cuda() const { return cuda_; }  // null: the CPU
  /// For CudaContextGuard; null: the CPU.
  const CudaApi* cuda_api() const { return cuda_ ? &cuda_->api() : nullptr; }
  /// Decisions of the products that plans on this device tune.
  const std::shared_ptr<TunedProducts>& tuned() const { return tuned_; }

 private:
  Device() = default;

  CudaDevicePtr cuda_;
  bool keeps_context_ = false;  // of the calling thread, when it ends
  std::shared_ptr<TunedProducts> tuned_ = std::make_shared<TunedProducts>();
};

}  // namespace sinter
