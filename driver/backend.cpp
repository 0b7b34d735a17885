#include "driver/backend.h"

#include "driver/integers.h"
#include "frontends/files/bounded_file.h"
#include "kernels/check_forms.h"
#include "kernels/library.h"
#include "runtime/cuda/executable.h"
#include "runtime/host/executable.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

class HostBackend final : public Backend {
 public:
  explicit HostBackend(WeightProgress progress) : progress_(std::move(progress)) {}

  std::string name() const override { return "cpu"; }
  bool on_gpu() const override { return false; }
  std::string target(const std::string& wanted) const override { return wanted; }
  Result<std::vector<std::shared_ptr<const Executable>>> load(
      llvm::ArrayRef<std::shared_ptr<const Program>> programs,
      const TensorSource* source) override {
    std::vector<std::shared_ptr<const Executable>> executables;
    for (const auto& program : programs) {
      SINTER_LET(executable, HostExecutable::load(program, source, progress_));
      executables.push_back(std::make_shared<HostExecutable>(std::move(executable)));
    }
    return executables;
  }

 private:
  WeightProgress progress_;
};

class CudaBackend final : public Backend {
 public:
  static Result<std::shared_ptr<Backend>> open(int ordinal, const BackendOptions& options) {
    SINTER_LET(device, CudaDevice::open(ordinal));
    return open(std::move(device), options);
  }

  static Result<std::shared_ptr<Backend>> open(CudaDevicePtr device,
                                               const BackendOptions& options) {
    auto backend = std::make_shared<CudaBackend>();
    GemmRecord record;
    if (!options.record.empty()) {
      SINTER_LET(file, read_record(options.record));
      record = std::move(file.record);
    }
    const GemmPolicy policy = options.frozen          ? GemmPolicy::frozen
                              : options.slow_products ? GemmPolicy::strided
                              : options.tune          ? GemmPolicy::tune
                                                      : GemmPolicy::first;
    SINTER_LET(gemm, CudaGemm::create(device, kernel_library(), std::move(record), policy));
    backend->device_ = std::move(device);
    backend->gemm_ = std::move(gemm);
    backend->progress_ = options.progress;
    return backend;
  }

  std::string name() const override {
    return fmt::format("cuda:{} ({})", device_->ordinal(), device_->name());
  }
  bool on_gpu() const override { return true; }
  std::string target(const std::string&) const override { return device_->arch(); }
  Result<std::vector<std::shared_ptr<const Executable>>> load(
      llvm::ArrayRef<std::shared_ptr<const Program>> programs,
      const TensorSource* source) override {
    std::vector<std::shared_ptr<const Executable>> executables;
    std::shared_ptr<const CudaWeights> weights;
    for (const auto& program : programs) {
      if (!weights || !weights->serves(*program)) {
        SINTER_LET(loaded, CudaWeights::load(device_, *program, source, progress_));
        weights = std::move(loaded);
      }
      SINTER_LET(executable,
                 CudaExecutable::load(program, device_, gemm_, weights, kernel_library(),
                                      KernelCache::of_user(), ready_));
      executables.push_back(std::move(executable));
    }
    return executables;
  }
  void add_machine_code(MachineCodeByText code) override {
    gemm_->add_machine_code(code);
    ready_.merge(std::move(code));
  }
  GemmRecord record() const override { return gemm_->record(); }
  void add_forms(const TunedForms& forms) override { gemm_->add_forms(forms); }

 private:
  CudaDevicePtr device_;
  std::shared_ptr<CudaGemm> gemm_;
  WeightProgress progress_;
  MachineCodeByText ready_;
};

/// N of "cuda:N".
std::optional<int> parse_ordinal(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:")) return std::nullopt;
  device.remove_prefix(5);
  const auto ordinal = parse_integer<int32_t>(device, "--device", {.least = 0});
  if (!ordinal) return std::nullopt;
  return *ordinal;
}

}  // namespace

Result<RecordFile> read_record(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMaxRecordBytes));
  SINTER_LET(record, GemmRecord::parse(text, path));
  SINTER_TRY(check_forms(record.forms, path));
  return RecordFile{std::move(text), std::move(record)};
}

Result<std::shared_ptr<Backend>> Backend::on(CudaDevicePtr device, const BackendOptions& options) {
  SINTER_LET(backend, CudaBackend::open(std::move(device), options));
  backend->why_ = "as asked";
  return std::move(backend);
}

Result<std::shared_ptr<Backend>> Backend::open(const BackendOptions& options) {
  const std::optional<int> ordinal = parse_ordinal(options.device);
  if (options.device != "auto" && options.device != "cpu" && !ordinal)
    return fail(fmt::format("no device is called \"{}\"", printable(options.device)), "--device",
                "give auto, cpu, cuda or cuda:N", ExitCode::usage);
  std::shared_ptr<Backend> backend;
  if (options.device == "cpu") {
    backend = std::make_shared<HostBackend>(options.progress);
    backend->why_ = "as asked";
  } else if (ordinal) {
    SINTER_LET(cuda, CudaBackend::open(*ordinal, options));
    backend = std::move(cuda);
    backend->why_ = "as asked";
  } else if (const Result<int> count = cuda_device_count(); count && *count > 0) {
    SINTER_LET(cuda, CudaBackend::open(0, options));
    backend = std::move(cuda);
    backend->why_ = fmt::format("the first of {} GPU{}", *count, *count == 1 ? "" : "s");
  } else {
    backend = std::make_shared<HostBackend>(options.progress);
    backend->why_ = count ? "the driver shows no GPU" : count.error().what;
  }
  return backend;
}

}  // namespace sinter
