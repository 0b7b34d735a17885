// From a path to a compiled plan: the part that all commands which compile have in common.
#pragma once

#include "driver/opened_model.h"

namespace sinter {

struct BuildRequest {
  std::string path;  // the model
  OpenOptions load;
  CompileOptions compile;   // of a plan's folder: how it was compiled counts instead
  bool for_folder = false;  // makes also what a plan's folder and its summary show
  bool embed = false;       // the weights will be in the plan's folder
};

/// The module as a pass left it, as text.
struct PassDump {
  std::string pass;
  std::string text;
};

struct Built {
  OpenedModel model;
  CompileOptions options;       // how it was compiled
  std::vector<Weight> weights;  // of the frozen module; those to embed, before they were files
  Compiled compiled;
  std::vector<PassDump> dumps;  // for a folder: "input", then every pass
  /// For a folder: the same frozen module with a kernel per op, what `before` means in reports.
  Compiled unfused;
  std::vector<std::pair<std::string, double>> seconds;  // by stage, in order
};

Result<Built> build(const BuildRequest& request);
/// The same for a model that was opened: path and load are not read.
Result<Built> build_opened(OpenedModel model, const BuildRequest& request);

/// "llama-2-7b: f16, 32 layers of 4096, vocabulary of 32000".
std::string model_line(const Built& built);

}  // namespace sinter
