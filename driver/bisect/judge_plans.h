// Plans of one frozen module with some of its fusions, and whether they are wrong.
#pragma once

#include <atomic>

#include "driver/bisect/bisect.h"
#include "driver/bisect/plan_times.h"
#include "driver/verify/parts.h"
#include "frontends/files/tensor_file.h"

namespace sinter {

/// How a plan is made: with all fusions, some or none, and with which kernels.
struct PlanChoice {
  bool fused = true;
  std::optional<FusionSet> only;  // none: all fusions
  std::optional<Recipe> recipe;   // none: the options' recipe

  std::string key() const;  // "fused", "unfused", "0-3,7"
};

/// Makes plans, runs them and compares them. Answers of several threads.
class PlanJudge {
 public:
  static Result<std::unique_ptr<PlanJudge>> create(const OpenedModel& model,
                                                   const BisectOptions& options);

  /// The plan with all fusions.
  const Compiled& fused() const { return fused_; }
  const Executable& unfused() const { return *unfused_; }
  const PlanRuns& runs() const { return runs_; }
  Result<Compiled> compile_choice(const PlanChoice& choice) const;

  /// The number of wrong runs among `runs`; with `stop` no runs follow a wrong one.
  Result<int64_t> wrong_runs(const PlanChoice& choice, int64_t runs, bool stop);
  /// The fault of a plan: the first element that differs from the unfused plan, in at most
  /// `runs` runs, or how it fails.
  Result<std::pair<std::optional<ElementDifference>, std::string>> difference(
      const PlanChoice& choice, int64_t runs);
  int64_t runs_made() const { return made_; }

 private:
  PlanJudge(const OpenedModel& model, const BisectOptions& options)
      : model_(model), options_(options) {}
  Status prepare();
  /// Empty: right.
  Result<std::string> fault_of(const std::vector<CallValues>& values) const;
  Result<std::string> reference_fault(const std::vector<CallValues>& values) const;
  Result<std::string> fault_of_run(const std::shared_ptr<const Executable>& plan) const;
  Result<std::string> time_fault(const std::shared_ptr<const Executable>& plan) const;
  Status open_reference(RunsOptions& runs);
  Result<std::shared_ptr<const Executable>> load(const Compiled& compiled) const;
  Result<bool> command_says_wrong(const PlanChoice& choice);

  const OpenedModel& model_;
  const BisectOptions& options_;
  Module frozen_;
  CompileOptions compile_;
  Compiled fused_;
  PlanRuns runs_;
  std::shared_ptr<const Executable> unfused_;
  std::vector<CallValues> expected_;
  std::optional<TensorFile> reference_;           // of a module
  std::optional<ReferenceFile> model_reference_;  // of a language model
  std::optional<PlanTimer> timer_;
  std::atomic<int64_t> made_ = 0;
};

}  // namespace sinter
