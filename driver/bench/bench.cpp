#include "driver/bench/bench.h"

#include <algorithm>
#include <filesystem>

#include "driver/bench/parts.h"
#include "driver/board.h"
#include "driver/tune/form_tuner.h"
#include "kernels/library.h"
#include "runtime/cuda/cupti.h"
#include "runtime/cuda/nvrtc_library.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

constexpr int64_t kUsualPrompts[] = {512, 2048};
// Long enough that the start of a kernel is less than a hundredth of its time.
constexpr size_t kReadBytes = size_t{1} << 30;
constexpr int64_t kGemmSize = 8192;
// Positions that the steps of a profile need after its context.
constexpr int64_t kProfiledRoom = 32;

/// Both plans, loaded; adds the stages' times to the report.
Result<BenchPlans> make_bench_plans(const std::string& path, const BenchOptions& options,
                                    BenchReport& report) {
  const auto stage = [&](const char* name, Clock::time_point begin) {
    report.seconds.emplace_back(name, seconds_since(begin));
  };
  Clock::time_point begin = Clock::now();
  SINTER_LET(model, open_model(path, options.load));
  SINTER_TRY(require_runnable(model));
  SINTER_TRY(set_routing(model, options.routing, options.seed));
  if (options.tuned) SINTER_TRY(require_tunable(model));
  stage("reading", begin);
  begin = Clock::now();
  SINTER_LET(frozen, frozen_module(model, options.compile));
  CompileOptions compiling = options_for(compile_options(model, options.compile), *options.backend);
  SINTER_LET(fused, plan_for(model, frozen, compiling, *options.backend));
  BenchPlans plans;
  plans.options = compiling;
  compiling.fusion = {};
  compiling.fusion.enabled = false;
  SINTER_LET(unfused, compile(frozen, compiling));
  stage("compiling", begin);
  begin = Clock::now();
  SINTER_LET(executables,
             options.backend->load({fused.program, unfused.program}, model.tensors.get()));
  const double loading_s = seconds_since(begin);
  plans.fused = executables[0]->on_cuda();
  plans.unfused = executables[1]->on_cuda();
  SINTER_CHECK(plans.fused && plans.unfused, "a GPU's backend gave executables of another device");
  const double kernels_s = plans.fused->compile_seconds() + plans.unfused->compile_seconds();
  report.seconds.emplace_back("kernels", kernels_s);
  report.seconds.emplace_back("weights", loading_s - kernels_s);
  plans.frozen = std::move(frozen);
  if (const auto rates = kept_board(plans.device()->name())) {
    SINTER_LET(device, find_device(compiling.target));
    plans.board = with_rates(std::move(device), *rates);
  }
  // An encoder's entry is measured as a module's is.
  if (model.spec && !model.spec->encoder) plans.spec = model.spec;
  if (plans.spec && plans.spec->experts)
    plans.experts =
        step_experts(*plans.spec->experts, options.routing, options.seed, options.batch);
  plans.model = std::move(model);
  plans.compiled = std::move(fused);
  plans.apart = std::move(unfused);
  plans.apart_options = std::move(compiling);
  return plans;
}

BenchMachine describe_machine(const CudaDevice& device, const Backend& backend) {
  BenchMachine machine;
  machine.device = device.name();
  machine.driver = fmt::format("CUDA {}.{}", device.driver_version() / 1000,
                               device.driver_version() % 1000 / 10);
  machine.libraries.push_back(backend.record().library);
  if (const Result<NvrtcFile> nvrtc = find_nvrtc()) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(nvrtc->path, error);
    machine.libraries.push_back(error ? nvrtc->path : file.filename().string());
  }
  machine.multiprocessors = device.multiprocessors();
  machine.memory_bytes = device.memory_bytes();
  machine.l2_bytes = device.l2_bytes();
  return machine;
}

/// The prompt lengths and the context that a language model is measured at.
struct Lengths {
  std::vector<int64_t> prompts;
  int64_t context = 0;
};

/// The sizes asked for, or the usual ones as far as the model has positions.
Result<Lengths> lengths_of(const ModelSpec& spec, const BenchOptions& options,
                           const std::string& path) {
  const int64_t most = spec.max_positions;
  const auto too_long = [&](std::string what, const char* option) {
    return fail(fmt::format("{}, the model has {} positions", what, most), path,
                fmt::format("give a smaller {}", option), ExitCode::usage);
  };
  Lengths lengths;
  if (options.prompts) lengths.prompts = *options.prompts;
  for (int64_t length : options.prompts ? llvm::ArrayRef<int64_t>() : llvm::ArrayRef(kUsualPrompts))
    if (length <= most) lengths.prompts.push_back(length);
  std::erase(lengths.prompts, 0);
  for (int64_t length : lengths.prompts)
    if (length > most) return too_long(fmt::format("a prefill of {} tokens", length), "-p");
  if (options.tokens == 0) return lengths;
  const int64_t room = most - options.tokens;
  const int64_t usual = std::min({room, most / options.batch, kUsualContext});
  lengths.context = std::max(kMinContext, options.context.value_or(usual));
  if (lengths.context > room)
    return too_long(
        fmt::format("a context of {} and {} tokens more", lengths.context, options.tokens),
        "-d or -n");
  return lengths;
}

/// Chooses the forms of the decode step's kernels; both plans get them, and the record.
Status tune_decode(BenchPlans& plans, const BenchOptions& options, int64_t context,
                   BenchReport& report) {
  SINTER_LET(prompts, random_sequences(plans.spec->vocabulary, options.batch,
                                       decode_prompt(context), options.seed));
  SINTER_LET(tuning, tune_forms({{&plans.compiled, plans.options, plans.fused},
                                 {&plans.apart, plans.apart_options, plans.unfused}},
                                prompts, options.tokens, options.on_stage));
  plans.forms_s = tuning.seconds;
  plans.first_calls_s += tuning.products_s;
  plans.fused = tuning.executables[0];
  plans.unfused = tuning.executables[1];
  options.backend->add_forms(forms_of(tuning.search.decisions));
  report.forms = std::move(tuning.search);
  return {};
}

Status bench_language_model(BenchPlans& plans, const BenchOptions& options, const Lengths& lengths,
                            const CudaCeilings& ceilings, BenchReport& report) {
  const auto stage = [&](const std::string& text) {
    if (options.on_stage) options.on_stage(text);
  };
  if (options.tokens == 0 && lengths.prompts.empty())
    return fail("there is nothing to measure", "-n 0", "give lengths of prefills with -p",
                ExitCode::usage);
  if (options.tokens > 0) {
    stage("read ceiling");
    SINTER_LET(read, ceilings.read(kReadBytes));
    if (options.tuned) {
      stage("tuning forms");
      SINTER_TRY(tune_decode(plans, options, lengths.context, report));
    }
    stage(fmt::format("decode at {}", lengths.context));
    SINTER_LET(decode, bench_decode(plans, options, lengths.context, read));
    report.cases.push_back(std::move(decode));
  }
  if (lengths.prompts.empty()) return {};
  stage("GEMM ceiling");
  SINTER_LET(gemm, ceilings.gemm(plans.spec->dtype, kGemmSize));
  for (int64_t length : lengths.prompts) {
    stage(fmt::format("prefill of {}", length));
    SINTER_LET(prefill, bench_prefill(plans, options, length, gemm));
    report.cases.push_back(std::move(prefill));
  }
  return {};
}

/// Whether a decode step can be profiled, before anything is measured.
Status check_kernels(const BenchPlans& plans, const BenchOptions& options) {
  if (!options.kernels) return {};
  if (!plans.spec || options.tokens == 0)
    return fail("kernels are profiled of a step that decodes", "--kernels",
                "give a language model and no -n 0", ExitCode::usage);
  SINTER_TRY(load_cupti());
  return {};
}

/// A decode step of the fused plan, kernel by kernel. Last of all: a trace slows what runs.
Status bench_kernels(const BenchPlans& plans, const BenchOptions& options, const Lengths& lengths,
                     BenchReport& report) {
  if (!options.kernels) return {};
  if (options.on_stage) options.on_stage("kernels of a token");
  ProfileOptions profiling;
  profiling.backend = options.backend;
  profiling.batch = options.batch;
  profiling.context =
      std::min(lengths.context, std::max<int64_t>(plans.spec->max_positions - kProfiledRoom, 1));
  profiling.seed = options.seed;
  profiling.routing = options.routing;
  SINTER_LET(profiled, profile(plans.model, {plans.compiled, plans.fused}, profiling));
  report.decode = std::move(profiled);
  return {};
}

}  // namespace

double BenchCase::speedup() const {
  const double a = median(fused.device_s), b = median(unfused.device_s);
  return a > 0 ? b / a : 0;
}

double BenchCase::per_s(const PlanTimes& times) const {
  const double seconds = median(times.device_s);
  return seconds > 0 ? amount / seconds : 0;
}

double BenchCase::of_ceiling(const PlanTimes& times) const {
  return ceiling.per_s > 0 ? per_s(times) / ceiling.per_s : 0;
}

Result<BenchReport> bench(const std::string& path, const BenchOptions& options) {
  if (!options.backend->on_gpu())
    return fail("a benchmark needs a GPU: " + options.backend->why(), options.backend->name(), {},
                ExitCode::device);
  BenchReport report;
  report.repeat = options.repeat;
  report.tuned = options.tuned;
  if (options.on_stage) options.on_stage("compiling and loading");
  SINTER_LET(plans, make_bench_plans(path, options, report));
  report.model = plans.frozen.name;
  report.numerics = plans.numerics();
  if (plans.spec) report.dtype = to_string(plans.spec->dtype);
  report.experts = plans.experts;
  report.weight_bytes = static_cast<double>(plans.fused->weights().bytes());
  report.machine = describe_machine(*plans.device(), *options.backend);
  report.measured_board = plans.board.has_value();
  SINTER_TRY(check_kernels(plans, options));
  SINTER_LET(ceilings, CudaCeilings::create(plans.device(), kernel_library()));
  if (plans.spec) {
    if (!options.symbols.empty())
      return fail("a language model's sizes are not symbols", "--symbol",
                  "give -p, -n, -d and --batch", ExitCode::usage);
    SINTER_LET(lengths, lengths_of(*plans.spec, options, path));
    SINTER_TRY(bench_language_model(plans, options, lengths, ceilings, report));
    SINTER_TRY(bench_kernels(plans, options, lengths, report));
  } else {
    SINTER_LET(cases, bench_entries(plans, options, ceilings));
    report.cases = std::move(cases);
  }
  const double products_s = plans.fused->gemm().tuning_seconds();  // of both plans
  if (options.tuned) report.seconds.emplace_back("tuning", products_s + plans.forms_s);
  report.seconds.emplace_back("first calls", plans.first_calls_s - products_s);
  return report;
}

}  // namespace sinter
