#include "driver/backend.h"

#include "frontends/files/bounded_file.h"
#include "kernels/check_forms.h"
#include "kernels/library.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

Result<std::shared_ptr<CudaGemm>> create_products(const CudaDevicePtr& device,
                                                  const BackendOptions& options) {
  GemmRecord record;
  if (!options.record.empty()) {
    SINTER_LET(file, read_record(options.record));
    record = std::move(file.record);
  }
  const GemmPolicy policy = options.frozen          ? GemmPolicy::frozen
                            : options.slow_products ? GemmPolicy::strided
                            : options.tune          ? GemmPolicy::tune
                                                    : GemmPolicy::first;
  return CudaGemm::create(device, kernel_library(), std::move(record), policy);
}

}  // namespace

Result<RecordFile> read_record(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMaxRecordBytes));
  SINTER_LET(record, GemmRecord::parse(text, path));
  SINTER_TRY(check_forms(record.forms, path));
  return RecordFile{std::move(text), std::move(record)};
}

Result<std::shared_ptr<Backend>> Backend::on(std::shared_ptr<const Device> device,
                                             const BackendOptions& options) {
  std::shared_ptr<Backend> backend(new Backend);
  backend->device_ = std::move(device);
  backend->progress_ = options.progress;
  if (!backend->on_gpu()) return backend;
  SINTER_LET(products, create_products(backend->device_->cuda(), options));
  backend->gemm_ = std::move(products);
  return backend;
}

Result<std::shared_ptr<Backend>> Backend::open(const BackendOptions& options) {
  SINTER_LET(choice, choose_device(options.device));
  SINTER_LET(device, Device::open(choice));
  SINTER_LET(backend, on(std::move(device), options));
  backend->why_ = std::move(choice.why);
  return std::move(backend);
}

std::string Backend::target(const std::string& wanted) const {
  return on_gpu() ? device_->target() : wanted;
}

Result<std::vector<std::shared_ptr<const Executable>>> Backend::load(
    llvm::ArrayRef<std::shared_ptr<const Program>> programs, const TensorSource* source) const {
  return device_->load(
      programs,
      {.source = source, .gemm = gemm_, .machine_code = &machine_code_, .progress = progress_});
}

void Backend::add_machine_code(MachineCodeByText code) {
  if (!gemm_) return;
  gemm_->add_machine_code(code);
  machine_code_.merge(std::move(code));
}

GemmRecord Backend::record() const { return gemm_ ? gemm_->record() : GemmRecord(); }

void Backend::add_forms(const TunedForms& forms) {
  if (gemm_) gemm_->add_forms(forms);
}

}  // namespace sinter
