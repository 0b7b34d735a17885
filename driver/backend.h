// Where the plans of whole models run: a device, how it computes products, and machine code for it.
#pragma once

#include <memory>
#include <string>

#include "driver/device.h"
#include "ir/tensor_source.h"
#include "runtime/cuda/gemm_record.h"
#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

struct BackendOptions {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  /// GPU: which implementation computes each matrix product.
  std::string record;          // file with decisions; empty: none yet
  bool frozen = false;         // a library's product that the record lacks is an error
  bool tune = false;           // decide by timing, not by the library's first proposal
  bool slow_products = false;  // none by the library, but by a slow kernel: for sanitizers
  /// Uploading weights.
  WeightProgress progress;
};

/// A decision record and its text. Errors: as GemmRecord::parse, and forms that no family has.
struct RecordFile {
  std::string text;
  GemmRecord record;
};
Result<RecordFile> read_record(const std::string& path);

class Backend {
 public:
  static Result<std::shared_ptr<Backend>> open(const BackendOptions& options);
  /// On a device that was opened; BackendOptions::device is not read.
  static Result<std::shared_ptr<Backend>> on(std::shared_ptr<const Device> device,
                                             const BackendOptions& options);

  std::string name() const { return device_->name(); }
  /// Why its device was taken (DeviceChoice::why).
  const std::string& why() const { return why_; }
  bool on_gpu() const { return device_->on_gpu(); }
  /// The device description that plans for it are made for; `wanted` is what the user asked for.
  std::string target(const std::string& wanted) const;
  /// Device::load().
  Result<std::vector<std::shared_ptr<const Executable>>> load(
      llvm::ArrayRef<std::shared_ptr<const Program>> programs, const TensorSource* source) const;
  /// GPU: machine code for its architecture that later calls of load() and later products take
  /// instead of compiling.
  void add_machine_code(MachineCodeByText code);
  /// The decisions made so far; empty on the CPU.
  GemmRecord record() const;
  /// GPU: decisions made elsewhere, to stand in the record.
  void add_forms(const TunedForms& forms);

 private:
  Backend() = default;

  std::shared_ptr<const Device> device_;
  std::string why_ = "as asked";
  std::shared_ptr<CudaGemm> gemm_;  // null: the CPU
  WeightProgress progress_;
  MachineCodeByText machine_code_;
};

}  // namespace sinter
