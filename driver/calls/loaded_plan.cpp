#include "driver/calls/loaded_plan.h"

#include "driver/calls/given_tensors.h"
#include "kernels/library.h"

namespace sinter {
namespace {

bool has_products(const Program& program) {
  bool found = false;
  for (const EntryPlan& entry : program.entries)
    for (const Step& step : entry.steps)
      visit(
          step, [](const KernelStep&) {}, [&](const GemmStep&) { found = true; },
          [](const CopyStep&) {});
  return found;
}

}  // namespace

Result<std::shared_ptr<const LoadedPlan>> LoadedPlan::load(std::shared_ptr<CallDevice> device,
                                                           std::shared_ptr<const Program> program,
                                                           const LoadPlanOptions& options) {
  const CudaContextGuard guard(device->cuda_api());
  std::shared_ptr<LoadedPlan> plan(new LoadedPlan);
  plan->device_ = std::move(device);
  plan->program_ = std::move(program);
  if (plan->device_->on_gpu()) {
    SINTER_TRY(plan->load_on_gpu(options));
    return plan;
  }
  SINTER_LET(tensors, GivenTensors::create(*plan->device_, *plan->program_, options));
  SINTER_LET(host, HostExecutable::load(plan->program_, tensors.get(), options.progress));
  plan->host_ = std::move(host);
  return plan;
}

Status LoadedPlan::load_on_gpu(const LoadPlanOptions& options) {
  const CudaDevicePtr& cuda = device_->cuda();
  if (has_products(*program_)) SINTER_TRY(load_cublaslt());
  SINTER_LET(tensors, GivenTensors::create(*device_, *program_, options));
  SINTER_LET(weights, CudaWeights::load(cuda, *program_, tensors.get(), options.progress,
                                        tensors->places(*program_)));
  SINTER_LET(executable, CudaExecutable::load(program_, cuda, nullptr, weights, kernel_library(),
                                              KernelCache::of_user(), options.machine_code));
  cuda_ = std::move(executable);
  machine_code_ = options.machine_code;
  record_ = options.record;
  products_ = options.products;
  return {};
}

LoadedPlan::~LoadedPlan() {
  const CudaContextGuard guard(device_->cuda_api());
  cuda_.reset();
  device_.reset();
}

Result<std::shared_ptr<CudaGemm>> LoadedPlan::products_in(CudaApi::Stream stream) const {
  if (!has_products(*program_)) return nullptr;
  SINTER_LET(products, CudaGemm::create(device_->cuda(), kernel_library(), record_, products_,
                                        KernelCache::of_user(), stream));
  products->share(device_->tuned());
  products->add_machine_code(machine_code_);
  return std::move(products);
}

}  // namespace sinter
