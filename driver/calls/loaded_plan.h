// A compiled plan on a device, with the caller's weights.
#pragma once

#include <map>

#include "driver/calls/tensor_view.h"
#include "driver/device.h"
#include "ir/tensor_source.h"
#include "runtime/cuda/executable.h"

namespace sinter {

struct LoadPlanOptions {
  /// The model's files; may be null. Tensors of the maps come first.
  const TensorSource* source = nullptr;
  /// Tensors by the names that `file` ops use; read during load() only.
  std::map<std::string, TensorView> host_weights;
  /// The same in device memory, dense and complete before load() is called; GPU only. A weight that
  /// is such a tensor (its function is one `file` op, the address is aligned to kPointerAlignment)
  /// is used where it is: that memory must stay, unchanged, until the plan is gone. From others,
  /// weights are computed or copied during load().
  std::map<std::string, TensorView> device_weights;
  /// The machine code of a stored plan; kernels that it lacks are compiled from their text.
  MachineCodeByText machine_code;
  /// GPU: how matrix products are computed, and how those are decided that the record lacks.
  GemmRecord record;
  GemmPolicy products = GemmPolicy::first;
  /// Bytes of weights, those that stay where they are left out.
  WeightProgress progress;
};

/// Immutable; sessions on several threads share it.
class LoadedPlan {
 public:
  /// The program has passed check(). Errors name the tensor: one that no weight is made of or that
  /// is missing, of another type, given twice, or strided in device memory. Also: a device that is
  /// too old for the plan, no memory, a loading that `progress` ended.
  static Result<std::shared_ptr<const LoadedPlan>> load(std::shared_ptr<Device> device,
                                                        std::shared_ptr<const Program> program,
                                                        const LoadPlanOptions& options);
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  const Program& program() const { return executable_->program(); }
  const Device& device() const { return *device_; }
  const Executable& executable() const { return *executable_; }
  /// Computes the plan's matrix products in `stream`, and must not be used in another stream at the
  /// same time; null if the plan has no products.
  Result<std::shared_ptr<CudaGemm>> products_in(CudaApi::Stream stream) const;

 private:
  LoadedPlan() = default;

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Executable> executable_;
  MachineCodeByText machine_code_;
  GemmRecord record_;
  GemmPolicy products_ = GemmPolicy::first;
};

}  // namespace sinter
