// A plan's folder that somebody else wrote, opened to be run. Nothing of it is believed: each file
// is compared with its hash in the manifest, plan.json and the module are validated, and the
// checker proves the plan. Machine code alone cannot be checked: it runs with the user's rights.
#pragma once

#include "driver/stored_plan/manifest.h"
#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

class StoredPlan {
 public:
  /// Reads manifest, plan and module; no kernel and no weight.
  static Result<std::shared_ptr<const StoredPlan>> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  /// The module that was compiled, before the passes.
  const Module& module() const { return module_; }
  const std::shared_ptr<const Program>& program() const { return program_; }
  /// plan.json.
  const std::string& text() const { return text_; }

  /// The kernels' machine code for `arch`. Kernels that are absent from it have to be compiled from
  /// their text: an error where the text was written for another kernel library than this
  /// program's.
  Result<MachineCodeByText> machine_code_for(const std::string& arch) const;

 private:
  StoredPlan() = default;

  std::string folder_, text_;
  Manifest manifest_;
  Module module_;
  std::shared_ptr<const Program> program_;
};

/// Is this a plan's folder, whole or damaged?
bool is_plan_folder(const std::string& path);
Result<Manifest> read_manifest_of(const std::string& folder);
/// A file of the folder, if it is what the manifest says.
Result<std::string> read_part(const std::string& folder, const Manifest& manifest,
                              const std::string& path);
/// The module of a folder, whose plan stays unread.
Result<Module> read_stored_module(const std::string& folder, const Manifest& manifest);
/// The tensors that the weights of a folder's plan are made of. `elsewhere`: the file or folder
/// that has them, instead of the files that the manifest names. Null if the plan has none.
Result<std::shared_ptr<const TensorSource>> open_stored_weights(
    const std::string& folder, const Manifest& manifest, const Module& module,
    const std::optional<std::string>& elsewhere);
/// A folder in the plan's with the model's own files (tokenizer, chat template, pooling), each of
/// which was compared with its hash.
Result<std::string> stored_model_files(const std::string& folder);

}  // namespace sinter
