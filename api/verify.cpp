#include "driver/verify/verify.h"

#include "api/device.h"
#include "api/model.h"
#include "api/options.h"
#include "driver/calls/given_tensors.h"

struct sinter_report {
  bool passed = false;
  std::string difference;
  int64_t values = 0, elements = 0, fused_launches = 0, unfused_launches = 0;
  double fused_error = -1, unfused_error = -1;
};

namespace sinter {
namespace {

std::unique_ptr<sinter_report> summarize(const VerifyReport& report) {
  auto summary = std::make_unique<sinter_report>();
  summary->passed = report.passed();
  for (const DTypeReport& one : report.dtypes) {
    summary->difference = one.difference;
    summary->values += one.values;
    summary->elements += one.elements;
    summary->fused_launches += one.fused_launches;
    summary->unfused_launches += one.unfused_launches;
    if (one.fused_error) summary->fused_error = one.fused_error->max;
    if (one.unfused_error) summary->unfused_error = one.unfused_error->max;
    for (const ErrorBound& bound : one.bounds)
      if (!bound.holds() && summary->difference.empty())
        summary->difference = fmt::format(
            "%{}: the fused plan is farther from float64 than its "
            "bound allows",
            bound.value);
  }
  return summary;
}

Result<std::unique_ptr<sinter_report>> verify_handle(const sinter_model& model,
                                                     const sinter_device& device,
                                                     const sinter_weights* weights,
                                                     const sinter_options* options) {
  if (model.model.spec)
    return fail("this function verifies modules, not language models", model.path,
                "`sinter verify` verifies language models", ExitCode::usage);
  OptionReader reader(options);
  VerifyOptions verify;
  SINTER_LET(options_of, read_compile_options(reader));
  SINTER_LET(seed, reader.integer<uint64_t>("seed"));
  SINTER_LET(repeat, reader.integer<int64_t>("repeat", {.least = 1, .most = 1 << 30}));
  SINTER_LET(symbols, reader.integers_of("symbol."));
  SINTER_TRY(reader.finish());
  verify.seed = seed.value_or(1);
  verify.calls.repeat = repeat.value_or(1);
  verify.calls.symbols = symbols;
  verify.compile = options_of;
  OpenedModel opened = model.model;
  LoadPlanOptions given;  // lent to the tensors
  given.source = model.model.tensors.get();
  if (weights) {
    given.host_weights = weights->host;
    given.device_weights = weights->device;
    SINTER_LET(frozen, frozen_module(opened, options_of));
    SINTER_LET(compiled, compile(std::move(frozen), compile_options(opened, options_of)));
    SINTER_LET(tensors, GivenTensors::create(*device.device, *compiled.program, given));
    opened.tensors = std::move(tensors);
  }
  SINTER_TRY(require_runnable(opened));
  const CudaContextGuard guard(device.device->cuda_api());
  SINTER_LET(backend, backend_on(device));
  verify.backend = std::move(backend);
  SINTER_LET(report, verify_opened(opened, verify));
  return summarize(report);
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_verify(const sinter_model* model, const sinter_device* device,
                            const sinter_weights* weights, const sinter_options* options,
                            sinter_report** report) {
  return make_handle(report, [&]() -> Result<std::unique_ptr<sinter_report>> {
    SINTER_TRY(require(model, "model"));
    SINTER_TRY(require(device, "device"));
    return verify_handle(*model, *device, weights, options);
  });
}

int sinter_report_passed(const sinter_report* report) { return report && report->passed ? 1 : 0; }
const char* sinter_report_difference(const sinter_report* report) {
  return report ? report->difference.c_str() : nullptr;
}
int64_t sinter_report_values(const sinter_report* report) { return report ? report->values : 0; }
int64_t sinter_report_elements(const sinter_report* report) {
  return report ? report->elements : 0;
}
int64_t sinter_report_fused_launches(const sinter_report* report) {
  return report ? report->fused_launches : 0;
}
int64_t sinter_report_unfused_launches(const sinter_report* report) {
  return report ? report->unfused_launches : 0;
}
double sinter_report_fused_error(const sinter_report* report) {
  return report ? report->fused_error : -1;
}
double sinter_report_unfused_error(const sinter_report* report) {
  return report ? report->unfused_error : -1;
}
void sinter_report_free(sinter_report* report) { free_handle(report); }
