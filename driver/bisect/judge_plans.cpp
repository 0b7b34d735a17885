#include "driver/bisect/judge_plans.h"

#include <filesystem>
#include <set>

#include "driver/plan_folder/write.h"
#include "driver/temporary_folder.h"
#include "driver/verify/parts.h"

namespace sinter {
namespace {

/// A plan that cannot be made or run is wrong, unless the machine is to blame.
bool is_fault(const Error& error) {
  return error.code != ExitCode::usage && error.code != ExitCode::out_of_memory &&
         error.code != ExitCode::cancelled;
}

}  // namespace

std::string PlanChoice::key() const {
  std::string text = !fused ? "unfused" : only ? to_string(*only) : "fused";
  if (families) {
    text += fmt::format(" without {} with {}", fmt::join(families->left_out, ","),
                        fmt::join(families->requested, ","));
    if (families->relaxed_attention) text += " relaxed";
  }
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
  SINTER_LET(runs, PlanRuns::create(model_, options_.runs));
  runs_ = std::move(runs);
  if (!options_.reference.empty()) {
    if (model_.spec)
      return fail("a reference is one of a module's outputs", options_.reference,
                  "for a language model give --check 'sinter verify {} --reference FILE'",
                  ExitCode::usage);
    SINTER_LET(file, open_tensor_file(options_.reference));
    std::set<std::string> names;
    for (const Entry& entry : model_.module.entries)
      for (const ValueId id : entry.graph.outputs) names.insert(entry.graph[id].name);
    SINTER_TRY(name_only_tensor(file, names, "output"));
    SINTER_TRY(refuse_unknown_tensors(file, model_.module));
    reference_.emplace(std::move(file));
  }
  SINTER_LET(unfused, compile_choice({false, {}, {}}));
  const auto program = options_.planted ? options_.planted(unfused) : unfused.program;
  SINTER_LET(models, options_.backend->load({program}, model_.tensors.get()));
  unfused_ = models[0];
  SINTER_LET(expected, runs_.run(*unfused_));
  expected_ = std::move(expected);
  return {};
}

Result<Compiled> PlanJudge::compile_choice(const PlanChoice& choice) const {
  CompileOptions options = compile_;
  if (!choice.fused) {
    const Numerics numerics = options.fusion.numerics;
    options.fusion = {};
    options.fusion.enabled = false;
    options.fusion.numerics = numerics;
  }
  options.fusion.only = choice.only;
  if (!choice.families) return compile(frozen_, options);
  CompileOptions passes = options_.compile;
  passes.families = *choice.families;
  SINTER_LET(frozen, frozen_module(model_, passes));
  return compile(std::move(frozen), options);
}

Result<std::vector<CallValues>> PlanJudge::run(const Compiled& compiled) {
  const auto program = options_.planted ? options_.planted(compiled) : compiled.program;
  SINTER_LET(models, options_.backend->load({program}, model_.tensors.get()));
  return runs_.run(*models[0]);
}

Result<std::string> PlanJudge::fault_of(const std::vector<CallValues>& values) const {
  if (!reference_) {
    SINTER_LET(difference, first_difference(runs_, values, expected_));
    return difference ? to_string(*difference) : std::string();
  }
  DTypeReport report;
  for (size_t call = 0; call < values.size(); ++call) {
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
    return fail("the file has no tensor of an output", reference_->path(), {}, ExitCode::usage);
  for (const ValueCheck& check : report.reference)
    if (options_.max_error ? !(check.max_abs <= *options_.max_error) : !check.passed)
      return fmt::format("{}: {:.3e} from the reference, allowed {:.3e}", check.name, check.max_abs,
                         options_.max_error.value_or(check.allowed));
  return std::string();
}

Result<bool> PlanJudge::command_says_wrong(const PlanChoice& choice) {
  BuildRequest request;
  request.compile = options_.compile;
  request.compile.fusion.only = choice.only;
  request.compile.fusion.enabled = choice.fused;
  if (choice.families) request.compile.families = *choice.families;
  request.for_folder = true;
  auto built = build_opened(model_, request);
  if (!built) {
    if (!is_fault(built.error())) return tl::make_unexpected(std::move(built.error()));
    return true;
  }
  const auto beside =
      std::filesystem::temp_directory_path() / fmt::format("sinter-bisect-{}", folders_++);
  SINTER_LET(folder, TemporaryFolder::beside(beside));
  const std::string plan = (folder.path() / "plan").string();
  SINTER_TRY(write_plan_folder(plan, {*built, {}, {}, {}, {}, false}));
  SINTER_LET(end, run_check(options_.check, plan));
  return !end.succeeded();
}

Result<int64_t> PlanJudge::wrong_runs(const PlanChoice& choice, int64_t runs, bool stop) {
  int64_t wrong = 0;
  std::optional<Compiled> compiled;
  std::shared_ptr<const Model> loaded;
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
    Result<std::vector<CallValues>> values = std::vector<CallValues>();
    if (options_.planted) {
      values = run(*compiled);
    } else {
      if (!loaded) {
        SINTER_LET(models, options_.backend->load({compiled->program}, model_.tensors.get()));
        loaded = models[0];
      }
      values = runs_.run(*loaded);
    }
    if (!values) {
      if (!is_fault(values.error())) return tl::make_unexpected(std::move(values.error()));
      ++wrong;
      continue;
    }
    SINTER_LET(fault, fault_of(*values));
    wrong += fault.empty() ? 0 : 1;
  }
  return wrong;
}

Result<std::pair<std::optional<ElementDifference>, std::string>> PlanJudge::difference(
    const PlanChoice& choice, int64_t runs) {
  std::pair<std::optional<ElementDifference>, std::string> found;
  auto compiled = compile_choice(choice);
  if (!compiled) {
    found.second = compiled.error().message();
    return found;
  }
  for (int64_t i = 0; i < runs && !found.first; ++i) {
    auto values = run(*compiled);
    if (!values) {
      found.second = values.error().message();
      return found;
    }
    SINTER_LET(difference, first_difference(runs_, *values, expected_));
    found.first = std::move(difference);
    if (reference_) {
      SINTER_LET(fault, fault_of(*values));
      found.second = std::move(fault);
    }
  }
  return found;
}

}  // namespace sinter
