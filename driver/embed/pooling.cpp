#include "driver/embed/pooling.h"

#include <algorithm>
#include <filesystem>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/gguf/gguf_metadata.h"
#include "frontends/gguf/gguf_path.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

/// "Pooling" of "sentence_transformers.models.Pooling".
std::string class_name(const std::string& type) {
  return type.substr(type.rfind('.') == std::string::npos ? 0 : type.rfind('.') + 1);
}

tl::unexpected<Error> unknown_key(const JsonView& view, std::string_view what) {
  return view.mismatch(fmt::format("no such key in {}", what),
                       "remove the key if it does not change the results");
}

/// The ways of "pooling_mode": a name, or a list of names.
Status read_modes(const JsonView& view, std::vector<std::string>& modes) {
  const JsonValue::Array* list = view.value()->array();
  for (size_t i = 0; i < (list ? list->size() : 1); ++i) {
    SINTER_LET(mode, (list ? view[i] : view).string());
    modes.push_back(mode);
  }
  return {};
}

Status read_pooling(Pooling& pooling, const fs::path& path) {
  SINTER_LET(document, read_json(path.string()));
  const JsonView root = document.view();
  SINTER_LET(members, root.object());
  std::vector<std::string> modes, older;
  for (const JsonMember& member : *members) {
    const JsonView view = root.at(member);
    if (member.key == "pooling_mode") {
      SINTER_TRY(read_modes(view, modes));
    } else if (member.key.starts_with("pooling_mode_")) {
      SINTER_LET(on, view.boolean_or(false));
      if (on) older.push_back(member.key.substr(std::string_view("pooling_mode_").size()));
    } else if (member.key == "include_prompt") {
      SINTER_LET(pools, view.boolean_or(true));
      pooling.pools_prompt = pools;
    } else if (member.key != "word_embedding_dimension" && member.key != "embedding_dimension") {
      return unknown_key(view, "a pooling module");
    }
  }
  if (!root["pooling_mode"].value()) modes = older;
  if (modes.empty()) modes = {"mean"};
  if (modes.size() != 1)
    return root.fail(fmt::format("{} ways of pooling", modes.size()), "exactly one is supported");
  if (modes[0] == "mean" || modes[0] == "mean_tokens")
    pooling.kind = PoolingKind::mean;
  else if (modes[0] == "cls" || modes[0] == "cls_token")
    pooling.kind = PoolingKind::cls;
  else
    return root.fail(fmt::format("pooling by {} is not supported", printable(modes[0])),
                     "supported: mean, cls");
  return {};
}

/// The folder of a module, which lies inside the model's.
Result<fs::path> module_folder(const fs::path& folder, const JsonView& view) {
  SINTER_LET(name, view.string_or(""));
  const fs::path path(name);
  if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
    return view.fail(fmt::format("'{}' leads out of the model's folder", printable(name)),
                     "name a folder inside it");
  return folder / path;
}

/// The names that the settings of a Transformer module have had; the first file counts.
constexpr const char* kTransformerConfigs[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

/// A key of these settings and what it may be; other values change the results.
struct HarmlessSetting {
  std::string_view key;
  std::string_view text;  // empty: null, false or nothing
};
constexpr HarmlessSetting kHarmless[] = {
    {"transformer_task", "feature-extraction"},
    {"module_output_name", "token_embeddings"},
    {"do_lower_case", ""},
    {"processing_kwargs", ""},
    {"query_length", ""},
    {"document_length", ""},
    {"query_expansion", ""},
    {"tokenizer_name_or_path", ""},
    {"model_args", ""},
    {"model_kwargs", ""},
    {"tokenizer_args", ""},
    {"processor_kwargs", ""},
    {"config_args", ""},
    {"config_kwargs", ""},
};

bool is_harmless(const JsonView& view, std::string_view text) {
  if (!view.present()) return true;
  const JsonValue& value = *view.value();
  if (!text.empty()) return value.string() && *value.string() == text;
  // Code of the folder is never run.
  if (const JsonValue::Object* members = value.object())
    return members->empty() ||
           (members->size() == 1 && members->front().key == "trust_remote_code");
  return value.boolean() && !*value.boolean();
}

/// Each text goes to the model as it is: not as a message of a conversation.
bool is_plain_text(const JsonView& modality) {
  const JsonValue::Object* members = modality.value()->object();
  const JsonView text = modality["text"];
  const auto is = [&](std::string_view key, std::string_view expected) {
    return !text[key].present() || is_harmless(text[key], expected);
  };
  return members && members->size() == 1 && text.present() && is("method", "forward") &&
         is("method_output_name", "last_hidden_state");
}

Status read_transformer(Pooling& pooling, const fs::path& folder, const fs::path& root) {
  for (const char* name : kTransformerConfigs) {
    if (!path_exists(folder / name)) continue;
    SINTER_LET(document, read_json((folder / name).string()));
    SINTER_LET(members, document.view().object());
    if (members->empty()) continue;
    for (const JsonMember& member : *members) {
      const JsonView view = document.view()[member.key];
      if (member.key == "max_seq_length") {
        if (!view.present()) continue;
        SINTER_LET(count, view.integer(1));
        pooling.max_tokens = count;
      } else if (member.key == "modality_config") {
        if (view.present() && !is_plain_text(view))
          return view.mismatch("text alone, and its last hidden state");
      } else if (member.key != "unpad_inputs") {
        const auto* row = std::find_if(std::begin(kHarmless), std::end(kHarmless),
                                       [&](const auto& one) { return one.key == member.key; });
        if (row == std::end(kHarmless)) return unknown_key(view, "a Transformer module");
        if (!is_harmless(view, row->text))
          return view.mismatch(row->text.empty() ? "nothing here" : fmt::format("{}", row->text),
                               member.key == "do_lower_case"
                                   ? "the tokenizer should say so"
                                   : "remove the key if it does not change the results");
      }
    }
    break;
  }
  const fs::path tokenizer = root / "tokenizer_config.json";
  if (pooling.max_tokens || !path_exists(tokenizer)) return {};
  SINTER_LET(config, read_json(tokenizer.string()));
  const JsonView most = config.view()["model_max_length"];
  if (const int64_t* count = most.present() ? most.value()->integer() : nullptr;
      count && *count > 0)
    pooling.max_tokens = *count;
  return {};
}

Status read_normalize(Pooling& pooling, const fs::path& path) {
  pooling.normalize = true;
  if (!path_exists(path)) return {};
  SINTER_LET(document, read_json(path.string()));
  for (const char* key : {"module_input_name", "module_output_name"}) {
    const JsonView view = document.view()[key];
    if (!is_harmless(view, "sentence_embedding")) return view.mismatch("sentence_embedding");
  }
  return {};
}

}  // namespace

std::string_view to_string(PoolingKind kind) { return kind == PoolingKind::mean ? "mean" : "cls"; }

std::vector<std::string> pooling_files(const std::string& folder) {
  constexpr const char* kModules = "modules.json";
  const fs::path root(folder);
  std::vector<std::string> files = {kModules, kPromptsFile};
  if (!path_exists(root / kModules)) return files;
  const auto document = read_json((root / kModules).string());
  const auto modules = document ? document->view().array() : Result<const JsonValue::Array*>();
  if (!modules || !*modules) return files;  // its reader says what is wrong
  for (size_t i = 0; i < (*modules)->size(); ++i) {
    const auto place = module_folder({}, document->view()[i]["path"]);
    if (!place) continue;
    for (const char* name : kTransformerConfigs) files.push_back((*place / name).string());
    if (!place->empty()) files.push_back((*place / "config.json").string());
  }
  return files;
}

namespace {

/// The pooling that a GGUF file names; 0 is no pooling, and the default is taken. It does not say
/// whether vectors have the length 1.
Result<Pooling> gguf_pooling(const std::string& path) {
  SINTER_LET(file, GgufFile::open(path));
  const GgufMetadata metadata(file, "bert");
  constexpr int64_t kMean = 1, kCls = 2;
  SINTER_LET(kind, metadata.integer_or("pooling_type", kMean));
  if (kind != 0 && kind != kMean && kind != kCls)
    return metadata.refuse("pooling_type", "expected 1 (mean) or 2 (the first token)");
  Pooling pooling;
  if (kind == kCls) pooling.kind = PoolingKind::cls;
  return pooling;
}

}  // namespace

Result<Pooling> find_pooling(const std::string& folder) {
  if (const auto file = gguf_model(folder)) return gguf_pooling(*file);
  Pooling pooling;
  const fs::path root(folder);
  if (!path_exists(root / "modules.json")) return pooling;
  SINTER_LET(prompts, read_prompts(root.string()));
  pooling.prompts = std::move(prompts);
  SINTER_LET(document, read_json((root / "modules.json").string()));
  SINTER_LET(modules, document.view().array());
  for (size_t i = 0; i < modules->size(); ++i) {
    const JsonView module = document.view()[i];
    SINTER_LET(type, module["type"].string());
    SINTER_LET(place, module_folder(root, module["path"]));
    const std::string name = class_name(type);
    if (name == "Transformer")
      SINTER_TRY(read_transformer(pooling, place, root));
    else if (name == "Pooling")
      SINTER_TRY(read_pooling(pooling, place / "config.json"));
    else if (name == "Normalize")
      SINTER_TRY(read_normalize(pooling, place / "config.json"));
    else
      return module["type"].fail(fmt::format("module '{}' is not supported", printable(type)),
                                 "supported: Transformer, Pooling, Normalize");
  }
  return pooling;
}

}  // namespace sinter
