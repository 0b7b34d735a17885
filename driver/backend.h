// Where plans run: the CPU, or a GPU through its driver.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ir/tensor_source.h"
#include "runtime/cuda/gemm_record.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/memory.h"
#include "runtime/executable.h"

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
  /// `auto` takes the first GPU, or the CPU where there is none.
  static Result<std::shared_ptr<Backend>> open(const BackendOptions& options);
  /// A GPU that was opened; BackendOptions::device is not read.
  static Result<std::shared_ptr<Backend>> on(CudaDevicePtr device, const BackendOptions& options);
  virtual ~Backend() = default;

  /// "cuda:0 (NVIDIA H200)"
  virtual std::string name() const = 0;
  /// Why it was taken, for people: "the first of 1 GPU", "no NVIDIA driver on this machine".
  const std::string& why() const { return why_; }
  virtual bool on_gpu() const = 0;
  /// The device description that plans for it are made for; `wanted` is what the user asked for.
  virtual std::string target(const std::string& wanted) const = 0;
  /// Programs of one module: they have the same weights, which are loaded once where they can be
  /// shared.
  virtual Result<std::vector<std::shared_ptr<const Executable>>> load(
      llvm::ArrayRef<std::shared_ptr<const Program>> programs, const TensorSource* source) = 0;
  /// GPU: machine code for its architecture that later calls of load() and later products take
  /// instead of compiling.
  virtual void add_machine_code(MachineCodeByText) {}
  /// The decisions made so far; empty on the CPU.
  virtual GemmRecord record() const { return {}; }
  /// Decisions made elsewhere, to stand in the record.
  virtual void add_forms(const TunedForms&) {}

 private:
  std::string why_;
};

}  // namespace sinter
