// The argument MODEL of a command: a model, or the folder of a plan compiled from one.
#pragma once

#include "driver/stored_plan/stored_plan.h"

namespace sinter {

struct OpenOptions : LoadOptions {
  /// Whether the module of a plan's folder is compiled again, without its plan.json, CUDA text and
  /// machine code.
  bool recompile = false;
};

/// For a plan's folder, `module` is the one that was compiled, and `origin` the folder.
struct OpenedModel : Model {
  OpenedModel() = default;
  OpenedModel(Model model) : Model(std::move(model)) {}

  std::shared_ptr<const StoredPlan> plan;  // null: the module is to be compiled
  /// For a plan's folder: the options it was compiled with, and the `forms` of its record.
  std::optional<CompileOptions> compiled_with;
  /// The weights' own values are in files (embed_weights.h).
  bool embedded = false;
};

/// Reads no weights. A plan was compiled for one element type, cache and context: an error where
/// the options ask for another.
Result<OpenedModel> open_model(const std::string& path, const OpenOptions& options = {});

/// A module or a plan of one, not a model with a spec.
Result<bool> is_module(const std::string& path);

/// How the model is compiled: as it was, of a plan's folder; else as `wanted`.
CompileOptions compile_options(const OpenedModel& model, const CompileOptions& wanted);
/// The model's module after all passes, with CompileOptions::entries, ::device_inputs and
/// ::left_out of `wanted`, or of its compilation for a plan's folder.
Result<Module> frozen_module(const OpenedModel& model, const CompileOptions& wanted,
                             const PassObserver& observer = {});

/// compile(). Options of a plan's folder that do not fit its module are the folder's fault.
Result<Compiled> compile_opened(const OpenedModel& model, Module frozen,
                                const CompileOptions& options);

/// The decision record in a plan's folder; empty where there is none.
Result<std::string> stored_record(const std::string& path);

}  // namespace sinter
