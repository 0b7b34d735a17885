// The tensors that a caller gives for the weights of a plan.
#pragma once

#include <mutex>

#include "driver/calls/loaded_plan.h"

namespace sinter {

/// The tensors that weight functions read: the caller's in host and device memory, then the tensors
/// of the model's files. May be read from several threads.
class GivenTensors final : public TensorSource {
 public:
  /// Borrows `options`. Errors: as LoadedPlan::load about tensors.
  static Result<std::unique_ptr<GivenTensors>> create(const Device& device, const Program& program,
                                                      const LoadPlanOptions& options);

  std::optional<TensorType> find(std::string_view name) const override;
  Error missing(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;

  /// The address of each weight of the program in the caller's device memory; 0: not used from
  /// there.
  std::vector<CudaAddress> places(const Program& program) const;

 private:
  explicit GivenTensors(const LoadPlanOptions& options) : options_(options) {}
  Status check(const Program& program) const;
  Status check_tensor(const std::string& name, const TensorView& view, const TensorType& type,
                      bool on_device) const;

  const LoadPlanOptions& options_;
  CudaStream stream_;         // of reads of device memory
  mutable std::mutex mutex_;  // of stream_
};

}  // namespace sinter
