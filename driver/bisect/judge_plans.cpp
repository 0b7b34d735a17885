#include "driver/bisect/judge_plans.h"

#include <filesystem>
#include <set>

#include "driver/plan_folder/write.h"
#include "driver/temporary_folder.h"

namespace sinter {
namespace {

/// A plan that cannot be made or run is wrong, unless the machine is to blame.
bool is_fault(const Error& error) {
  return error.code != ExitCode::usage && error.code != ExitCode::out_of_memory &&
         error.code != ExitCode::cancelled;
}

/// The options of a plan. One without fusions is strict.
CompileOptions chosen(CompileOptions options, const PlanChoice& choice) {
  if (!choice.fused) {
    options.fusion = {};
    options.fusion.enabled = false;
  }
  if (choice.only) options.fusion.only = choice.only;
  if (choice.recipe) options.recipe = *choice.recipe;
  return options;
}

}  // namespace

std::string PlanChoice::key() const {
  std::string text = !fused ? "unfused" : only ? to_string(*only) : "fused";
  if (recipe)
    text += fmt::format(" --attention {} --products {}", to_string(recipe->attention),
                        to_string(recipe->products));
  return text;
}

Result<std::unique_ptr<PlanJudge>> PlanJudge::create(const OpenedModel& model,
                                                     const BisectOptions& options) {
  std::unique_ptr<PlanJudge> judge(new PlanJudge(model, options));
  SINTER_TRY(judge->prepare());
  return judge;
}

Status PlanJudge::prepare() {
  SINTER_TRY(require_runnable(model_));
  compile_ = options_for(compile_options(model_, options_.compile), *options_.backend);
  SINTER_LET(frozen, frozen_module(model_, options_.compile));
  frozen_ = std::move(frozen);
  SINTER_LET(fused, compile_choice({}));
  fused_ = std::move(fused);
  RunsOptions runs_options = options_.runs;
  if (!options_.reference.empty()) SINTER_TRY(open_reference(runs_options));
  SINTER_LET(runs, PlanRuns::create(model_, runs_options));
  runs_ = std::move(runs);
  SINTER_LET(unfused, compile_choice({false, {}, {}}));
  SINTER_LET(executable, load(unfused));
  unfused_ = std::move(executable);
  if (options_.slower_than) {
    SINTER_LET(times, PlanTimer::create(runs_, unfused_));
    timer_.emplace(std::move(times));
  } else {
    SINTER_LET(expected, runs_.run(*unfused_));
    expected_ = std::move(expected);
  }
  return {};
}

Status PlanJudge::open_reference(RunsOptions& runs) {
  if (model_.spec) {
    if (model_.spec->dtype != DType::f32)
      return fail(fmt::format("a reference has float32 results, the model computes in {}",
                              dtype_info(model_.spec->dtype).name),
                  options_.reference, "give --dtype fp32, or a command with --check",
                  ExitCode::usage);
    SINTER_LET(file, ReferenceFile::open(options_.reference));
    runs.sequences = file.sequences();
    runs.sequences_origin = options_.reference;
    for (const std::vector<int32_t>& sequence : runs.sequences)
      SINTER_TRY(check_vocabulary(model_, sequence));
    model_reference_.emplace(std::move(file));
    return {};
  }
  SINTER_LET(file, open_tensor_file(options_.reference));
  std::set<std::string> names;
  for (const Entry& entry : model_.module.entries)
    for (const ValueId id : entry.graph.outputs) names.insert(entry.graph[id].name);
  SINTER_TRY(name_only_tensor(file, names, "output"));
  SINTER_TRY(refuse_unknown_tensors(file, model_.module));
  reference_.emplace(std::move(file));
  return {};
}

Result<Compiled> PlanJudge::compile_choice(const PlanChoice& choice) const {
  const CompileOptions options = chosen(compile_, choice);
  if (!choice.recipe) return compile(frozen_, options);
  SINTER_LET(frozen, frozen_module(model_, chosen(options_.compile, choice)));
  return compile(std::move(frozen), options);
}

Result<std::shared_ptr<const Executable>> PlanJudge::load(const Compiled& compiled) const {
  const auto program = options_.planted ? options_.planted(compiled) : compiled.program;
  SINTER_LET(executables, options_.backend->load({program}, model_.tensors.get()));
  return executables[0];
}

Result<std::string> PlanJudge::time_fault(const std::shared_ptr<const Executable>& plan) const {
  SINTER_LET(times, timer_->measure(plan));
  std::string fault;
  double worst = *options_.slower_than;
  for (const CallTimes& call : times) {
    if (!(call.ratio > worst)) continue;
    constexpr double kMicroseconds = 1e6;
    worst = call.ratio;
    fault = fmt::format("entry {}: {:.1f} us a call, unfused {:.1f} us: {:.3f} times as long",
                        printable(call.entry), call.plan_s * kMicroseconds,
                        call.reference_s * kMicroseconds, call.ratio);
  }
  return fault;
}

Result<std::string> PlanJudge::reference_fault(const std::vector<CallValues>& values) const {
  DTypeReport report;
  if (model_reference_) {
    report.dtype = DType::f32;
    const std::string result = model_.spec->encoder ? "last_hidden_state" : "logits";
    std::vector<RunResult> runs;
    for (const CallValues& call : values) {
      RunResult& run = runs.emplace_back();
      for (const auto& [name, tensor] : call)
        if (name == result) run.outputs = {tensor};
      run.kept = call;
      SINTER_CHECK(!run.outputs.empty(), "{}", result);
    }
    SINTER_TRY(model_reference_->check(*model_.spec, runs, report));
  }
  for (size_t call = 0; reference_ && call < values.size(); ++call) {
    const Entry& entry = *model_.module.find_entry(runs_.calls()[call].entry);
    // The last call of an entry is the reference's.
    bool last = true;
    for (size_t later = call + 1; later < values.size(); ++later)
      last = last && runs_.calls()[later].entry != entry.name;
    if (!last) continue;
    std::vector<std::string> names;
    std::vector<HostTensor> outputs;
    for (const ValueId id : entry.graph.outputs)
      for (const auto& [name, tensor] : values[call])
        if (name == entry.graph[id].name && !llvm::is_contained(names, name)) {
          names.push_back(name);
          outputs.push_back(tensor);
        }
    SINTER_TRY(compare_outputs(*reference_, entry, names, outputs, report));
  }
  if (report.reference.empty())
    return fail("the file has no tensor of an output", options_.reference,
                "give a tensor for an output, by its name or ENTRY.NAME");
  for (const ValueCheck& check : report.reference)
    if (options_.max_error ? !(check.max_abs <= *options_.max_error) : !check.passed)
      return fmt::format("{}: {:.3e} from the reference, allowed {:.3e}", check.name, check.max_abs,
                         options_.max_error.value_or(check.allowed));
  return std::string();
}

Result<std::string> PlanJudge::fault_of(const std::vector<CallValues>& values) const {
  if (reference_ || model_reference_) return reference_fault(values);
  SINTER_LET(difference, first_difference(runs_, values, expected_));
  return difference ? to_string(*difference) : std::string();
}

Result<bool> PlanJudge::command_says_wrong(const PlanChoice& choice) {
  BuildRequest request;
  request.compile = chosen(options_.compile, choice);
  request.for_folder = true;
  auto built = build_opened(model_, request);
  if (!built) {
    if (!is_fault(built.error())) return tl::make_unexpected(std::move(built.error()));
    return true;
  }
  SINTER_LET(folder,
             TemporaryFolder::beside(std::filesystem::temp_directory_path() / "sinter-bisect"));
  const std::string plan = (folder.path() / "plan").string();
  SINTER_TRY(write_plan_folder(plan, {*built, {}, {}, {}, {}, false}));
  SINTER_LET(end, run_check(options_.check, plan));
  return !end.succeeded();
}

Result<int64_t> PlanJudge::wrong_runs(const PlanChoice& choice, int64_t runs, bool stop) {
  int64_t wrong = 0;
  std::optional<Compiled> compiled;
  std::shared_ptr<const Executable> loaded;
  for (int64_t i = 0; i < runs && !(stop && wrong > 0); ++i) {
    ++made_;
    if (!options_.check.text.empty()) {
      SINTER_LET(is_wrong, command_says_wrong(choice));
      wrong += is_wrong ? 1 : 0;
      continue;
    }
    if (!compiled) {
      auto made = compile_choice(choice);
      if (!made && !is_fault(made.error())) return tl::make_unexpected(std::move(made.error()));
      if (!made) return runs;
      compiled.emplace(std::move(*made));
    }
    // A planted program may differ from run to run.
    if (!loaded || options_.planted) {
      auto executable = load(*compiled);
      if (!executable && !is_fault(executable.error()))
        return tl::make_unexpected(std::move(executable.error()));
      if (!executable) return runs;
      loaded = std::move(*executable);
    }
    SINTER_LET(fault, fault_of_run(loaded));
    wrong += fault.empty() ? 0 : 1;
  }
  return wrong;
}

Result<std::string> PlanJudge::fault_of_run(const std::shared_ptr<const Executable>& plan) const {
  if (timer_) return time_fault(plan);
  auto values = runs_.run(*plan);
  if (values) return fault_of(*values);
  if (!is_fault(values.error())) return tl::make_unexpected(std::move(values.error()));
  return values.error().message();
}

Result<std::pair<std::optional<ElementDifference>, std::string>> PlanJudge::difference(
    const PlanChoice& choice, int64_t runs) {
  std::pair<std::optional<ElementDifference>, std::string> found;
  auto compiled = compile_choice(choice);
  if (!compiled) {
    found.second = compiled.error().message();
    return found;
  }
  for (int64_t i = 0; i < runs && !found.first && !(timer_ && !found.second.empty()); ++i) {
    auto executable = load(*compiled);
    if (!executable) {
      found.second = executable.error().message();
      return found;
    }
    if (timer_) {
      SINTER_LET(slow, time_fault(*executable));
      found.second = std::move(slow);
      continue;
    }
    auto values = runs_.run(**executable);
    if (!values) {
      found.second = values.error().message();
      return found;
    }
    SINTER_LET(difference, first_difference(runs_, *values, expected_));
    found.first = std::move(difference);
    if (options_.reference.empty()) continue;
    SINTER_LET(fault, reference_fault(*values));
    found.second = std::move(fault);
  }
  return found;
}

}  // namespace sinter
