// Folders older than tokenizer.json: vocab.txt (WordPiece, as in BERT), or vocab.json with
// merges.txt (byte-level BPE, as in GPT-2 and RoBERTa). The tokenizer.json that the library
// transformers would write for such a folder is put together here. tokenizer_config.json,
// special_tokens_map.json and added_tokens.json are read where they are there.
#include <llvm/ADT/ArrayRef.h>

#include <filesystem>
#include <map>
#include <set>

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

/// A file beside the vocabulary; an empty object where it is not there.
Result<JsonDocument> read_beside(const fs::path& vocabulary, const char* name) {
  const fs::path path = vocabulary.parent_path() / name;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return JsonDocument{path.string(), JsonValue(JsonValue::Object{})};
  SINTER_LET(document, read_json(path.string()));
  SINTER_TRY(document.view().object());
  return std::move(document);
}

/// A special token's key in tokenizer_config.json, and its text where no file gives one.
struct SpecialName {
  std::string_view key;
  std::string_view usual;  // empty: there is none
};

/// Puts the document together, member by member.
class OldTokenizer {
 public:
  static Result<OldTokenizer> open(const std::string& path, JsonValue::Object vocabulary) {
    SINTER_LET(config, read_beside(path, "tokenizer_config.json"));
    SINTER_LET(map, read_beside(path, "special_tokens_map.json"));
    SINTER_LET(added, read_beside(path, "added_tokens.json"));
    return OldTokenizer(path, std::move(vocabulary), std::move(config), std::move(map),
                        std::move(added));
  }

  JsonView config() const { return config_.view(); }
  bool has_piece(std::string_view piece) const { return vocabulary_.find(piece) != nullptr; }

  /// Finds the special tokens' names and, where the vocabulary has them, lists them.
  Status add_special(llvm::ArrayRef<SpecialName> names) {
    for (const auto& [key, usual] : names) {
      const JsonView own = config_.view()[key];
      const JsonView view = own.present() ? own : map_.view()[key];
      std::string text(usual);
      if (view.present()) {
        SINTER_LET(said, view.value()->object() ? view["content"].string() : view.string());
        text = std::move(said);
      }
      special_[std::string(key)] = text;
      if (!id_of(text) || !listed_.insert(text).second) continue;
      SINTER_LET(left, view["lstrip"].boolean_or(false));
      SINTER_LET(right, view["rstrip"].boolean_or(false));
      list_token(text, left, right, true);
    }
    return {};
  }

  /// The tokens of added_tokens.json that are not special.
  Status add_others() {
    SINTER_LET(members, added_.view().object());
    for (const JsonMember& member : *members) {
      SINTER_TRY(added_.view()[member.key].integer(0, INT32_MAX));
      if (listed_.insert(member.key).second) list_token(member.key, false, false, false);
    }
    return {};
  }

  const std::string& special(std::string_view key) const { return special_.find(key)->second; }
  /// The id of a special token that must be there.
  Result<int64_t> id(std::string_view key) const {
    if (const auto id = id_of(special(key))) return *id;
    return fail(
        fmt::format("the vocabulary lacks the {}, \"{}\"", key, printable(special(key), 60)), path_,
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
    root.push_back({"added_tokens", JsonValue(std::move(tokens_))});
    return read_tokenizer_json(document.view());
  }

 private:
  OldTokenizer(std::string path, JsonValue::Object vocabulary, JsonDocument config,
               JsonDocument map, JsonDocument added)
      : path_(std::move(path)),
        vocabulary_(std::move(vocabulary)),
        config_(std::move(config)),
        map_(std::move(map)),
        added_(std::move(added)) {}

  std::optional<int64_t> id_of(std::string_view piece) const {
    const JsonValue* id = vocabulary_.find(piece);
    if (!id) id = added_.root.find(piece);
    if (!id || !id->integer()) return std::nullopt;
    return *id->integer();
  }

  void list_token(const std::string& text, bool left_strip, bool right_strip, bool special) {
    tokens_.push_back(JsonValue(JsonValue::Object{{"id", JsonValue(*id_of(text))},
                                                  {"content", JsonValue(text)},
                                                  {"lstrip", JsonValue(left_strip)},
                                                  {"rstrip", JsonValue(right_strip)},
                                                  {"normalized", JsonValue(!special)},
                                                  {"special", JsonValue(special)}}));
  }

  std::string path_;
  JsonValue vocabulary_;
  JsonDocument config_, map_, added_;
  std::map<std::string, std::string, std::less<>> special_;  // texts by key
  std::set<std::string, std::less<>> listed_;
  JsonValue::Array tokens_;
};

std::string_view truth(bool value) { return value ? "true" : "false"; }

/// The class without the "Fast" at its end; empty where no file says it.
Result<std::string> tokenizer_class(const OldTokenizer& old) {
  SINTER_LET(name, old.config()["tokenizer_class"].string_or(""));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return std::move(name);
}

constexpr SpecialName kBertTokens[] = {{"unk_token", "[UNK]"},
                                       {"sep_token", "[SEP]"},
                                       {"pad_token", "[PAD]"},
                                       {"cls_token", "[CLS]"},
                                       {"mask_token", "[MASK]"}};
constexpr SpecialName kMpnetTokens[] = {
    {"unk_token", "[UNK]"},   {"sep_token", "</s>"}, {"pad_token", "<pad>"}, {"cls_token", "<s>"},
    {"mask_token", "<mask>"}, {"bos_token", "<s>"},  {"eos_token", "</s>"}};
constexpr SpecialName kRobertaTokens[] = {
    {"unk_token", "<unk>"},   {"sep_token", "</s>"}, {"pad_token", "<pad>"}, {"cls_token", "<s>"},
    {"mask_token", "<mask>"}, {"bos_token", "<s>"},  {"eos_token", "</s>"}};
constexpr SpecialName kGpt2Tokens[] = {{"unk_token", "<|endoftext|>"},
                                       {"bos_token", "<|endoftext|>"},
                                       {"eos_token", "<|endoftext|>"},
                                       {"pad_token", ""}};

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
  SINTER_LET(old, OldTokenizer::open(path, std::move(vocabulary)));
  SINTER_LET(name, tokenizer_class(old));
  SINTER_TRY(name.starts_with("MPNet") ? old.add_special(kMpnetTokens)
                                       : old.add_special(kBertTokens));
  SINTER_TRY(old.add_others());
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
  SINTER_LET(old,
             OldTokenizer::open(path, std::move(std::get<JsonValue::Object>(document.root.data))));
  SINTER_LET(name, tokenizer_class(old));
  if (name.empty()) name = old.has_piece("<mask>") ? "RobertaTokenizer" : "GPT2Tokenizer";
  const bool roberta = name == "RobertaTokenizer";
  if (!roberta && name != "GPT2Tokenizer")
    return old.config()["tokenizer_class"].mismatch(
        "GPT2Tokenizer or RobertaTokenizer",
        "give tokenizer.json: `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`");
  SINTER_TRY(roberta ? old.add_special(kRobertaTokens) : old.add_special(kGpt2Tokens));
  SINTER_TRY(old.add_others());
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
