#include "driver/embed/pooling.h"

#include <algorithm>
#include <filesystem>

#include "frontends/files/json.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

/// "Pooling" of "sentence_transformers.models.Pooling".
std::string class_name(const std::string& type) {
  return type.substr(type.rfind('.') == std::string::npos ? 0 : type.rfind('.') + 1);
}

bool stands(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

Status read_pooling(Pooling& pooling, const fs::path& path) {
  SINTER_LET(document, read_json(path.string()));
  const JsonView root = document.view();
  SINTER_LET(members, root.object());
  std::vector<std::string> modes;
  for (const JsonMember& member : *members) {
    const JsonView view = root[member.key];
    if (member.key == "pooling_mode") {
      SINTER_LET(mode, view.string());
      modes.push_back(mode);
    } else if (member.key.starts_with("pooling_mode_")) {
      SINTER_LET(on, view.boolean_or(false));
      if (on) modes.push_back(member.key.substr(std::string_view("pooling_mode_").size()));
    } else if (member.key != "word_embedding_dimension" && member.key != "embedding_dimension" &&
               member.key != "include_prompt") {
      return view.mismatch("no such key in a pooling module",
                           "remove the key if it does not change the results");
    }
  }
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

Status read_lengths(Pooling& pooling, const fs::path& path) {
  if (!stands(path)) return {};
  SINTER_LET(document, read_json(path.string()));
  const JsonView most = document.view()["max_seq_length"], lower = document.view()["do_lower_case"];
  if (most.present()) {
    SINTER_LET(count, most.integer(1));
    pooling.max_tokens = count;
  }
  SINTER_LET(lowers, lower.boolean_or(false));
  if (lowers) return lower.mismatch("false", "the tokenizer should say so");
  return {};
}

}  // namespace

std::string_view to_string(PoolingKind kind) { return kind == PoolingKind::mean ? "mean" : "cls"; }

std::vector<std::string> pooling_files(const std::string& folder) {
  constexpr const char* kModules = "modules.json";
  const fs::path root(folder);
  std::vector<std::string> files = {kModules};
  if (!stands(root / kModules)) return files;
  const auto document = read_json((root / kModules).string());
  const auto modules = document ? document->view().array() : Result<const JsonValue::Array*>();
  if (!modules || !*modules) return files;  // its reader says what is wrong
  for (size_t i = 0; i < (*modules)->size(); ++i) {
    const auto place = module_folder({}, document->view()[i]["path"]);
    if (!place) continue;
    files.push_back((*place / "sentence_bert_config.json").string());
    if (!place->empty()) files.push_back((*place / "config.json").string());
  }
  return files;
}

Result<Pooling> find_pooling(const std::string& folder) {
  Pooling pooling;
  const fs::path root(folder);
  if (!stands(root / "modules.json")) return pooling;
  SINTER_LET(document, read_json((root / "modules.json").string()));
  SINTER_LET(modules, document.view().array());
  for (size_t i = 0; i < modules->size(); ++i) {
    const JsonView module = document.view()[i];
    SINTER_LET(type, module["type"].string());
    SINTER_LET(place, module_folder(root, module["path"]));
    const std::string name = class_name(type);
    if (name == "Transformer")
      SINTER_TRY(read_lengths(pooling, place / "sentence_bert_config.json"));
    else if (name == "Pooling")
      SINTER_TRY(read_pooling(pooling, place / "config.json"));
    else if (name == "Normalize")
      pooling.normalize = true;
    else
      return module["type"].fail(fmt::format("module '{}' is not supported", printable(type)),
                                 "supported: Transformer, Pooling, Normalize");
  }
  return pooling;
}

}  // namespace sinter
