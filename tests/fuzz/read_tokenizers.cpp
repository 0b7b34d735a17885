// Tokenizer files, and what they make of a text.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontends/chat_template.h"
#include "frontends/files/json.h"
#include "frontends/tokenizer/format.h"
#include "fuzz/reading.h"

namespace sinter::fuzz {
namespace {

constexpr std::string_view kText =
    "Hello <s>  world, 123 na\xc3\xafve\t\xe6\xbc\xa2 \xef\xac\x81 don't </s>\n\nx";

/// Text of the ids, as TextStream makes it.
Result<std::string> text_of(const TokenizerFormat& format, const std::vector<int32_t>& ids) {
  DecoderChain decoder = format.decoder();
  std::string text;
  for (int32_t id : ids) SINTER_TRY(decoder.push(format.piece(id).value_or("?"), text));
  SINTER_TRY(decoder.finish(text));
  return text;
}

/// The vocabulary, and the ids and text of kText.
Outcome used(Result<TokenizerFormatPtr> opened) {
  if (!opened) return refused(std::move(opened.error()));
  const TokenizerFormat& format = **opened;
  std::string read;
  const int32_t size = std::min(format.vocabulary_size(), 5000);
  for (int32_t id = 0; id < size; ++id) {
    const auto piece = format.piece(id);
    if (piece && !is_utf8(*piece)) return {std::move(read), "a piece that is not UTF-8"};
    read +=
        fmt::format("{}{}\n", piece ? std::string(*piece) : "", format.is_special(id) ? "*" : "");
  }
  for (bool special : {false, true}) {
    auto ids = format.encode(kText, special);
    if (!ids) {  // a pattern that gives up on this text
      Outcome outcome = refused(std::move(ids.error()));
      if (outcome.broken.empty()) outcome.read = read + "no ids";
      return outcome;
    }
    for (int32_t id : *ids)
      if (!format.piece(id)) return {std::move(read), fmt::format("an id {} without a piece", id)};
    auto text = text_of(format, *ids);
    if (!text) {
      Outcome outcome = refused(std::move(text.error()));
      if (outcome.broken.empty()) outcome.read = read + "no text";
      return outcome;
    }
    if (!is_utf8(*text)) return {std::move(read), "a text that is not UTF-8"};
    read += fmt::format("{}\n{}\n", fmt::join(*ids, " "), *text);
  }
  return read_as(std::move(read));
}

/// A golden tokenizer.json with its first `pieces` pieces: small enough to be broken everywhere.
std::string reduced(std::string_view name, int pieces) {
  nlohmann::ordered_json file = nlohmann::ordered_json::parse(
      golden(fmt::format("golden/tokenizers/{}/tokenizer.json", name)));
  auto& model = file["model"];
  auto& vocabulary = model["vocab"];
  if (vocabulary.is_array()) {
    if (vocabulary.size() > static_cast<size_t>(pieces))
      vocabulary.erase(vocabulary.begin() + pieces, vocabulary.end());
  } else {
    nlohmann::ordered_json kept = nlohmann::ordered_json::object();
    for (const auto& [piece, id] : vocabulary.items())
      if (id.get<int>() < pieces) kept[piece] = id;
    vocabulary = std::move(kept);
  }
  if (model.contains("merges")) {
    nlohmann::ordered_json merges = nlohmann::ordered_json::array();
    for (const auto& merge : model["merges"]) {
      const std::string left = merge[0], right = merge[1];
      if (vocabulary.contains(left) && vocabulary.contains(right) &&
          vocabulary.contains(left + right))
        merges.push_back(merge);
    }
    model["merges"] = std::move(merges);
  }
  return file.dump(1);
}

/// A folder whose tokenizer_config.json is a MemoryFile.
class ConfigFolder {
 public:
  ConfigFolder() {
    std::filesystem::create_symlink(config_.path(), folder_.path() + "/tokenizer_config.json");
  }
  Result<ChatFormat> read(std::string_view config) {
    config_.put(config);
    return read_chat_format(folder_.path(), "");
  }
  Result<FolderTokens> tokens() const {
    return read_folder_tokens(folder_.path(), JsonView("none", nullptr));
  }

 private:
  MemoryFile config_;
  ScratchFolder folder_;
};

}  // namespace

Outcome read_tokenizer_config(std::string_view bytes) {
  static ConfigFolder folder;
  auto format = folder.read(bytes);
  auto tokens = folder.tokens();
  if (!tokens) return refused(std::move(tokens.error()));
  std::string read;
  for (const auto& [key, text] : tokens->named) read += fmt::format("{} {}\n", key, text);
  for (const FolderTokens::Added& added : tokens->added)
    read += fmt::format("{} {}\n", added.token.id, added.token.content);
  if (!format) {
    Outcome outcome = refused(std::move(format.error()));
    if (outcome.broken.empty() && !read.empty()) outcome.read = std::move(read);
    return outcome;
  }
  return read_as(fmt::format("{}{} {} {} {}", read, format->form->name, format->begins,
                             format->prompt("S", "U"), format->end()));
}

std::vector<std::string> tokenizer_config_seeds() {
  return {R"({"eos_token": "</s>", "chat_template": "{{ '<|im_start|>' + role + '<|im_end|>' }}"})",
          R"({"eos_token": {"content": "<e>"}, "chat_template": [{"name": "default",
 "template": "{{ bos_token }}[INST] {{ text }} [/INST]"}]})",
          R"({"added_tokens_decoder": {"7": {"content": "<x>", "lstrip": true, "special": true}},
 "bos_token": {"__type": "AddedToken", "content": "<s>"}, "own_token": "<o>",
 "extra_special_tokens": {"more_token": "<m>"}, "additional_special_tokens": ["<y>"],
 "chat_template": "<|im_start|><|im_end|>"})"};
}

Outcome read_tokenizer_json(std::string_view bytes) {
  return used(open_tokenizer_json(as_file(bytes)));
}
Outcome read_tokenizer_model(std::string_view bytes) {
  return used(open_tokenizer_sentencepiece(as_file(bytes)));
}
Outcome read_tokenizer_bin(std::string_view bytes) {
  return used(open_tokenizer_llama2c(as_file(bytes)));
}

std::vector<std::string> tokenizer_json_seeds() {
  return {reduced("bytelevel_gpt2", 300), reduced("split_llama3", 300),
          reduced("bytefallback_llama2", 300), reduced("wordpiece_bert", 150),
          reduced("unigram_t5", 150)};
}
std::vector<std::string> tokenizer_model_seeds() {
  return {golden("golden/tokenizers/sentencepiece_bpe/tokenizer.model"),
          golden("golden/tokenizers/sentencepiece_unigram/tokenizer.model")};
}
std::vector<std::string> tokenizer_bin_seeds() {
  return {golden("golden/tokenizers/llama2c/tokenizer.bin")};
}

}  // namespace sinter::fuzz
