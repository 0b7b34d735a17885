#include "frontends/load_model.h"

#include <llvm/ADT/StringExtras.h>

#include <cstring>
#include <filesystem>

#include "frontends/check_tensors.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/other_formats.h"
#include "frontends/files/random_tensors.h"
#include "frontends/files/shards.h"
#include "frontends/files/tied_tensors.h"
#include "frontends/gguf/gguf_config.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/huggingface/generation.h"
#include "frontends/huggingface/quantization.h"
#include "frontends/llama2c_spec.h"
#include "frontends/model/build_model.h"
#include "frontends/model/spec_json.h"
#include "frontends/quantized/code_tensors.h"
#include "ir/text.h"

namespace sinter {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "config.json";
constexpr const char* kModuleName = "model.sir";
constexpr const char* kAdapterConfigName = "adapter_config.json";
constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxModuleBytes = uint64_t{256} << 20;

/// The name of a model at `path`: the last part of the path, without the ending of a file.
std::string model_name(const fs::path& path) {
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  std::error_code error;
  const bool folder = fs::is_directory(whole, error);
  const std::string name = (folder ? whole.filename() : whole.stem()).string();
  return name.empty() || name == "." || name == ".." ? "model" : printable(name);
}

/// The weights of a model.
struct Weights {
  std::shared_ptr<const TensorSource> tensors;                   // null: there are none
  std::string place = {};                                        // the first file, for messages
  std::optional<std::pair<std::string, std::string>> tied = {};  // Model::tied_tensors
  CodedTensors coded = {};                                       // WeightNames::coded
};

/// Opens the weights of the options, else those in the model's folder. None are opened if stand-ins
/// take their place. `folder` is empty for a model that is a file; `quantization`: how the files
/// have quantized weights, null if they have none.
Result<Weights> open_weights_of(const std::string& folder, const LoadOptions& options,
                                const Quantization* quantization = nullptr) {
  if (options.random_weights) return Weights{};
  if (!options.weights && (folder.empty() || !has_weights(folder))) return Weights{};
  SINTER_LET(tensors, open_weights(options.weights.value_or(folder)));
  const std::string place = tensors->files().front();
  if (!quantization) return Weights{std::move(tensors), place};
  SINTER_LET(codes, CodeTensors::open(std::move(tensors), *quantization));
  return Weights{codes, place, {}, codes->weights()};
}

/// The quantized weights of a model whose files are not read, as its config describes them.
Result<CodedTensors> coded_by_config(const ModelSpec& spec, const WeightNames& names,
                                     const Quantization& quantization) {
  constexpr std::string_view kEnd = ".weight";
  CodedTensors coded;
  for (const LogicalWeight& weight : logical_weights(spec)) {
    for (const auto& [tensor, type] : source_tensors(weight, names, spec.dtype)) {
      if (type.rank() < 2 || !tensor.ends_with(kEnd)) continue;
      SINTER_LET(scheme, quantization.scheme_of(
                             std::string_view(tensor).substr(0, tensor.size() - kEnd.size())));
      if (!scheme) continue;
      coded[tensor] = codes_of_dims(type.dims);
      coded[tensor].scheme = *scheme;
    }
  }
  return coded;
}

/// Where "{p}" of a layout is found: the prefix under which the embedding table exists.
Result<std::string> find_prefix(const WeightMap& map, const TensorSource& source,
                                const CodedTensors& coded, const std::string& place) {
  const LogicalWeight embed{"embed.weight", "embed.weight", 0, {}};
  const std::vector<std::string> names = source.names();
  std::string tried;
  for (const std::string& prefix : map.prefixes) {
    const std::string tensor = tensor_name(embed, {map, prefix});
    if (source.find(tensor) || coded.contains(tensor)) return prefix;
    if (llvm::is_contained(names, tensor)) return tl::make_unexpected(source.missing(tensor));
    tried += fmt::format("{}{}", tried.empty() ? "" : " nor ", tensor);
  }
  return fail(fmt::format("the weights hold no embedding table, neither {}", tried), place,
              "give weights that belong to the config's model_type");
}

/// Spells the layout's tensors as these weights do.
void adopt_spellings(WeightMap& map, const TensorSource& source) {
  const std::vector<std::string> names = source.names();
  for (const auto& [usual, old] : map.spellings) {
    if (llvm::none_of(
            names, [&, &ending = old](const std::string& name) { return name.ends_with(ending); }))
      continue;
    for (auto& [weight, rule] : map.rules)
      if (rule.tensor.ends_with(usual))
        rule.tensor.replace(rule.tensor.size() - usual.size(), usual.size(), old);
  }
}

/// Takes the layout's other rules for tensors that these weights name so.
void adopt_other_rules(WeightMap& map, const TensorSource& source) {
  const std::vector<std::string> names = source.names();
  for (auto& [weight, rule] : map.others) {
    const std::string_view end =
        std::string_view(rule.tensor).substr(rule.tensor.find("{i}") + std::strlen("{i}"));
    if (llvm::any_of(names, [&](const std::string& name) { return name.ends_with(end); }))
      map.rules[weight] = std::move(rule);
  }
  map.others.clear();
}

/// Frequencies that depend on the length of the text are chosen for the longest that is wanted.
void choose_context(ModelSpec& spec, int64_t context) {
  const bool two_sets = spec.rope && spec.rope->scaling == RopeScaling::longrope;
  if (two_sets && context <= spec.rope->original_max_positions)
    spec.max_positions = std::min(spec.max_positions, spec.rope->original_max_positions);
}

std::string head_name(const WeightNames& names) {
  return tensor_name({"lm_head.weight", "lm_head.weight", 0, {}}, names);
}

/// The output projection of a tied model, where the files hold one, must be the embedding table.
Status compare_head(const WeightNames& names, Weights& weights) {
  const std::string head = head_name(names);
  const std::string table = tensor_name({"embed.weight", "embed.weight", 0, {}}, names);
  if (!weights.tensors->find(head)) return {};
  if (names.coded.contains(table))
    return fail(fmt::format("tensor {} is not quantized and {} is, but the config says that they "
                            "are one",
                            printable(head), printable(table)),
                weights.place,
                fmt::format("say tie_word_embeddings: false, or remove {}", printable(head)));
  weights.tied.emplace(table, head);
  weights.tensors = compare_tied(std::move(weights.tensors), weights.tied->first,
                                 weights.tied->second, weights.place);
  return {};
}

/// Whether the output projection is the embedding table, as config and weights say it together.
Status settle_tied(HfModel& model, const WeightNames& names, const Weights& weights) {
  if (model.spec.encoder) return {};
  const std::string head = head_name(names);
  if (weights.tensors->find(head) || names.coded.contains(head)) return {};
  if (model.tied_said && !model.spec.tied)
    return fail(fmt::format("no tensor named \"{}\", and the config says that the output "
                            "projection is not the embedding table",
                            head),
                weights.place, "the upload is incomplete, or tie_word_embeddings is wrong");
  model.spec.tied = true;  // many files leave the key out
  return {};
}

/// A file beside config.json that says how weights are quantized.
struct QuantizeConfig {
  const char* file;
  std::string_view member;  // that describes them; empty: the whole
  std::string_view method;  // where the file names none
};
constexpr QuantizeConfig kQuantizeConfigs[] = {
    {"quantize_config.json", "", "gptq"}, {"hf_quant_config.json", "quantization", "modelopt"}};

/// How the weights are quantized, where config.json does not say it.
Status read_quantize_config(const fs::path& folder, const LoadOptions& options, HfModel& model) {
  for (const QuantizeConfig& config : kQuantizeConfigs) {
    const fs::path path = folder / config.file;
    if (model.quantization || !path_exists(path)) continue;
    SINTER_LET(document, read_json(path.string(), kMaxConfigBytes));
    const JsonView view = config.member.empty() ? document.view() : document.view()[config.member];
    const IgnoredKeys ignored{options.ignored_keys, options.note};
    SINTER_LET(quantization, read_quantization(document, view, ignored, config.method));
    model.quantization = std::move(quantization);
    model.quantization_text = quantization_text(*view.value(), ignored, config.method);
  }
  return {};
}

Status refuse_adapter(const fs::path& folder) {
  if (!path_exists(folder / kAdapterConfigName)) return {};
  return fail("the folder holds a LoRA adapter, which is not supported",
              (folder / kAdapterConfigName).string(),
              "merge it into its base model (merge_and_unload of peft) and give that");
}

/// Names of the weights, as far as they do not depend on the files.
WeightNames usual_names(WeightMap map) {
  std::string prefix = map.prefixes.empty() ? "" : map.prefixes.front();
  return {std::move(map), std::move(prefix)};
}

Model finished(std::optional<ModelSpec> spec, Module module, Weights weights,
               const std::string& path, const LoadOptions& options) {
  if (options.random_weights)
    weights.tensors =
        std::make_shared<RandomTensorSource>(*options.random_weights, file_tensors(module));
  Model model{std::move(spec), std::move(module), std::move(weights.tensors), path};
  model.tied_tensors = std::move(weights.tied);
  return model;
}

/// The last steps for every kind of model with a spec.
Result<Model> finish(ModelSpec spec, const WeightNames& names, Weights weights,
                     const std::string& path, const LoadOptions& options) {
  if (options.dtype) spec.dtype = *options.dtype;
  choose_context(spec, options.context);
  if (options.streaming) {
    if (!spec.rope)
      return fail("a streaming cache needs rotary positions, the model has learned ones", path,
                  "leave out --kv", ExitCode::usage);
    if (spec.window)
      return fail(fmt::format("a streaming cache for a model with a window of its own, {} tokens",
                              *spec.window),
                  path, "leave out --kv", ExitCode::usage);
    if (options.streaming->rows() > spec.max_positions)
      return fail(fmt::format("a streaming cache of {} rows, the model has {} positions",
                              options.streaming->rows(), spec.max_positions),
                  path, "make the window smaller", ExitCode::usage);
    spec.streaming = options.streaming;
  }
  if (options.sequences < 1 || options.sequences > kMaxSequences)
    return fail(fmt::format("{} sequences", options.sequences), path,
                fmt::format("1 to {} decode together", kMaxSequences), ExitCode::usage);
  spec.sequences = options.sequences;
  if (weights.tensors) {
    SINTER_TRY(refuse_unused_tensors(spec, names, *weights.tensors, weights.place));
    if (spec.tied && !spec.encoder) SINTER_TRY(compare_head(names, weights));
  }
  SINTER_LET(module, build_model(spec, names, weights.tensors.get(), weights.place));
  return finished(std::move(spec), std::move(module), std::move(weights), path, options);
}

/// Finds the names of a model whose weights are open, and loads it.
Result<Model> load_named(HfModel model, Weights weights, const std::string& path,
                         const LoadOptions& options) {
  WeightNames names = usual_names(std::move(model.map));
  if (weights.tensors) {
    names.coded = std::move(weights.coded);
    SINTER_LET(prefix, find_prefix(names.map, *weights.tensors, names.coded, weights.place));
    names.prefix = prefix;
    adopt_spellings(names.map, *weights.tensors);
    adopt_other_rules(names.map, *weights.tensors);
    SINTER_TRY(settle_tied(model, names, weights));
  } else if (model.quantization) {
    SINTER_LET(coded, coded_by_config(model.spec, names, *model.quantization));
    names.coded = std::move(coded);
  }
  return finish(std::move(model.spec), names, std::move(weights), path, options);
}

Result<Model> load_huggingface(const fs::path& folder, const LoadOptions& options) {
  const std::string path = folder.string();
  SINTER_LET(config, read_json((folder / kConfigName).string(), kMaxConfigBytes));
  std::optional<JsonDocument> generation;
  if (path_exists(folder / "generation_config.json")) {
    SINTER_LET(document, read_json((folder / "generation_config.json").string(), kMaxConfigBytes));
    SINTER_TRY(document.view().object());
    generation = std::move(document);
  }
  SINTER_LET(model, read_hf_config(config, generation ? &*generation : nullptr, model_name(folder),
                                   {options.ignored_keys, options.note}));
  SINTER_TRY(read_quantize_config(folder, options, model));
  const Quantization* quantization = model.quantization ? &*model.quantization : nullptr;
  SINTER_LET(weights, open_weights_of(path, options, quantization));
  std::string text = std::move(model.quantization_text);
  SINTER_LET(loaded, load_named(std::move(model), std::move(weights), path, options));
  loaded.unapplied = unapplied_settings((generation ? *generation : config).view());
  loaded.quantization = std::move(text);
  return std::move(loaded);
}

Result<Model> load_llama2c(const std::string& path, const LoadOptions& options) {
  if (options.weights)
    return fail("a llama2.c file holds its own weights", path, "leave out --weights",
                ExitCode::usage);
  SINTER_LET(file, Llama2cFile::open(path));
  SINTER_LET(model, llama2c_spec(file.header(), path, model_name(path)));
  Weights weights;
  if (!options.random_weights) weights = {std::make_shared<Llama2cFile>(std::move(file)), path};
  return finish(std::move(model.spec), usual_names(std::move(model.map)), std::move(weights), path,
                options);
}

Result<Model> load_gguf(const std::string& path, const LoadOptions& options) {
  if (options.weights)
    return fail("a GGUF file holds its own weights", path, "leave out --weights", ExitCode::usage);
  SINTER_LET(tensors, GgufTensors::open(path));
  SINTER_LET(config, gguf_config(*tensors));
  SINTER_LET(model, read_hf_config(config, nullptr, model_name(path),
                                   {options.ignored_keys, options.note}));
  model.map = gguf_weight_map(model.spec, *tensors);
  Weights weights;
  if (!options.random_weights) {
    const std::string note = tensors->quantized_note(options.dtype.value_or(model.spec.dtype));
    if (options.note && !note.empty()) options.note(note);
    weights = {tensors, tensors->files().front(), {}, tensors->coded()};
  }
  return load_named(std::move(model), std::move(weights), path, options);
}

Result<Model> load_spec(const std::string& path, const LoadOptions& options) {
  SINTER_LET(document, read_json(path, kMaxConfigBytes));
  SINTER_LET(spec, read_spec(document));
  SINTER_LET(weights, open_weights_of({}, options));
  return finish(std::move(spec), usual_names(WeightMap::identity()), std::move(weights), path,
                options);
}

/// `folder`: of model.sir and its weights; empty if `path` is the module's file itself.
Result<Model> load_module(const std::string& path, const std::string& folder,
                          const LoadOptions& options) {
  const std::string& origin = folder.empty() ? path : folder;
  if (options.dtype)
    return fail("a module has its own element types", origin,
                "leave out the element type, or write a module of another one", ExitCode::usage);
  SINTER_LET(file, BoundedFile::open(path));
  if (file.size() == 0)
    return fail("the file is empty", path,
                "write a module into it: module @name { entry @f(...) -> (...) { ... } }");
  SINTER_TRY(refuse_impostor(file));
  SINTER_LET(text, read_small_file(path, kMaxModuleBytes));
  SINTER_LET(module, parse_module(text, path));
  SINTER_LET(weights, open_weights_of(folder, options));
  if (weights.tensors) SINTER_TRY(check_tensors(module, *weights.tensors, weights.place));
  return finished(std::nullopt, std::move(module), std::move(weights), origin, options);
}

Result<Model> load_folder(const fs::path& folder, const LoadOptions& options) {
  const bool has_config = path_exists(folder / kConfigName),
             has_module = path_exists(folder / kModuleName);
  if (has_config && has_module)
    return fail(fmt::format("the folder has both {} and {}, which describe a model each",
                            kConfigName, kModuleName),
                folder.string(), "keep one of them");
  SINTER_TRY(refuse_adapter(folder));
  if (has_module) return load_module((folder / kModuleName).string(), folder.string(), options);
  if (has_config) return load_huggingface(folder, options);
  return refuse_no_model(folder.string());
}

/// Only a config of Hugging Face, and metadata of GGUF, have keys that may be ignored.
Status refuse_ignored_keys(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  const bool has_config =
      fs::is_directory(path, error) && path_exists(fs::path(path) / kConfigName);
  if (options.ignored_keys.empty() || has_config || gguf_model(path)) return {};
  return fail(fmt::format("no config.json, whose key {} is to be ignored",
                          printable(options.ignored_keys.front())),
              path, "leave out --ignore-key", ExitCode::usage);
}

}  // namespace

tl::unexpected<Error> refuse_no_model(const std::string& folder) {
  if (const std::string other = other_weights(folder); !other.empty())
    return fail(
        fmt::format("the folder has no {}, and its weights, {}, are not read", kConfigName, other),
        folder, "download config.json, tokenizer and safetensors of the model, too");
  return fail(fmt::format("the folder has neither {} nor {}", kConfigName, kModuleName), folder,
              folder_hint(folder));
}

bool holds_model(const std::string& folder) {
  return path_exists(fs::path(folder) / kConfigName) ||
         path_exists(fs::path(folder) / kModuleName) || gguf_model(folder);
}

bool is_module_path(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path_exists(fs::path(path) / kModuleName);
  return fs::path(path).extension() == ".sir";
}

int64_t text_tokens(size_t prompt, int64_t more) {
  return static_cast<int64_t>(prompt) + std::max<int64_t>(more - 1, 0);
}

std::string context_note(const Model& model, int64_t context) {
  if (!model.spec || !model.spec->rope || model.spec->rope->scaling != RopeScaling::longrope ||
      context <= model.spec->rope->original_max_positions)
    return {};
  return fmt::format("a text of {} tokens exceeds {}: long factors for all of them", context,
                     model.spec->rope->original_max_positions);
}

std::string missing_model_hint(const std::string& path) {
  const size_t slash = path.find('/');
  const auto is_plain = [](std::string_view part) {
    return !part.empty() && part[0] != '.' && part[0] != '~' && llvm::all_of(part, [](char c) {
      return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.';
    });
  };
  const std::string ending = fs::path(path).extension().string();
  if (slash == std::string::npos || ending == ".sir" || ending == ".json" || ending == ".bin" ||
      ending == ".gguf" || !is_plain(path.substr(0, slash)) || !is_plain(path.substr(slash + 1)))
    return "check the path";
  return fmt::format(
      "check the path, or download the model from the Hugging Face hub: `hf download {} "
      "--local-dir {}`",
      path, path.substr(slash + 1));
}

Result<Model> load_model(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  SINTER_TRY(refuse_other_format(path));
  if (!path_exists(path)) return fail("no such file or folder", path, missing_model_hint(path));
  SINTER_TRY(refuse_ignored_keys(path, options));
  if (const auto file = gguf_model(path)) return load_gguf(*file, options);
  if (fs::is_directory(path, error)) return load_folder(path, options);
  if (is_module_path(path)) return load_module(path, {}, options);
  SINTER_LET(file, BoundedFile::open(path));
  SINTER_TRY(refuse_impostor(file));
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".bin") return load_llama2c(path, options);
  if (ending == ".json") return load_spec(path, options);
  return fail(
      fmt::format("a file that ends in '{}' is no model", printable(ending)), path,
      "give a Hugging Face folder, a .gguf, a llama2.c .bin, a spec .json, or a module .sir "
      "or its folder");
}

}  // namespace sinter
