#include "driver/stored_plan/stored_plan.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/stored_plan/fingerprint.h"
#include "driver/stored_plan/signature.h"
#include "driver/text_table.h"
#include "frontends/check_tensors.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/llama2c.h"
#include "frontends/files/random_tensors.h"
#include "frontends/files/shards.h"
#include "frontends/files/tied_tensors.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/gguf/gguf_tensors.h"
#include "frontends/huggingface/quantization.h"
#include "frontends/model/build_model.h"
#include "frontends/quantized/code_tensors.h"
#include "ir/characters.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "runtime/cuda/kernel_resources.h"
#include "runtime/executable.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxPartBytes = uint64_t{1} << 30;
constexpr const char* kCompileAgain = "compile the model again";

/// Tensors in a plan's folder, each compared with its hash when it is read.
class HashedTensors final : public TensorSource {
 public:
  HashedTensors(std::unique_ptr<TensorSource> source, std::map<std::string, std::string> hashes,
                std::string place)
      : source_(std::move(source)), hashes_(std::move(hashes)), place_(std::move(place)) {}

  std::optional<TensorType> find(std::string_view name) const override {
    return source_->find(name);
  }
  std::vector<std::string> names() const override { return source_->names(); }
  std::vector<std::string> files() const override { return source_->files(); }
  Error missing(std::string_view name) const override { return source_->missing(name); }
  Status read(std::string_view name, std::span<std::byte> out) const override {
    SINTER_TRY(source_->read(name, out));
    const auto expected = hashes_.find(std::string(name));
    const std::string actual =
        content_hash({reinterpret_cast<const char*>(out.data()), out.size()});
    if (expected != hashes_.end() && expected->second == actual) return {};
    return fail(fmt::format("tensor {} has hash {}, the plan says {}", printable(name), actual,
                            expected == hashes_.end() ? "none" : expected->second),
                place_, std::string("the plan's weights are damaged: ") + kCompileAgain);
  }

 private:
  std::unique_ptr<TensorSource> source_;
  std::map<std::string, std::string> hashes_;
  std::string place_;
};

Result<std::shared_ptr<const FileTensors>> open_tensor_files(
    const std::vector<std::string>& paths) {
  const fs::path first(paths.front());
  const std::string name = first.filename().string();
  if (name.ends_with(".index.json")) {
    SINTER_LET(shards, ShardedWeights::open(first.parent_path().string(), name));
    return std::make_shared<ShardedWeights>(std::move(shards));
  }
  SINTER_LET(file, open_safetensors(paths.front()));
  return std::make_shared<TensorFile>(std::move(file));
}

/// The source of tensors that these files are, as load_model() opened them. `quantization`: how
/// they have quantized weights (WeightFiles); `place`: what says so.
Result<std::shared_ptr<const TensorSource>> open_files(const std::vector<std::string>& paths,
                                                       const std::string& quantization,
                                                       const std::string& place) {
  if (fs::path(paths.front()).extension() == ".bin") {
    SINTER_LET(file, Llama2cFile::open(paths.front()));
    return std::make_shared<Llama2cFile>(std::move(file));
  }
  if (gguf_model(paths.front())) return GgufTensors::open(paths.front());
  SINTER_LET(files, open_tensor_files(paths));
  if (quantization.empty()) return files;
  SINTER_LET(scheme, read_quantization_text(quantization, place));
  return CodeTensors::open(std::move(files), scheme);
}

/// The files are those that the plan was compiled for.
Status check_fingerprints(const WeightFiles& weights, const std::vector<std::string>& paths,
                          const std::string& folder) {
  const std::string hint =
      "give the weights that the plan was compiled for with --weights, or compile the model again";
  if (paths.size() != weights.fingerprints.size())
    return fail(
        fmt::format("the weights are {}, the plan was compiled for {}",
                    counted(paths.size(), "file"), counted(weights.fingerprints.size(), "file")),
        paths.empty() ? folder : paths.front(), hint);
  for (size_t i = 0; i < paths.size(); ++i) {
    SINTER_LET(actual, sampled_fingerprint(paths[i]));
    if (actual != weights.fingerprints[i])
      return fail(fmt::format("the file's fingerprint is {}, that of the plan's weights {}", actual,
                              weights.fingerprints[i]),
                  paths[i], hint);
  }
  return {};
}

/// The plan has the entries that were asked for, all of its module's if none were.
Status check_entries(const Program& program, const Module& module,
                     const std::vector<std::string>& wanted, const std::string& place) {
  std::set<std::string> expected(wanted.begin(), wanted.end()), actual;
  if (wanted.empty())
    for (const Entry& entry : module.entries) expected.insert(entry.name);
  for (const EntryPlan& entry : program.entries) actual.insert(entry.name);
  if (expected == actual) return {};
  return fail(fmt::format("the plan has the entries {}, {} says {}",
                          printable(fmt::format("{}", fmt::join(actual, ", ")), 200), kManifestFile,
                          printable(fmt::format("{}", fmt::join(expected, ", ")), 200)),
              place, kCompileAgain);
}

/// "sm_8" of "sm_86".
std::string_view major_of(std::string_view arch) { return arch.substr(0, arch.size() - 1); }

/// Whether machine code for `made` runs on a device of `arch` as code for `arch` would: of the same
/// major compute capability, no newer, and with the same abilities. Code for a name that ends in a
/// letter runs on that architecture alone.
bool runs_on(const std::string& made, const std::string& arch) {
  if (made == arch) return true;
  const auto from = find_device(made), to = find_device(arch);
  return from && to && is_digit(made.back()) && is_digit(arch.back()) &&
         major_of(made) == major_of(arch) && made < arch &&
         kernel_macros(from->has) == kernel_macros(to->has);
}

/// The code takes the parameters and the threads that the plan has for the kernel. Code that does
/// not say what it takes is left to the driver.
Status check_machine_code(const Kernel& kernel, std::string_view code, const std::string& folder) {
  const auto takes = kernel_resources(code, kernel.name);
  if (!takes) return {};
  const int64_t parameters = parameter_bytes(
      kernel.group.inputs.size() + kernel.group.outputs.size() + kernel.symbols.size(),
      kernel.tensor_maps.size());
  if (takes->parameter_bytes == parameters && takes->most_threads == kernel.launch.threads)
    return {};
  return fail(fmt::format("the machine code of {} takes {} bytes of parameters and {} threads, the "
                          "plan has {} and {}",
                          kernel.name, takes->parameter_bytes, takes->most_threads, parameters,
                          kernel.launch.threads),
              folder, kCompileAgain);
}

}  // namespace

bool is_plan_folder(const std::string& path) {
  const fs::path folder(path);
  return (path_exists(folder / "plan.json") || path_exists(folder / kManifestFile)) &&
         !path_exists(folder / "config.json");
}

Result<Manifest> read_manifest_of(const std::string& folder) {
  const std::string path = (fs::path(folder) / kManifestFile).string();
  if (!path_exists(path))
    return fail(fmt::format("the plan's folder has no {}", kManifestFile), folder, kCompileAgain);
  SINTER_LET(text, read_small_file(path, kMaxPartBytes));
  return read_manifest(text, path);
}

Result<std::string> read_part(const std::string& folder, const Manifest& manifest,
                              const std::string& path) {
  const std::string file = (fs::path(folder) / path).string();
  const auto expected = manifest.files.find(path);
  if (expected == manifest.files.end())
    return fail(fmt::format("{} does not name this file", kManifestFile), file, kCompileAgain);
  SINTER_LET(text, read_small_file(file, kMaxPartBytes));
  if (const std::string actual = content_hash(text); actual != expected->second)
    return fail(fmt::format("the file's hash is {}, the plan says {}", actual, expected->second),
                file, std::string("the folder is damaged: ") + kCompileAgain);
  return std::move(text);
}

Result<Module> read_stored_module(const std::string& folder, const Manifest& manifest) {
  SINTER_LET(text, read_part(folder, manifest, manifest.module));
  return parse_module(text, (fs::path(folder) / manifest.module).string());
}

Result<std::string> stored_model_files(const std::string& folder) {
  SINTER_LET(manifest, read_manifest_of(folder));
  const std::string below = std::string(kModelFiles) + "/";
  for (const auto& [path, hash] : manifest.files)
    if (path.starts_with(below)) SINTER_TRY(read_part(folder, manifest, path));
  return (fs::path(folder) / kModelFiles).string();
}

Result<std::shared_ptr<const StoredPlan>> StoredPlan::open(const std::string& folder) {
  const auto plan = std::shared_ptr<StoredPlan>(new StoredPlan);
  plan->folder_ = folder;
  SINTER_LET(manifest, read_manifest_of(folder));
  plan->manifest_ = std::move(manifest);
  SINTER_LET(text, read_part(folder, plan->manifest_, "plan.json"));
  plan->text_ = std::move(text);
  const std::string file = (fs::path(folder) / "plan.json").string();
  SINTER_LET(program, read_plan(plan->text_, file));
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    SINTER_LET(source, read_part(folder, plan->manifest_, kernel_path(program.kernels[k])));
    SINTER_TRY(attach_source(program, k, std::move(source)));
  }
  SINTER_LET(module, read_stored_module(folder, plan->manifest_));
  plan->module_ = std::move(module);
  SINTER_TRY(check_signature(program, plan->module_, "its module", file));
  const CompileOptions& compiled = plan->manifest_.compile;
  SINTER_TRY(check_entries(program, plan->module_, compiled.entries, file));
  if (program.target != compiled.target || program.numerics != compiled.fusion.numerics)
    return fail(fmt::format("the plan is for {} in {} numerics, {} says {} and {}",
                            printable(program.target), to_string(program.numerics), kManifestFile,
                            printable(compiled.target), to_string(compiled.fusion.numerics)),
                file, kCompileAgain);
  if (const auto& spec = plan->manifest_.spec) {
    SINTER_LET(model, build_model(*spec, {WeightMap::identity(), {}}, nullptr, file));
    for (Symbol& symbol : model.symbols) {
      // A plan may have fewer rows of caches than the spec's module.
      const int same =
          symbol.name == "R" || symbol.name == "K" ? find_symbol(program.symbols, symbol.name) : -1;
      if (same >= 0)
        symbol.high = std::min(symbol.high, program.symbols[static_cast<size_t>(same)].high);
    }
    SINTER_TRY(check_signature(program, model, fmt::format("the spec of {}", kManifestFile), file));
  }
  plan->program_ = std::make_shared<const Program>(std::move(program));
  return plan;
}

Result<MachineCodeByText> StoredPlan::machine_code_for(const std::string& arch) const {
  MachineCodeByText result;
  const auto made = llvm::find_if(manifest_.machine_code,
                                  [&](const auto& code) { return runs_on(code.first, arch); });
  if (made != manifest_.machine_code.end())
    for (const auto& [hash, path] : made->second) {
      SINTER_LET(code, read_part(folder_, manifest_, path));
      result[hash] = std::move(code);
    }
  for (const Kernel& kernel : program_->kernels) {
    if (const auto code = result.find(kernel.source_hash); code != result.end()) {
      SINTER_TRY(check_machine_code(kernel, code->second, folder_));
      continue;
    }
    if (manifest_.kernel_library != kernel_library_hash())
      return fail(fmt::format("the plan has no machine code of {} for {}, and its CUDA text is for "
                              "the kernel library of another sinter, {} (this is {})",
                              kernel.name, arch, printable(manifest_.writer), SINTER_VERSION),
                  folder_, fmt::format("compile the model with --arch {}", arch));
  }
  return result;
}

Result<std::shared_ptr<const TensorSource>> open_stored_weights(
    const std::string& folder, const Manifest& manifest, const Module& module,
    const std::optional<std::string>& elsewhere) {
  if (const auto* seeded = std::get_if<SeededWeights>(&manifest.weights))
    return std::make_shared<RandomTensorSource>(seeded->seed, file_tensors(module));
  if (const auto* embedded = std::get_if<EmbeddedWeights>(&manifest.weights)) {
    if (elsewhere)
      return fail("the plan has its weights", folder, "leave out --weights", ExitCode::usage);
    if (file_tensors(module).empty()) return std::shared_ptr<const TensorSource>();
    const std::string place = (fs::path(folder) / kWeightFiles).string();
    SINTER_LET(source, open_weights(place));
    return std::make_shared<HashedTensors>(std::move(source), embedded->hashes, place);
  }
  const auto* files = std::get_if<WeightFiles>(&manifest.weights);
  std::vector<std::string> paths;
  if (elsewhere) {
    SINTER_LET(source, open_weights(*elsewhere));
    if (!files) {
      SINTER_TRY(check_tensors(module, *source, *elsewhere));
      return std::shared_ptr<const TensorSource>(std::move(source));
    }
    paths = source->files();
  } else if (files) {
    paths = files->paths;
    for (const std::string& path : paths)
      if (!path_exists(path))
        return fail("the file of the plan's weights is not there", path,
                    "give the file or folder that has them now with --weights");
  } else {
    return std::shared_ptr<const TensorSource>();
  }
  SINTER_TRY(check_fingerprints(*files, paths, folder));
  SINTER_LET(source, open_files(paths, files->quantization, folder));
  if (!files->tied) return source;
  return compare_tied(std::move(source), files->tied->first, files->tied->second, paths.front());
}

}  // namespace sinter
