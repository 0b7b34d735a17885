#include "driver/opened_model.h"

#include <filesystem>

#include "driver/shell_word.h"
#include "driver/stored_plan/embed_weights.h"
#include "driver/stored_plan/whole_plan.h"
#include "frontends/check_tensors.h"
#include "frontends/files/random_tensors.h"
#include "kernels/check_forms.h"
#include "runtime/cuda/gemm_record.h"

namespace sinter {
namespace {

Status refuse_options(const std::string& path, const OpenOptions& options, bool embedded) {
  const auto refused = [&](const char* what, const char* hint) {
    return fail(what, path, hint, ExitCode::usage);
  };
  if (options.dtype)
    return refused("a plan computes in the element type that it was compiled for",
                   "leave out the element type, or compile the model with it");
  if (options.streaming)
    return refused("a plan has the cache that it was compiled with",
                   "leave out --kv, or compile the model with it");
  if (!options.ignored_keys.empty())
    return refused("a plan has no config whose keys could be ignored", "leave out --ignore-key");
  if (options.random_weights && (options.weights || embedded))
    return refused("the plan has its weights", "leave out --random-weights");
  return {};
}

/// Forms of the record in the folder.
Result<TunedForms> stored_forms(const std::string& folder, const Manifest& manifest) {
  if (!manifest.files.contains(kRecordFile)) return TunedForms();
  const std::string path = (std::filesystem::path(folder) / kRecordFile).string();
  SINTER_LET(text, read_part(folder, manifest, kRecordFile));
  SINTER_LET(record, GemmRecord::parse(text, path));
  SINTER_TRY(check_forms(record.forms, path));
  return std::move(record.forms);
}

Result<OpenedModel> open_plan(const std::string& path, const OpenOptions& options) {
  std::shared_ptr<const StoredPlan> plan;
  Manifest manifest;
  Module module;
  if (options.recompile) {
    SINTER_LET(read, read_manifest_of(path));
    manifest = std::move(read);
    SINTER_LET(stored, read_stored_module(path, manifest));
    module = std::move(stored);
  } else {
    SINTER_LET(opened, StoredPlan::open(path));
    plan = std::move(opened);
    manifest = plan->manifest();
    module = plan->module();
  }
  const bool embedded = std::holds_alternative<EmbeddedWeights>(manifest.weights);
  SINTER_TRY(refuse_options(path, options, embedded));
  std::shared_ptr<const TensorSource> tensors;
  if (options.random_weights) {
    tensors = std::make_shared<RandomTensorSource>(*options.random_weights, file_tensors(module));
  } else {
    SINTER_LET(opened, open_stored_weights(path, manifest, module, options.weights));
    tensors = std::move(opened);
  }
  SINTER_LET(forms, stored_forms(path, manifest));
  const std::vector<std::string>& entries = manifest.compile.entries;
  if (!entries.empty())
    std::erase_if(module.entries,
                  [&](const Entry& entry) { return !llvm::is_contained(entries, entry.name); });
  OpenedModel model(Model{manifest.spec, std::move(module), std::move(tensors), path});
  model.unapplied = manifest.unapplied;
  model.plan = std::move(plan);
  model.compiled_with = manifest.compile;
  model.compiled_with->forms = std::move(forms);
  model.embedded = embedded;
  return model;
}

}  // namespace

Result<OpenedModel> open_model(const std::string& path, const OpenOptions& options) {
  if (is_plan_folder(path)) return read_whole_plan(path, [&] { return open_plan(path, options); });
  if (options.recompile)
    return fail("only a plan is compiled again", path, "leave out --recompile", ExitCode::usage);
  SINTER_LET(model, load_model(path, options));
  return OpenedModel(std::move(model));
}

Result<bool> is_module(const std::string& path) {
  if (!is_plan_folder(path)) return is_module_path(path);
  SINTER_LET(manifest, read_manifest_of(path));
  return !manifest.spec.has_value();
}

CompileOptions compile_options(const OpenedModel& model, const CompileOptions& wanted) {
  CompileOptions options = model.compiled_with.value_or(wanted);
  options.sizes = wanted.sizes;
  return options;
}

Result<Module> frozen_module(const OpenedModel& model, const CompileOptions& wanted,
                             const PassObserver& observer) {
  const CompileOptions options = compile_options(model, wanted);
  SINTER_LET(frozen, freeze(model.module, options.entries, observer, pass_options(options)));
  if (!model.embedded) return std::move(frozen);
  embed_weights(frozen);
  if (observer) observer("embed_weights", frozen);
  return std::move(frozen);
}

Result<Compiled> compile_opened(const OpenedModel& model, Module frozen,
                                const CompileOptions& options) {
  auto compiled = compile(std::move(frozen), options);
  if (!compiled && compiled.error().code == ExitCode::check_failed) {
    std::string& hint = compiled.error().hint;
    if (const size_t at = hint.find(kModelWord); at != hint.npos)
      hint.replace(at, kModelWord.size(), shell_word(model.origin));
  }
  if (!compiled && model.compiled_with && compiled.error().code == ExitCode::usage) {
    compiled.error().where = (std::filesystem::path(model.origin) / kManifestFile).string();
    compiled.error().hint = "compile the model again";
    compiled.error().code = ExitCode::bad_input;
  }
  return compiled;
}

Result<std::string> stored_record(const std::string& path) {
  if (!is_plan_folder(path)) return std::string();
  return read_whole_plan(path, [&]() -> Result<std::string> {
    SINTER_LET(manifest, read_manifest_of(path));
    if (!manifest.files.contains(kRecordFile)) return std::string();
    SINTER_TRY(read_part(path, manifest, kRecordFile));
    return (std::filesystem::path(path) / kRecordFile).string();
  });
}

}  // namespace sinter
