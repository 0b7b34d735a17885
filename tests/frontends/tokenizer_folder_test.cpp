// Tokens of the files beside a tokenizer: ids and texts equal those of transformers
// 5.24 with tokenizers 0.23.
#include <nlohmann/json.hpp>

#include "frontends/small_files.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter::tokenizer_folder_test {
namespace {

using nlohmann::json;

constexpr const char* kLetters = "<>|abcxyABX.'_";

/// Byte-level BPE of single characters and their Ġ, ids 0 to 14, and `changes` to the document.
json small_file(const json& changes = json::object()) {
  json vocabulary = json::object();
  for (const char* c = kLetters; *c; ++c) vocabulary[std::string(1, *c)] = c - kLetters;
  vocabulary["\xc4\xa0"] = 14;
  json file = {
      {"added_tokens", json::array({{{"id", 15}, {"content", "<a>"}, {"special", false}}})},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
  file.update(changes);
  return file;
}

class Folder {
 public:
  explicit Folder(const json& file = small_file()) { write("tokenizer.json", file); }
  void write(const char* name, const json& file) const { folder_.write(name, file.dump()); }
  /// With these members of tokenizer_config.json.
  Result<Tokenizer> open(const json& config) const {
    write("tokenizer_config.json", config);
    return Tokenizer::open(folder_.path());
  }
  Tokenizer opened(const json& config = json::object()) const {
    auto tokenizer = open(config);
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
    return *tokenizer;
  }

 private:
  ScratchFolder folder_;
};

std::string pieces(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, true).value();
  std::string list;
  for (int32_t id : ids)
    list += fmt::format("{}{}", list.empty() ? "" : " ",
                        id >= 15 ? std::to_string(id) : *tokenizer.piece(id));
  return list;
}

std::string text_of(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  return tokenizer.decode(ids, true).value();
}

json token(const std::string& content, const json& flags = json::object()) {
  json made = {{"content", content}, {"special", true}, {"normalized", false}};
  made.update(flags);
  return made;
}

}  // namespace

TEST_CASE("tokens that stand in tokenizer_config.json alone are added") {
  const Folder folder;
  CHECK(pieces(folder.opened(), "<a>x<b>") == "15 x < b >");
  CHECK(pieces(folder.opened({{"added_tokens_decoder", {{"16", token("<b>")}}}}), "<a>x<b>") ==
        "15 x 16");
  CHECK(pieces(folder.opened({{"eos_token", "<b>"}}), "<b>") == "16");
  CHECK(pieces(folder.opened({{"image_token", "<b>"}}), "<b>") == "16");
  CHECK(pieces(folder.opened({{"additional_special_tokens", {"<b>", "<x>"}}}), "<x><b>") ==
        "17 16");
  CHECK(pieces(folder.opened({{"extra_special_tokens", {{"own", "<b>"}}}}), "<b>") == "16");
  // By their ids, then by their names, then the others; a piece of the vocabulary keeps its id.
  const Tokenizer all =
      folder.opened({{"additional_special_tokens", {"<y>"}},
                     {"pad_token", "<x>"},
                     {"bos_token", {{"__type", "AddedToken"}, {"content", "|"}, {"rstrip", true}}},
                     {"added_tokens_decoder", {{"17", token("<c>")}, {"16", token("<b>")}}}});
  CHECK(pieces(all, "<b><c><x><y>|  a") == "16 17 18 19 | a");
  CHECK(text_of(all, {16, 3, 2, 19}) == "a");
  // The padding of a tokenizer.json names a token too.
  const Folder padded(small_file({{"padding", {{"pad_token", "<b>"}}}}));
  CHECK(pieces(padded.opened(), "<b>") == "16");
}

TEST_CASE("flags of tokenizer_config.json replace those of tokenizer.json") {
  const Folder folder;
  const auto with = [&](const json& flags) {
    return folder.opened({{"added_tokens_decoder", {{"15", token("<a>", flags)}}}});
  };
  CHECK(pieces(with({{"rstrip", true}}), "x <a>  b") == "x \xc4\xa0 15 b");
  CHECK(pieces(with({{"lstrip", true}}), "x <a>  b") == "x 15 \xc4\xa0 \xc4\xa0 b");
  CHECK(pieces(with({{"single_word", true}}), "x<a>") == "x < a >");
  CHECK(text_of(folder.opened(), {15, 3}) == "<a>a");
  CHECK(text_of(with(json::object()), {15, 3}) == "a");
  // A named token is special.
  CHECK(text_of(folder.opened({{"eos_token", "<a>"}}), {15, 3}) == "a");
}

TEST_CASE("special_tokens_map.json and added_tokens.json count where no decoder of tokens stands") {
  const Folder folder;
  folder.write("special_tokens_map.json", {{"eos_token", {{"content", "<b>"}, {"rstrip", true}}}});
  folder.write("added_tokens.json", {{"<x>", 16}});
  const Tokenizer both = folder.opened({{"eos_token", "<y>"}});
  CHECK(pieces(both, "<b> <x><y>") == "17 16 < y >");
  CHECK(text_of(both, {17, 16}) == "<x>");
  CHECK(pieces(folder.opened({{"added_tokens_decoder", json::object()}}), "<b><x>") ==
        "< b > < x >");
}

TEST_CASE("split_special_tokens and clean_up_tokenization_spaces") {
  const Folder folder;
  const json added = {{"16", token("<b>")}, {"17", token("<x>", {{"special", false}})}};
  CHECK(pieces(folder.opened({{"added_tokens_decoder", added}, {"split_special_tokens", true}}),
               "<b><x>") == "< b > 17");
  const std::vector<int32_t> spaced = {3, 14, 11, 14, 12, 14, 3};  // "a . ' a"
  CHECK(text_of(folder.opened({{"clean_up_tokenization_spaces", true}}), spaced) == "a . ' a");
  CHECK(text_of(folder.opened({{"clean_up_tokenization_spaces", true},
                               {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_"
                                "output",
                                true}}),
                spaced) == "a.'a");
  const json scored = json::parse(R"([["?", 0], ["a", -1], [".", -1]])");
  const json unigram = {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", scored}}},
                        {"decoder", nullptr},
                        {"added_tokens", nullptr}};
  const Folder words(small_file(unigram));
  CHECK(text_of(words.opened(), {1, 2}) == "a .");
  CHECK(text_of(words.opened({{"clean_up_tokenization_spaces", true}}), {1, 2}) == "a.");
}

TEST_CASE("an added token decodes to what the normalizer makes of it") {
  const Folder folder(
      small_file({{"normalizer", {{"type", "Lowercase"}}},
                  {"added_tokens",
                   {{{"id", 15}, {"content", "<A>"}, {"normalized", true}, {"special", false}},
                    {{"id", 16}, {"content", "<B>"}, {"normalized", false}, {"special", true}},
                    {{"id", 17}, {"content", "<X>"}, {"normalized", true}, {"special", true}}}}}));
  const Tokenizer tokenizer = folder.opened();
  CHECK(pieces(tokenizer, "<A><a><B><b>") == "15 15 16 < b >");
  // A special token whose text is no longer its own is not left out.
  CHECK(text_of(tokenizer, {15, 16, 17}) == "<a><x>");
  const std::vector<int32_t> ids = {15, 16, 17};
  CHECK(tokenizer.decode(ids, false).value() == "<a><B><x>");
}

TEST_CASE("settings that a tokenizer class takes from tokenizer_config.json") {
  const Folder folder;
  CHECK(pieces(folder.opened({{"add_prefix_space", true}}), "a") == "a");
  CHECK(
      pieces(folder.opened({{"add_prefix_space", true}, {"tokenizer_class", "GPT2TokenizerFast"}}),
             "a") == "\xc4\xa0 a");
  const Folder bert(small_file({{"normalizer", {{"type", "BertNormalizer"}, {"lowercase", false}}},
                                {"pre_tokenizer", {{"type", "BertPreTokenizer"}}}}));
  CHECK(pieces(bert.opened({{"do_lower_case", true}}), "A") == "A");
  CHECK(pieces(bert.opened({{"tokenizer_class", "BertTokenizer"}}), "A") == "a");
  CHECK(pieces(bert.opened({{"do_lower_case", false}, {"tokenizer_class", "BertTokenizer"}}),
               "A") == "A");
}

TEST_CASE("tokens of a folder that are refused") {
  const Folder folder;
  check_error(folder.open({{"added_tokens_decoder", {{"20", token("<b>")}}}}),
              {"tokenizer_config.json: /added_tokens_decoder/20", "\"<b>\"", "would get the id 16",
               "the file says 20"});
  check_error(folder.open({{"added_tokens_decoder", {{"x", token("<b>")}}}}),
              {"expected an id", "got \"x\""});
  check_error(folder.open({{"fast_tokenizer_files", {"tokenizer.json", "tokenizer.4.0.0.json"}}}),
              {"/fast_tokenizer_files/1", "tokenizer.4.0.0.json"});
  check_error(folder.open({{"eos_token", 5}}), {"/eos_token", "expected", "5"});
  json holes = small_file();
  holes["model"]["vocab"]["zz"] = 17;
  holes["added_tokens"] = json::array();
  check_error(Folder(holes).open({{"additional_special_tokens", {"<b>", "<x>"}}}),
              {"\"<x>\" would get the id 17", "which stands for \"zz\""});
  ScratchFolder sentencepiece;
  sentencepiece.write("tokenizer.model",
                      bytes_of(std::string(SINTER_TESTS_DIR) +
                               "/golden/tokenizers/sentencepiece_bpe/tokenizer.model"));
  CHECK(Tokenizer::open(sentencepiece.path()));
  sentencepiece.write("added_tokens.json", R"({"<|user|>": 32000})");
  check_error(
      Tokenizer::open(sentencepiece.path()),
      {"added_tokens.json", "tokenizer.model lacks the token \"<|user|>\"", "tokenizer.json"});
}

}  // namespace sinter::tokenizer_folder_test
