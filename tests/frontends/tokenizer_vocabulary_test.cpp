// Folders older than tokenizer.json: their tokenizers give what a tokenizer.json's gives.
#include <nlohmann/json.hpp>

#include "frontends/small_files.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter::tokenizer_vocabulary_test {
namespace {

using nlohmann::json;

std::string golden(const std::string& name, const std::string& file) {
  return fmt::format("{}/golden/tokenizers/{}/{}", SINTER_TESTS_DIR, name, file);
}

json golden_json(const std::string& name, const std::string& file) {
  return json::parse(bytes_of(golden(name, file)));
}

/// The pieces of a vocabulary, by their ids.
std::vector<std::string> pieces_of(const json& tokenizer) {
  const json& vocabulary = tokenizer["model"]["vocab"];
  std::vector<std::string> pieces(vocabulary.size());
  for (const auto& [piece, id] : vocabulary.items()) pieces.at(id.get<size_t>()) = piece;
  return pieces;
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Tokenizer opened(const ScratchFolder& folder) {
  auto tokenizer = Tokenizer::open(folder.path());
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
  return *tokenizer;
}

/// The reference library's ids of all texts.
void check_cases(const Tokenizer& tokenizer, const std::string& name) {
  const json cases = golden_json(name, "cases.json");
  REQUIRE(!cases.empty());
  for (const json& row : cases) {
    const auto text = row["text"].get<std::string>();
    CAPTURE(text);
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    CHECK(tokenizer.encode(text, true).value() == ids);
    CHECK(tokenizer.encode(text, false).value() ==
          row["ids_no_special"].get<std::vector<int32_t>>());
    CHECK(tokenizer.decode(ids, true).value() == row["decoded_skip"].get<std::string>());
  }
}

std::string ids_text(const Tokenizer& tokenizer, const std::string& text) {
  return fmt::format("{}", fmt::join(tokenizer.encode(text, true).value(), " "));
}

const std::string kPieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nA\n##b\n\xc3\xa4\n";

}  // namespace

TEST_CASE("vocab.txt: WordPiece, as in BERT") {
  const ScratchFolder folder;
  folder.write("vocab.txt", lines_of(pieces_of(golden_json("wordpiece_bert", "tokenizer.json"))));
  check_cases(opened(folder), "wordpiece_bert");
  folder.write("tokenizer_config.json",
               R"({"do_lower_case": true, "model_max_length": 1000000000000000019884624838656,
                   "tokenizer_class": "BertTokenizer", "cls_token": {"content": "[CLS]"}})");
  check_cases(opened(folder), "wordpiece_bert");
}

TEST_CASE("vocab.txt: tokenizer_config.json says what becomes of cases, accents and specials") {
  const ScratchFolder folder;
  folder.write("vocab.txt", kPieces);
  CHECK(ids_text(opened(folder), "Ab \xc3\xa4 [MASK]") == "2 5 7 5 4 3");
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(ids_text(opened(folder), "Ab \xc3\xa4") == "2 6 7 8 3");
  folder.write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  CHECK(ids_text(opened(folder), "Ab \xc3\xa4") == "2 6 7 5 3");
  folder.write("tokenizer_config.json", R"({"cls_token": "[MASK]", "sep_token": "[PAD]"})");
  CHECK(ids_text(opened(folder), "a") == "4 5 0");
  folder.write("special_tokens_map.json", R"({"mask_token": "ab"})");
  folder.write("added_tokens.json", R"({"ab": 9, "zz": 10})");
  CHECK(ids_text(opened(folder), "a ab zz") == "4 5 9 10 0");
  folder.write("tokenizer_config.json", R"({"cls_token": "[X]"})");
  check_error(Tokenizer::open(folder.path()),
              {"vocab.txt: the vocabulary lacks the cls_token, \"[X]\""});
  folder.write("vocab.txt", "\xff\n");
  check_error(Tokenizer::open(folder.path()), {"vocab.txt: not UTF-8"});
}

TEST_CASE("vocab.json with merges.txt: byte-level BPE, as in GPT-2") {
  const ScratchFolder folder;
  const json tokenizer = golden_json("bytelevel_gpt2", "tokenizer.json");
  std::vector<std::string> merges{"#version: 0.2"};
  for (const json& merge : tokenizer["model"]["merges"])
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  folder.write("vocab.json", tokenizer["model"]["vocab"].dump());
  folder.write("merges.txt", lines_of(merges));
  check_cases(opened(folder), "bytelevel_gpt2");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  check_error(Tokenizer::open(folder.path()),
              {"tokenizer_config.json: /tokenizer_class: expected GPT2Tokenizer or "
               "RobertaTokenizer, got \"Qwen2Tokenizer\"",
               "tokenizer.json"});
  std::filesystem::remove(folder.path("merges.txt"));
  check_error(Tokenizer::open(folder.path()), {"merges.txt"});
}

TEST_CASE("vocab.json with merges.txt: RoBERTa's begin and end, OPT's begin") {
  const ScratchFolder folder;
  folder.write("vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5,
                                 "\u0120": 6, "ab": 7, "<mask>": 8})");
  folder.write("merges.txt", "a b\n");
  CHECK(ids_text(opened(folder), "ab a<mask>") == "0 7 6 4 8 2");
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": true, "bos_token": "</s>",
                   "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"})");
  CHECK(ids_text(opened(folder), "ab</s>") == "2 7 2");
}

}  // namespace sinter::tokenizer_vocabulary_test
