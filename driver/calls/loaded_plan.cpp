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
          [](const CopyStep&) {}, [](const CollectiveStep&) {});
  return found;
}

}  // namespace

Result<std::shared_ptr<const LoadedPlan>> LoadedPlan::load(std::shared_ptr<Device> device,
                                                           std::shared_ptr<const Program> program,
                                                           const LoadPlanOptions& options) {
  const CudaContextGuard guard(device->cuda_api());
  std::shared_ptr<LoadedPlan> plan(new LoadedPlan);
  plan->device_ = std::move(device);
  if (plan->device_->on_gpu() && has_products(*program)) SINTER_TRY(load_cublaslt());
  SINTER_LET(tensors, GivenTensors::create(*plan->device_, *program, options));
  const std::vector<CudaAddress> places = tensors->places(*program);
  SINTER_LET(loaded, plan->device_->load({program}, {.source = tensors.get(),
                                                     .places = places,
                                                     .machine_code = &options.machine_code,
                                                     .progress = options.progress}));
  plan->executable_ = std::move(loaded[0]);
  plan->machine_code_ = options.machine_code;
  plan->record_ = options.record;
  plan->products_ = options.products;
  return plan;
}

LoadedPlan::~LoadedPlan() {
  const CudaContextGuard guard(device_->cuda_api());
  executable_.reset();
  device_.reset();
}

Result<std::shared_ptr<CudaGemm>> LoadedPlan::products_in(CudaApi::Stream stream) const {
  if (!has_products(program())) return nullptr;
  SINTER_LET(products, CudaGemm::create(device_->cuda(), kernel_library(), record_, products_,
                                        KernelCache::of_user(), stream));
  products->share(device_->tuned());
  products->add_machine_code(machine_code_);
  return std::move(products);
}

}  // namespace sinter
