#include "driver/plan_folder/model_files.h"

#include <algorithm>
#include <filesystem>

#include "driver/embed/pooling.h"
#include "driver/text.h"
#include "frontends/files/bounded_file.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/gguf/gguf_tokenizer.h"

namespace sinter {
namespace {

/// A tokenizer of several files, older than tokenizer.json.
bool is_vocabulary_file(const std::filesystem::path& path) {
  return path.filename() == "vocab.txt" || path.filename() == "vocab.json";
}

std::vector<std::string> further_templates(const std::string& folder) {
  constexpr const char* kFolder = "additional_chat_templates";
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(std::filesystem::path(folder) / kFolder, error), end;
       !error && at != end; at.increment(error))
    if (at->path().extension() == ".jinja")
      names.push_back((kFolder / at->path().filename()).string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The files of a model whose first token is the vector of its text.
constexpr std::string_view kModules =
    R"([{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}])";
constexpr std::string_view kFirstToken = R"({"pooling_mode": "cls"})";

/// The files that the folder of the model would have for texts and their vectors.
Result<std::vector<ModelFile>> gguf_model_files(const std::string& path) {
  SINTER_LET(file, GgufFile::open(path));
  std::vector<ModelFile> files{
      {"tokenizer_config.json", to_text(gguf_tokenizer_config(file).root)}};
  SINTER_LET(tokenizer, gguf_tokenizer_json(file));
  if (tokenizer) files.push_back({"tokenizer.json", to_text(tokenizer->root)});
  SINTER_LET(pooling, find_pooling(path));
  if (pooling.kind == PoolingKind::cls) {
    files.push_back({"modules.json", std::string(kModules)});
    files.push_back({"1_Pooling/config.json", std::string(kFirstToken)});
  }
  return files;
}

}  // namespace

Result<std::vector<ModelFile>> read_model_files(const std::string& model) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  SINTER_LET(folder, model_files(model));
  if (const auto file = gguf_model(folder)) return gguf_model_files(*file);
  std::vector<std::string> names = {
      "tokenizer.json",          "tokenizer.model",   "tokenizer.bin",      "tokenizer_config.json",
      "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"};
  if (const auto file = find_tokenizer_file(folder); file && is_vocabulary_file(*file))
    names.insert(names.end(), {"vocab.txt", "vocab.json", "merges.txt"});
  for (std::string& name : further_templates(folder)) names.push_back(std::move(name));
  for (std::string& name : pooling_files(folder)) names.push_back(std::move(name));
  std::vector<ModelFile> files;
  for (std::string& name : names) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!path_exists(path)) continue;
    SINTER_LET(bytes, read_small_file(path.string(), kMaxBytes));
    files.push_back({std::move(name), std::move(bytes)});
  }
  return files;
}

}  // namespace sinter
