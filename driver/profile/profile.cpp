#include "driver/profile/profile.h"

#include <algorithm>

#include "driver/generate/cuda_generator.h"
#include "driver/profile/workload.h"
#include "driver/tune/form_tuner.h"
#include "kernels/library.h"
#include "runtime/clock.h"

namespace sinter {
namespace {

// Before the measured ones: caches and clocks settle.
constexpr int64_t kWarmTokens = kWarmSteps;
// The bytes that the memory ceilings are measured on: far more than any cache holds.
constexpr size_t kCeilingBytes = size_t{1} << 30;
// Products in f32 run on slower units; a smaller one fills them as well.
constexpr int64_t kProductSide = 8192, kProductSideF32 = 4096;

Result<ProfileCeilings> measure_ceilings(const CudaDevicePtr& device, DType dtype) {
  SINTER_LET(ceilings, CudaCeilings::create(device, kernel_library()));
  ProfileCeilings result;
  SINTER_LET(read, ceilings.read(kCeilingBytes));
  SINTER_LET(copy, ceilings.copy(kCeilingBytes));
  SINTER_LET(gemm, ceilings.gemm(dtype, dtype == DType::f32 ? kProductSideF32 : kProductSide));
  result.read = std::move(read);
  result.copy = std::move(copy);
  result.gemm = std::move(gemm);
  return result;
}

/// The type that most of the weights have: the models', or of a module without floats bf16.
DType main_dtype(const Model& model) {
  if (model.spec) return model.spec->dtype;
  for (const Weight& weight : model.module.weights)
    if (is_float(weight.type.dtype)) return weight.type.dtype;
  return DType::bf16;
}

/// Seconds of a token through recorded graphs, nothing traced.
Result<double> time_untraced(const Workload& work, int64_t count) {
  SINTER_LET(run, work.record(kWarmTokens + count));
  SINTER_TRY(run(kWarmTokens));
  const auto begin = Clock::now();
  SINTER_TRY(run(count));
  return seconds_since(begin) / static_cast<double>(count);
}

ProfileRun summarize(std::vector<ProfiledToken> tokens) {
  ProfileRun run;
  run.times = token_times(tokens);
  run.copies = token_copies(tokens);
  run.tokens = std::move(tokens);
  return run;
}

/// `count` tokens, each step launched by the host under a tag of its own.
Result<ProfileRun> run_stepped(CuptiTrace& trace, const ResidentCalls& calls, int64_t count) {
  SINTER_TRY(calls.enqueue());
  SINTER_TRY(calls.stream().synchronize("the first token"));
  SINTER_TRY(trace.collect());
  const size_t steps = calls.steps();
  for (int64_t token = 0; token < count; ++token)
    for (size_t step = 0; step < steps; ++step)
      SINTER_TRY(trace.tagged(static_cast<uint64_t>(token) * steps + step,
                              [&] { return calls.enqueue_step(step); }));
  SINTER_TRY(calls.stream().synchronize("profiled tokens"));
  SINTER_LET(records, trace.collect());
  SINTER_LET(tokens, tokens_by_tag(std::move(records), steps, static_cast<size_t>(count)));
  return summarize(std::move(tokens));
}

/// `count` tokens through recorded graphs. What the trace holds of the prompts is dropped.
Result<ProfileRun> run_recorded(CuptiTrace& trace, const Workload& work, int64_t count) {
  const int64_t all = kWarmTokens + count;
  SINTER_LET(run, work.record(all));
  SINTER_TRY(trace.collect());
  SINTER_TRY(run(all));
  run = nullptr;  // waits for all of the last graph
  SINTER_LET(records, trace.collect());
  SINTER_LET(tokens, tokens_in_order(std::move(records), static_cast<size_t>(all)));
  tokens.erase(tokens.begin(), tokens.begin() + kWarmTokens);
  return summarize(std::move(tokens));
}

std::vector<ProfiledStep> describe_steps(const Program& program, const std::vector<CudaCall>& calls,
                                         VisibleRows visible) {
  std::vector<ProfiledStep> steps;
  for (const CudaCall& call : calls) {
    const StepCosts costs(program, call.symbol_values, visible);
    for (const Step& step : call.entry->steps)
      steps.push_back({call.entry->name, step_title(program, *call.entry, step, call.symbol_values),
                       step.values, costs.of(*call.entry, step), step_class(program, step)});
  }
  return steps;
}

/// Steps for the graph's kernels, where all tokens ran what the steps ran.
bool match(const ProfileRun& stepped, ProfileRun& recorded) {
  return std::all_of(recorded.tokens.begin(), recorded.tokens.end(), [&](ProfiledToken& token) {
    return take_steps(stepped.tokens.front(), token);
  });
}

/// The plan with the forms that make a decoded token fastest; of other phases, the plan as it is.
Status tune_decode(const Model& model, ReadyPlan& ready, const ProfileOptions& options) {
  SINTER_LET(phase, chosen_phase(model, options.phase));
  if (phase != "decode" || !is_language_model(model)) return {};
  SINTER_LET(prompts, decode_prompts(model, options, kWarmTokens + options.count));
  const std::shared_ptr<const CudaExecutable> loaded = ready.executable->on_cuda();
  SINTER_LET(tuning,
             tune_forms({{&ready.compiled, options_for(options.compile, *options.backend), loaded}},
                        prompts, options.count, {}));
  ready.executable = tuning.executables[0];
  return {};
}

}  // namespace

double Profile::bytes() const {
  double total = 0;
  for (const ProfiledStep& step : steps) total += step.cost.bytes();
  return total;
}

double Profile::busy_s() const { return recorded.times.kernels - recorded.times.overlapped; }

double Profile::idle_s() const { return std::max(untraced_s - busy_s(), 0.0); }

Result<Profile> profile(const OpenedModel& model, const ProfileOptions& options) {
  if (!options.backend->on_gpu())
    return fail(fmt::format("a profile needs a GPU, and the device is {}: {}",
                            options.backend->name(), options.backend->why()),
                {}, "run it on a machine with one", ExitCode::device);
  if (options.count < 1)
    return fail(fmt::format("{} tokens to profile", options.count), "-n", "give at least 1",
                ExitCode::usage);
  SINTER_TRY(load_cupti());
  SINTER_TRY(chosen_phase(model, options.phase));
  if (options.tuned) SINTER_TRY(require_tunable(model));
  OpenedModel routed = model;
  SINTER_TRY(set_routing(routed, options.routing, options.seed));
  SINTER_LET(ready, make_ready(routed, options.compile, *options.backend));
  if (options.tuned) SINTER_TRY(tune_decode(routed, ready, options));
  return profile(routed, ready, options);
}

Result<Profile> profile(const Model& model, const ReadyPlan& ready, const ProfileOptions& options) {
  const std::shared_ptr<const CudaExecutable> loaded = ready.executable->on_cuda();
  SINTER_CHECK(loaded, "a profile of an executable on the host");
  const CudaDevice& device = *loaded->cuda_device();
  SINTER_LET(work, make_workload(model, ready, options, kWarmTokens + options.count));

  Profile result;
  result.model = ready.compiled.program->name;
  result.phase = work.phase;
  result.device = loaded->device();
  result.driver =
      fmt::format("{}.{}", device.driver_version() / 1000, device.driver_version() % 1000 / 10);
  result.dtype = model.spec ? std::string(to_string(model.spec->dtype)) : std::string();
  result.fused = options.compile.fusion.enabled;
  result.sizes = work.sizes;
  if (work.tokens > 0 && model.spec->experts)
    result.experts = step_experts(*model.spec->experts, options.routing, options.seed, work.tokens);
  result.count = options.count;
  SINTER_LET(ceilings, measure_ceilings(loaded->cuda_device(), main_dtype(model)));
  result.ceilings = std::move(ceilings);
  SINTER_LET(untraced, time_untraced(work, options.count));
  result.untraced_s = untraced;

  // The trace begins before the graphs are made: only then are their kernels recorded one by one.
  SINTER_LET(trace, CuptiTrace::begin());
  {
    SINTER_LET(calls, work.resident());
    SINTER_LET(stepped, run_stepped(*trace, calls, options.count));
    result.stepped = std::move(stepped);
    // The mean number of rows that the recorded tokens see.
    VisibleRows visible = work.visible;
    if (work.grows) visible.each += kWarmTokens + (options.count - 1) / 2;
    result.steps = describe_steps(loaded->program(), calls.calls(), visible);
  }
  SINTER_LET(recorded, run_recorded(*trace, work, options.count));
  result.recorded = std::move(recorded);
  result.matched = match(result.stepped, result.recorded);
  result.rows =
      profile_rows(result.steps, result.matched ? result.recorded.tokens : result.stepped.tokens,
                   result.ceilings);
  return result;
}

}  // namespace sinter
