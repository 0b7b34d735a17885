#include "frontends/gguf/gguf_tokenizer.h"

#include <llvm/Support/Base64.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/files/text_order.h"
#include "frontends/tokenizer/format.h"
#include "frontends/tokenizer/sentencepiece_file.h"
#include "frontends/tokenizer/trie.h"

namespace sinter {
namespace {

using Type = SentencePieceModel::Type;

constexpr std::string_view kSpace = "\u2581";  // what SentencePiece writes for a space
constexpr const char* kConvertAgain = "convert the model again, or give token ids";

#define SINTER_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SINTER_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define SINTER_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define SINTER_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define SINTER_WORDS R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define SINTER_MARKS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define SINTER_MARKS_OF_PATHS R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"
#define SINTER_LLAMA3 \
  SINTER_CONTRACTIONS "|" SINTER_WORDS R"(|\p{N}{1,3}|)" SINTER_MARKS "|" SINTER_SPACES
#define SINTER_CASED(end)                                       \
  R"([^\r\n\p{L}\p{N}]?)" SINTER_UPPER "*" SINTER_LOWER "+" end \
  R"(|[^\r\n\p{L}\p{N}]?)" SINTER_UPPER "+" SINTER_LOWER "*" end

/// How tokenizer.ggml.pre cuts a text into words.
struct PreTokenizer {
  std::string_view names;       // with spaces between
  std::string_view pattern;     // its matches are words; empty: `components` say it
  std::string_view components;  // before the one of GPT-2's pattern, a list of JSON objects
  bool ignore_merges = false;   // a word that is a token is that token
  bool begins = false;          // BOS is added where no flag says otherwise
};
constexpr PreTokenizer kPreTokenizers[] = {
    {"gpt-2 phi-2 mpt olmo", "", ""},
    {"smollm starcoder refact command-r", "", R"({"type": "Digits", "individual_digits": true},)"},
    {"llama-bpe llama3 llama-v3 falcon3 pixtral lfm2", SINTER_LLAMA3, "", true, true},
    {"smaug-bpe", SINTER_LLAMA3, "", true},
    {"dbrx", SINTER_LLAMA3, ""},
    {"qwen2 deepseek-r1-qwen stablelm2 hunyuan",
     SINTER_CONTRACTIONS "|" SINTER_WORDS R"(|\p{N}|)" SINTER_MARKS "|" SINTER_SPACES, ""},
    {"gpt-4o llama4",
     SINTER_CASED(SINTER_CONTRACTIONS "?") R"(|\p{N}{1,3}|)" SINTER_MARKS_OF_PATHS
                                           "|" SINTER_SPACES,
     ""},
    {"tekken", SINTER_CASED("") R"(|\p{N}|)" SINTER_MARKS_OF_PATHS "|" SINTER_SPACES, "", true,
     true},
};
/// Falcon's components, which have GPT-2's pattern in the middle.
constexpr std::string_view kFalcon = R"([
  {"type": "Punctuation", "behavior": "Contiguous"},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  {"type": "Digits", "individual_digits": false},
  {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
   "invert": false}])";

bool lists(std::string_view names, std::string_view name) {
  return fmt::format(" {} ", names).find(fmt::format(" {} ", name)) != std::string::npos;
}

std::string_view truth(bool value) { return value ? "true" : "false"; }

class TokenizerMaker {
 public:
  explicit TokenizerMaker(const GgufFile& file) : file_(file), place_(file.files().front()) {}

  Result<std::optional<JsonDocument>> run() {
    if (!file_.find("tokenizer.ggml.model") && !file_.find("tokenizer.ggml.tokens"))
      return std::optional<JsonDocument>();
    SINTER_TRY(read_tokens());
    const std::string kind = text("tokenizer.ggml.model");
    if (kind == "gpt2") return byte_level();
    if (kind == "llama") return sentence_piece();
    if (kind == "bert") return word_piece();
    if (kind == "t5") return unigram();
    return refuse(fmt::format("tokenizer.ggml.model \"{}\" is not supported", printable(kind, 40)),
                  "supported: gpt2, llama, bert, t5; give token ids");
  }

  /// The text of the token whose id is at `key`; empty: there is none.
  std::string named(std::string_view key) const {
    const int64_t id = integer(key, -1);
    const auto* tokens = strings("tokenizer.ggml.tokens");
    if (!tokens || id < 0 || static_cast<size_t>(id) >= tokens->size()) return {};
    return std::string((*tokens)[static_cast<size_t>(id)]);
  }
  std::string text(std::string_view key) const {
    const GgufValue* value = file_.find(key);
    const auto* found = value ? std::get_if<std::string>(value) : nullptr;
    return found ? *found : "";
  }

 private:
  tl::unexpected<Error> refuse(std::string what, std::string hint = kConvertAgain) const {
    return fail(std::move(what), place_, std::move(hint));
  }

  int64_t integer(std::string_view key, int64_t fallback) const {
    const GgufValue* value = file_.find(key);
    const auto* found = value ? std::get_if<int64_t>(value) : nullptr;
    return found ? *found : fallback;
  }
  bool flag(std::string_view key, bool fallback) const {
    const GgufValue* value = file_.find(fmt::format("tokenizer.ggml.{}", key));
    const auto* found = value ? std::get_if<bool>(value) : nullptr;
    return found ? *found : fallback;
  }
  const GgufStrings* strings(std::string_view key) const {
    const GgufValue* value = file_.find(key);
    return value ? std::get_if<GgufStrings>(value) : nullptr;
  }

  Status read_tokens() {
    tokens_ = strings("tokenizer.ggml.tokens");
    if (!tokens_ || tokens_->size() == 0) return refuse("no texts in tokenizer.ggml.tokens");
    for (size_t id = 0; id < tokens_->size(); ++id)
      if (!is_utf8((*tokens_)[id]))
        return refuse(fmt::format("token {} of tokenizer.ggml.tokens is not UTF-8", id));
    const auto order = text_order(tokens_->size(), [&](uint32_t id) { return (*tokens_)[id]; });
    for (size_t i = 1; i < order.size(); ++i)
      if ((*tokens_)[order[i - 1]] == (*tokens_)[order[i]])
        return refuse(fmt::format("tokens {} and {} of tokenizer.ggml.tokens are both \"{}\"",
                                  order[i - 1], order[i], printable((*tokens_)[order[i]], 60)));
    SINTER_LET(types, numbers("tokenizer.ggml.token_type", false));
    types_ = types;
    return {};
  }

  /// An array with a number for each token; null: the file has none.
  Result<const GgufNumbers*> numbers(std::string_view key, bool real) const {
    const GgufValue* value = file_.find(key);
    if (!value) return nullptr;
    const auto* list = std::get_if<GgufNumbers>(value);
    const bool floats =
        list && (list->type() == GgufValueType::f32 || list->type() == GgufValueType::f64);
    if (!list || list->size() < tokens_->size() || (floats && !real))
      return refuse(
          fmt::format("{} is {}, expected {} numbers", key, to_string(*value), tokens_->size()));
    return list;
  }

  Type type_of(size_t id) const {
    return types_ ? static_cast<Type>(types_->integer(id)) : Type::normal;
  }

  JsonValue vocabulary(std::string (*spelling)(std::string_view)) const {
    JsonValue::Object members;
    members.reserve(tokens_->size());
    for (size_t id = 0; id < tokens_->size(); ++id)
      members.push_back({spelling((*tokens_)[id]), JsonValue(static_cast<int64_t>(id))});
    return JsonValue(std::move(members));
  }
  static std::string as_stored(std::string_view token) { return std::string(token); }
  static std::string of_word_piece(std::string_view token) {
    if (token.starts_with(kSpace)) return std::string(token.substr(kSpace.size()));
    if (token.starts_with('[') && token.ends_with(']')) return std::string(token);
    return fmt::format("##{}", token);
  }

  /// Tokens that are found in a text before it is cut into words.
  JsonValue added() const {
    JsonValue::Array list;
    for (size_t id = 0; id < tokens_->size(); ++id) {
      const Type type = type_of(id);
      const bool special = type == Type::control || type == Type::unknown;
      if ((!special && type != Type::user_defined) || (*tokens_)[id].empty()) continue;
      JsonValue::Object token;
      token.push_back({"id", JsonValue(static_cast<int64_t>(id))});
      token.push_back({"content", JsonValue(std::string((*tokens_)[id]))});
      for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
        token.push_back({key, JsonValue(false)});
      token.push_back({"special", JsonValue(special)});
      list.push_back(JsonValue(std::move(token)));
    }
    return JsonValue(std::move(list));
  }

  /// The component that puts the begin and end tokens around a text.
  Result<std::string> around(bool begins, bool ends) const {
    std::string single, special;
    const auto put = [&](bool wanted, std::string_view key, std::string_view name) -> Status {
      if (!wanted) return {};
      const int64_t id = integer(key, -1);
      if (id < 0 || static_cast<size_t>(id) >= tokens_->size())
        return refuse(fmt::format("{} is to be added to texts, and {} is {}", name, key, id));
      single +=
          fmt::format(R"({}{{"SpecialToken": {{"id": "{}"}}}})", single.empty() ? "" : ", ", name);
      special += fmt::format(R"({}"{}": {{"ids": [{}]}})", special.empty() ? "" : ", ", name, id);
      return {};
    };
    SINTER_TRY(put(flag("add_bos_token", begins), "tokenizer.ggml.bos_token_id", "bos"));
    single += fmt::format(R"({}{{"Sequence": {{"id": "A"}}}})", single.empty() ? "" : ", ");
    SINTER_TRY(put(flag("add_eos_token", ends), "tokenizer.ggml.eos_token_id", "eos"));
    return fmt::format(
        R"({{"type": "TemplateProcessing", "single": [{}], "special_tokens": {{{}}}}})", single,
        special);
  }

  Result<std::optional<JsonDocument>> finish(const std::string& members, const std::string& model,
                                             JsonValue vocabulary,
                                             std::optional<JsonValue::Array> merges = {}) const {
    SINTER_LET(document, parse_json(members, place_));
    SINTER_LET(made, parse_json(model, place_));
    auto& model_members = std::get<JsonValue::Object>(made.root.data);
    model_members.push_back({"vocab", std::move(vocabulary)});
    if (merges) model_members.push_back({"merges", JsonValue(std::move(*merges))});
    auto& root = std::get<JsonValue::Object>(document.root.data);
    root.push_back({"added_tokens", added()});
    root.push_back({"model", std::move(made.root)});
    return std::optional<JsonDocument>(std::move(document));
  }

  Result<std::optional<JsonDocument>> byte_level() const {
    const std::string name = text("tokenizer.ggml.pre");
    const auto row = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers),
                                  [&](const PreTokenizer& one) { return lists(one.names, name); });
    const bool falcon = name == "falcon";
    if (name.empty() || (row == std::end(kPreTokenizers) && !falcon))
      return refuse(name.empty() ? std::string("the file has no tokenizer.ggml.pre")
                                 : fmt::format("tokenizer.ggml.pre \"{}\" is not known",
                                               printable(name, 40)));
    std::string words(kFalcon);
    if (!falcon)
      words = row->pattern.empty()
                  ? fmt::format(R"([{}{{"type": "ByteLevel", "add_prefix_space": {},
                                       "use_regex": true}}])",
                                row->components, truth(flag("add_space_prefix", false)))
                  : fmt::format(R"([{{"type": "Split", "pattern": {{"Regex": {}}},
                                     "behavior": "Isolated", "invert": false}},
                                    {{"type": "ByteLevel", "add_prefix_space": {},
                                     "use_regex": false}}])",
                                json_quoted(row->pattern), truth(flag("add_space_prefix", false)));
    SINTER_LET(frame, around(!falcon && row->begins, false));
    const std::string members = fmt::format(
        R"({{"pre_tokenizer": {{"type": "Sequence", "pretokenizers": {}}},
             "post_processor": {}, "decoder": {{"type": "ByteLevel"}}}})",
        words, frame);
    const std::string model = fmt::format(R"({{"type": "BPE", "ignore_merges": {}}})",
                                          truth(!falcon && row->ignore_merges));
    const auto* lines = strings("tokenizer.ggml.merges");
    if (!lines) return refuse("no texts in tokenizer.ggml.merges");
    SINTER_LET(merges, halves_of(*lines));
    return finish(members, model, vocabulary(as_stored), std::move(merges));
  }

  /// A merge is two pieces with a space between, which is none of the first character.
  Result<JsonValue::Array> halves_of(const GgufStrings& lines) const {
    JsonValue::Array merges;
    merges.reserve(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const size_t space = lines[i].find(' ', 1);
      if (space == std::string_view::npos || !is_utf8(lines[i]))
        return refuse(
            fmt::format("merge {} of tokenizer.ggml.merges is \"{}\", expected two "
                        "pieces with a space between",
                        i, printable(lines[i], 60)));
      JsonValue::Array pair;
      pair.push_back(JsonValue(std::string(lines[i].substr(0, space))));
      pair.push_back(JsonValue(std::string(lines[i].substr(space + 1))));
      merges.push_back(JsonValue(std::move(pair)));
    }
    return merges;
  }

  Result<const GgufNumbers*> scores_of_tokens() const {
    SINTER_LET(scores, numbers("tokenizer.ggml.scores", true));
    if (!scores) return refuse("the file has no tokenizer.ggml.scores");
    for (size_t id = 0; id < tokens_->size(); ++id)
      if (std::isnan(scores->real(id)))
        return refuse(fmt::format("the score of token {} is not a number", id));
    return scores;
  }

  Result<std::optional<JsonDocument>> sentence_piece() const {
    SINTER_LET(scores, scores_of_tokens());
    const bool prefix = flag("add_space_prefix", true);
    SINTER_LET(frame, around(true, false));
    const std::string members = fmt::format(
        R"({{"normalizer": {{"type": "Sequence", "normalizers": [{}
               {{"type": "Replace", "pattern": {{"String": " "}}, "content": "▁"}}]}},
             "post_processor": {},
             "decoder": {{"type": "Sequence", "decoders": [
               {{"type": "Replace", "pattern": {{"String": "▁"}}, "content": " "}},
               {{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}]}}}})",
        prefix ? R"({"type": "Prepend", "prepend": "▁"},)" : "", frame,
        prefix ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})" : "");
    std::string unknown = named("tokenizer.ggml.unknown_token_id");
    if (unknown.empty() && type_of(0) == Type::unknown) unknown = (*tokens_)[0];
    const std::string model = fmt::format(
        R"({{"type": "BPE", "fuse_unk": true, "byte_fallback": true, "unk_token": {}}})",
        unknown.empty() ? "null" : json_quoted(unknown));
    SINTER_LET(merges, merges_of(*scores));
    return finish(members, model, vocabulary(as_stored), std::move(merges));
  }

  /// Every way to cut a piece into two others, the best score first, then the lowest id.
  Result<JsonValue::Array> merges_of(const GgufNumbers& scores) const {
    std::vector<uint32_t> order;
    std::vector<Trie::Entry> symbols;
    for (uint32_t id = 0; id < tokens_->size(); ++id) {
      symbols.push_back({(*tokens_)[id], static_cast<int32_t>(id)});
      if (type_of(id) == Type::normal) order.push_back(id);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return scores.real(a) > scores.real(b); });
    const Trie trie(symbols);
    JsonValue::Array merges;
    for (uint32_t id : order) {
      const std::string_view piece = (*tokens_)[id];
      Trie::Node node = Trie::root;
      for (size_t cut = 1; cut < piece.size(); ++cut) {
        node = trie.step(node, piece[cut - 1]);
        if (node == Trie::nowhere) break;
        if (trie.id(node) < 0 || !trie.find(piece.substr(cut))) continue;
        JsonValue::Array pair;
        pair.push_back(JsonValue(std::string(piece.substr(0, cut))));
        pair.push_back(JsonValue(std::string(piece.substr(cut))));
        merges.push_back(JsonValue(std::move(pair)));
      }
    }
    return merges;
  }

  Result<std::optional<JsonDocument>> word_piece() const {
    const auto pair = [&](std::string_view key, int64_t usual) -> Result<std::string> {
      const int64_t id = integer(fmt::format("tokenizer.ggml.{}", key), usual);
      if (id < 0 || static_cast<size_t>(id) >= tokens_->size())
        return refuse(fmt::format("tokenizer.ggml.{} is {}, and there are {} tokens", key, id,
                                  tokens_->size()));
      return fmt::format("[{}, {}]", json_quoted((*tokens_)[static_cast<size_t>(id)]), id);
    };
    SINTER_LET(first, pair("cls_token_id", integer("tokenizer.ggml.bos_token_id", 101)));
    SINTER_LET(last, pair("seperator_token_id", 102));  // so spelled in the format
    SINTER_LET(unknown, pair("unknown_token_id", 100));
    // The file does not say whether texts become lower case: a vocabulary without capitals does.
    bool lowers = true;
    for (size_t id = 0; id < tokens_->size() && lowers; ++id)
      lowers = type_of(id) != Type::normal || (*tokens_)[id].starts_with('[') ||
               std::none_of((*tokens_)[id].begin(), (*tokens_)[id].end(),
                            [](char c) { return c >= 'A' && c <= 'Z'; });
    const std::string members = fmt::format(
        R"({{"normalizer": {{"type": "BertNormalizer", "lowercase": {0},
                             "handle_chinese_chars": true, "strip_accents": {0}}},
             "pre_tokenizer": {{"type": "BertPreTokenizer"}},
             "post_processor": {{"type": "BertProcessing", "cls": {1}, "sep": {2}}},
             "decoder": {{"type": "WordPiece"}}}})",
        truth(lowers), first, last);
    const std::string name = unknown.substr(1, unknown.rfind(',') - 1);
    return finish(members, fmt::format(R"({{"type": "WordPiece", "unk_token": {}}})", name),
                  vocabulary(of_word_piece));
  }

  /// T5 and XLM-RoBERTa: SentencePiece's unigram model.
  Result<std::optional<JsonDocument>> unigram() const {
    SINTER_LET(scores, scores_of_tokens());
    SINTER_LET(normalizers, unigram_normalizers());
    SINTER_LET(frame, around(false, true));
    const int64_t unknown = integer("tokenizer.ggml.unknown_token_id", 0);
    if (unknown < 0 || static_cast<size_t>(unknown) >= tokens_->size())
      return refuse(fmt::format("tokenizer.ggml.unknown_token_id is {}, and there are {} tokens",
                                unknown, tokens_->size()));
    const std::string spaces = fmt::format(
        R"({{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": true}})",
        flag("add_space_prefix", true) ? "always" : "never");
    const std::string members = fmt::format(
        R"({{"normalizer": {{"type": "Sequence", "normalizers": [{}]}},
             "pre_tokenizer": {}, "post_processor": {}, "decoder": {}}})",
        fmt::join(normalizers, ", "), spaces, frame, spaces);
    JsonValue::Array vocabulary;
    vocabulary.reserve(tokens_->size());
    for (size_t id = 0; id < tokens_->size(); ++id)
      vocabulary.push_back(JsonValue(
          JsonValue::Array{JsonValue(std::string((*tokens_)[id])), JsonValue(scores->real(id))}));
    return finish(
        members,
        fmt::format(R"({{"type": "Unigram", "byte_fallback": false, "unk_id": {}}})", unknown),
        JsonValue(std::move(vocabulary)));
  }

  Result<std::vector<std::string>> unigram_normalizers() const {
    std::vector<std::string> list;
    if (const GgufValue* value = file_.find("tokenizer.ggml.precompiled_charsmap")) {
      const auto* numbers = std::get_if<GgufNumbers>(value);
      if (!numbers || numbers->type() != GgufValueType::u8)
        return refuse(fmt::format("tokenizer.ggml.precompiled_charsmap is {}, expected bytes",
                                  to_string(*value)));
      std::string bytes(numbers->size(), '\0');
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(numbers->integer(i));
      list.push_back(fmt::format(R"({{"type": "Precompiled", "precompiled_charsmap": "{}"}})",
                                 llvm::encodeBase64(bytes)));
    }
    // A space at the end of a text stays, as in the tokenizer.json of such models.
    if (flag("remove_extra_whitespaces", false))
      list.push_back(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})");
    return list;
  }

  const GgufFile& file_;
  const std::string place_;
  const GgufStrings* tokens_ = nullptr;
  const GgufNumbers* types_ = nullptr;
};

}  // namespace

Result<std::optional<JsonDocument>> gguf_tokenizer_json(const GgufFile& file) {
  return TokenizerMaker(file).run();
}

JsonDocument gguf_tokenizer_config(const GgufFile& file) {
  const TokenizerMaker maker(file);
  JsonValue::Object members;
  for (const auto& [member, value] :
       {std::pair("bos_token", maker.named("tokenizer.ggml.bos_token_id")),
        std::pair("eos_token", maker.named("tokenizer.ggml.eos_token_id")),
        std::pair("chat_template", maker.text("tokenizer.chat_template"))})
    if (!value.empty() && is_utf8(value)) members.push_back({member, JsonValue(value)});
  return JsonDocument{file.files().front(), JsonValue(std::move(members))};
}

Result<std::optional<Tokenizer>> open_gguf_tokenizer(const std::string& path) {
  SINTER_LET(file, GgufFile::open(path));
  SINTER_LET(document, gguf_tokenizer_json(file));
  if (!document) return std::optional<Tokenizer>();
  SINTER_LET(tokenizer, Tokenizer::read(document->view()));
  return std::optional<Tokenizer>(std::move(tokenizer));
}

}  // namespace sinter
