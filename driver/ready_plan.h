// A plan and its executable on a device, ready to run.
#pragma once

#include "driver/backend.h"
#include "driver/compile/compile.h"
#include "driver/opened_model.h"

namespace sinter {

/// The plan that the backend's device runs: the stored plan, without Compiled::fusions, or the plan
/// of `frozen`. A stored plan's machine code is then in a GPU's backend.
Result<Compiled> plan_for(const OpenedModel& model, Module frozen, const CompileOptions& options,
                          Backend& backend);

struct ReadyPlan {
  Compiled compiled;
  std::shared_ptr<const Executable> executable;
};

/// The options with the backend's device for their target, and the forms of its record.
CompileOptions options_for(CompileOptions options, const Backend& backend);

/// Compiles for the backend's device, or takes the plan that was opened, and loads the weights,
/// which must be there. Of a plan, Compiled::module is the one before the passes, and there are no
/// Compiled::fusions.
Result<ReadyPlan> make_ready(const OpenedModel& model, const CompileOptions& options,
                             Backend& backend);

/// An error where the model's weights come from files that are not there, or where a language
/// model's plan lacks entries.
Status require_runnable(const OpenedModel& model);

/// An error where the kernels are a plan's, whose forms stay as they are.
Status require_tunable(const OpenedModel& model);

/// An error where the model is no language model or a token is outside its vocabulary.
Status check_tokens(const Model& model, llvm::ArrayRef<int32_t> tokens);
/// An error where a token is outside the vocabulary of a model that has a spec.
Status check_vocabulary(const Model& model, llvm::ArrayRef<int32_t> tokens);

}  // namespace sinter
