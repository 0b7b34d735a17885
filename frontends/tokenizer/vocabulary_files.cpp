// Folders older than tokenizer.json: vocab.txt (WordPiece, as in BERT), or vocab.json with
// merges.txt (byte-level BPE, as in GPT-2 and RoBERTa). The tokenizer.json that the library
// transformers would write for such a folder is put together here.
#include <filesystem>
#include <span>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/tokenizer/format.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxVocabularyBytes = 64 << 20;

/// The file's lines without their ends.
Result<std::vector<std::string>> read_lines(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMaxVocabularyBytes));
  if (!is_utf8(text)) return fail("not UTF-8", path, "download the tokenizer again");
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const bool carriage = end > at && text[end - 1] == '\r';
    lines.push_back(text.substr(at, end - at - (carriage ? 1 : 0)));
    at = end + 1;
  }
  return lines;
}

/// Puts the document together, member by member.
class OldTokenizer {
 public:
  /// `defaults`: the special tokens of a class of transformers.
  static Result<OldTokenizer> open(const std::string& path, JsonValue::Object vocabulary,
                                   std::span<const DefaultToken> defaults) {
    const std::string folder = fs::path(path).parent_path().string();
    SINTER_LET(config, read_folder_json(folder, "tokenizer_config.json"));
    SINTER_LET(tokens, read_folder_tokens(folder, JsonView(path, nullptr), defaults));
    return OldTokenizer(path, std::move(vocabulary), std::move(config), std::move(tokens));
  }

  JsonView config() const { return config_.view(); }

  /// The text of a special token; empty where there is none.
  std::string special(std::string_view key) const {
    const std::string* text = tokens_.find_named(key);
    return text ? *text : "";
  }
  /// The id of a special token that must be there.
  Result<int64_t> id(std::string_view key) const {
    const std::string text = special(key);
    if (const JsonValue* id = vocabulary_.find(text); id && id->integer()) return *id->integer();
    for (const FolderTokens::Added& added : tokens_.added)
      if (added.token.content == text && added.token.id >= 0) return added.token.id;
    return fail(fmt::format("the vocabulary lacks the {}, \"{}\"", key, printable(text, 60)), path_,
                "name it in tokenizer_config.json, or download the tokenizer again");
  }
  /// `["[SEP]", 102]`
  Result<std::string> pair(std::string_view key) const {
    SINTER_LET(number, id(key));
    return fmt::format("[{}, {}]", json_quoted(special(key)), number);
  }

  /// The tokenizer with these other members of its tokenizer.json, and the other members of its
  /// "model".
  Result<TokenizerFormatPtr> finish(const std::string& members, const std::string& model,
                                    std::optional<JsonValue::Array> merges = {}) && {
    SINTER_LET(document, parse_json(members, path_));
    SINTER_LET(model_document, parse_json(model, path_));
    auto& model_members = std::get<JsonValue::Object>(model_document.root.data);
    model_members.push_back({"vocab", std::move(vocabulary_)});
    if (merges) model_members.push_back({"merges", JsonValue(std::move(*merges))});
    auto& root = std::get<JsonValue::Object>(document.root.data);
    root.push_back({"model", std::move(model_document.root)});
    return read_tokenizer_json(document.view(), tokens_);
  }

 private:
  OldTokenizer(std::string path, JsonValue::Object vocabulary, JsonDocument config,
               FolderTokens tokens)
      : path_(std::move(path)),
        vocabulary_(std::move(vocabulary)),
        config_(std::move(config)),
        tokens_(std::move(tokens)) {}

  std::string path_;
  JsonValue vocabulary_;
  JsonDocument config_;
  FolderTokens tokens_;
};

std::string_view truth(bool value) { return value ? "true" : "false"; }

/// The class without the "Fast" at its end; empty where no file says it.
Result<std::string> tokenizer_class(const std::string& path) {
  SINTER_LET(config,
             read_folder_json(fs::path(path).parent_path().string(), "tokenizer_config.json"));
  SINTER_LET(name, config.view()["tokenizer_class"].string_or(""));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return std::move(name);
}

constexpr DefaultToken kBertTokens[] = {{"unk_token", "[UNK]"},
                                        {"sep_token", "[SEP]"},
                                        {"pad_token", "[PAD]"},
                                        {"cls_token", "[CLS]"},
                                        {"mask_token", "[MASK]"}};
constexpr DefaultToken kMpnetTokens[] = {
    {"unk_token", "[UNK]"},   {"sep_token", "</s>"}, {"pad_token", "<pad>"}, {"cls_token", "<s>"},
    {"mask_token", "<mask>"}, {"bos_token", "<s>"},  {"eos_token", "</s>"}};
constexpr DefaultToken kRobertaTokens[] = {
    {"unk_token", "<unk>"},   {"sep_token", "</s>"}, {"pad_token", "<pad>"}, {"cls_token", "<s>"},
    {"mask_token", "<mask>"}, {"bos_token", "<s>"},  {"eos_token", "</s>"}};
constexpr DefaultToken kGpt2Tokens[] = {
    {"unk_token", "<|endoftext|>"}, {"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}};

/// The merges of a merges.txt, whose first line may be its version.
Result<JsonValue::Array> read_merge_lines(const fs::path& vocabulary) {
  SINTER_LET(lines, read_lines((vocabulary.parent_path() / "merges.txt").string()));
  JsonValue::Array merges;
  for (size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].empty() && !(i == 0 && lines[i].starts_with("#version")))
      merges.push_back(JsonValue(std::move(lines[i])));
  return merges;
}

}  // namespace

Result<TokenizerFormatPtr> open_tokenizer_vocab_txt(const std::string& path) {
  SINTER_LET(lines, read_lines(path));
  JsonValue::Object vocabulary;
  for (size_t i = 0; i < lines.size(); ++i)
    vocabulary.push_back({std::move(lines[i]), JsonValue(static_cast<int64_t>(i))});
  SINTER_LET(name, tokenizer_class(path));
  const std::span<const DefaultToken> mpnet = kMpnetTokens, bert = kBertTokens;
  SINTER_LET(old, OldTokenizer::open(path, std::move(vocabulary),
                                     name.starts_with("MPNet") ? mpnet : bert));
  SINTER_LET(lowers, old.config()["do_lower_case"].boolean_or(true));
  SINTER_LET(sets_apart, old.config()["tokenize_chinese_chars"].boolean_or(true));
  SINTER_LET(strips, old.config()["strip_accents"].boolean_or(lowers));
  SINTER_LET(first, old.pair("cls_token"));
  SINTER_LET(last, old.pair("sep_token"));
  SINTER_TRY(old.id("unk_token"));
  const std::string members = fmt::format(
      R"({{"normalizer": {{"type": "BertNormalizer", "lowercase": {},
                           "handle_chinese_chars": {}, "strip_accents": {}}},
           "pre_tokenizer": {{"type": "BertPreTokenizer"}},
           "post_processor": {{"type": "BertProcessing", "cls": {}, "sep": {}}},
           "decoder": {{"type": "WordPiece"}}}})",
      truth(lowers), truth(sets_apart), truth(strips), first, last);
  const std::string model = fmt::format(R"({{"type": "WordPiece", "unk_token": {}}})",
                                        json_quoted(old.special("unk_token")));
  return std::move(old).finish(members, model);
}

Result<TokenizerFormatPtr> open_tokenizer_vocab_json(const std::string& path) {
  SINTER_LET(document, read_json(path, kMaxVocabularyBytes));
  SINTER_TRY(document.view().object());
  SINTER_LET(merges, read_merge_lines(path));
  SINTER_LET(name, tokenizer_class(path));
  if (name.empty()) name = document.root.find("<mask>") ? "RobertaTokenizer" : "GPT2Tokenizer";
  const bool roberta = name == "RobertaTokenizer";
  const std::span<const DefaultToken> roberta_tokens = kRobertaTokens, gpt2_tokens = kGpt2Tokens;
  SINTER_LET(old,
             OldTokenizer::open(path, std::move(std::get<JsonValue::Object>(document.root.data)),
                                roberta ? roberta_tokens : gpt2_tokens));
  if (!roberta && name != "GPT2Tokenizer")
    return old.config()["tokenizer_class"].mismatch(
        "GPT2Tokenizer or RobertaTokenizer",
        "give tokenizer.json: `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`");
  SINTER_LET(prefix, old.config()["add_prefix_space"].boolean_or(false));
  SINTER_LET(begins, old.config()["add_bos_token"].boolean_or(false));
  std::string around = R"({"type": "ByteLevel"})";
  if (roberta) {
    SINTER_LET(first, old.pair("cls_token"));
    SINTER_LET(last, old.pair("sep_token"));
    around = fmt::format(R"({{"type": "RobertaProcessing", "cls": {}, "sep": {}}})", first, last);
  } else if (begins) {
    SINTER_LET(first, old.id("bos_token"));
    around = fmt::format(
        R"({{"type": "TemplateProcessing",
             "single": [{{"SpecialToken": {{"id": "bos"}}}}, {{"Sequence": {{"id": "A"}}}}],
             "special_tokens": {{"bos": {{"ids": [{}]}}}}}})",
        first);
  }
  const std::string members = fmt::format(
      R"({{"pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": {}, "use_regex": true}},
           "post_processor": {}, "decoder": {{"type": "ByteLevel"}}}})",
      truth(prefix), around);
  return std::move(old).finish(members, R"({"type": "BPE"})", std::move(merges));
}

}  // namespace sinter
