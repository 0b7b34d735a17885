// A model compiled and loaded on a device, ready to run.
#pragma once

#include "driver/backend.h"
#include "driver/compile/compile.h"
#include "frontends/load_model.h"

namespace sinter {

struct ReadyModel {
  Compiled compiled;
  std::shared_ptr<const Model> model;
};

/// The options with the backend's device for their target, and the forms of its record.
CompileOptions options_for(CompileOptions options, const Backend& backend);

/// Compiles for the backend's device and loads the weights, which must be there.
Result<ReadyModel> make_ready(const LoadedModel& model, const CompileOptions& options,
                              Backend& backend);

/// An error where the model's weights come from files that are not there.
Status require_weights(const LoadedModel& model);

/// An error where the model is no language model or a token is outside its vocabulary.
Status check_tokens(const LoadedModel& model, llvm::ArrayRef<int32_t> tokens);

}  // namespace sinter
