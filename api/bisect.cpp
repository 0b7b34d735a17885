#include "driver/bisect/bisect.h"

#include "api/device.h"
#include "api/model.h"
#include "api/options.h"

namespace sinter {
namespace {

Result<std::string> bisect_report(const sinter_model& model, const sinter_device& device,
                                  const sinter_options* options) {
  OptionReader reader(options);
  BisectOptions bisection;
  SINTER_LET(compile, read_compile_options(reader));
  SINTER_LET(device_inputs, reader.flag("device-inputs", false));
  compile.device_inputs = device_inputs;
  bisection.compile = std::move(compile);
  if (!bisection.compile.fusion.enabled)
    return fail("a plan without fusions has none to find", OptionReader::where("fuse"),
                "leave it out", ExitCode::usage);
  SINTER_LET(seed, reader.integer<uint64_t>("seed"));
  SINTER_LET(symbols, reader.integers_of("symbol."));
  SINTER_LET(repeats, reader.integer<int64_t>("repeats", {.least = 1}));
  SINTER_LET(jobs, reader.integer<int64_t>("jobs", {.least = 1}));
  SINTER_LET(max_error, reader.real("max-error"));
  SINTER_LET(slower_than, reader.real("slower-than"));
  bisection.runs.seed = seed.value_or(bisection.runs.seed);
  bisection.runs.calls.symbols = symbols;
  bisection.runs.calls.inputs = reader.text("inputs").value_or("");
  bisection.reference = reader.text("reference").value_or("");
  if (max_error >= 0) bisection.max_error = max_error;
  bisection.slower_than = slower_than;
  if (bisection.slower_than && !(slower_than >= 1))
    return fail("the unfused plan takes as long as itself", OptionReader::where("slower-than"),
                "give 1 or more", ExitCode::usage);
  if (repeats) bisection.repeats = *repeats;
  if (jobs) bisection.jobs = *jobs;
  bisection.state = reader.text("state").value_or("");
  bisection.output = reader.text("output").value_or("");
  SINTER_TRY(reader.finish());
  const CudaContextGuard guard(device.device->cuda_api());
  SINTER_LET(backend, backend_on(device));
  if (bisection.slower_than && !backend->on_gpu())
    return fail("times are taken on a GPU", OptionReader::where("slower-than"), {},
                ExitCode::usage);
  bisection.backend = std::move(backend);
  Status cancelled;
  const Progress progress(options);
  bisection.progress = [&](const std::string& stage) {
    if (cancelled) cancelled = progress(stage.c_str(), 0, 0);
    return cancelled.has_value();
  };
  auto report = bisect(model.model, bisection);
  SINTER_TRY(cancelled);
  if (!report) return tl::make_unexpected(std::move(report.error()));
  return bisect_json(*report, true);
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_bisect(const sinter_model* model, const sinter_device* device,
                            const sinter_options* options, char** report) {
  return give_text(report, [&]() -> Result<std::string> {
    SINTER_TRY(require(model, "model"));
    SINTER_TRY(require(device, "device"));
    return bisect_report(*model, *device, options);
  });
}
