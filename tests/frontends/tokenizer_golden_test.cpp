// Ids and texts of the tokenizers in tests/golden equal the reference libraries'.
#include <doctest/doctest.h>

#include "frontends/files/json.h"
#include "frontends/gguf/gguf_tokenizer.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter::tokenizer_golden_test {
namespace {

std::vector<int32_t> ids_at(const JsonView& view) {
  std::vector<int32_t> ids;
  for (const JsonValue& id : **view.array()) ids.push_back(static_cast<int32_t>(*id.integer()));
  return ids;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  TextStream stream(tokenizer, skip);
  std::string text;
  for (int32_t id : ids) {
    const std::string part = stream.push(id).value();
    CHECK(is_utf8(part));
    text += part;
  }
  return text + stream.finish().value();
}

std::string folder_of(const std::string& name) {
  return fmt::format("{}/golden/tokenizers/{}", SINTER_TESTS_DIR, name);
}

void check_cases(const std::string& name, const Result<Tokenizer>& tokenizer) {
  const std::string folder = folder_of(name);
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
  auto cases = read_json(folder + "/cases.json");
  REQUIRE_MESSAGE(cases, cases.error().message());
  const size_t count = (*cases->view().array())->size();
  REQUIRE(count > 0);
  for (size_t i = 0; i < count; ++i) {
    const JsonView row = cases->view()[i];
    const std::string text = *row["text"].string();
    CAPTURE(text);
    const auto ids = ids_at(row["ids"]), plain = ids_at(row["ids_no_special"]);
    CHECK(tokenizer->encode(text, true).value() == ids);
    CHECK(tokenizer->encode(text, false).value() == plain);
    const std::string skipped = *row["decoded_skip"].string();
    CHECK(tokenizer->decode(ids, true).value() == skipped);
    CHECK(streamed(*tokenizer, ids, true) == skipped);
    if (!row["decoded"].present()) continue;  // SentencePiece never shows special tokens
    const std::string decoded = *row["decoded"].string();
    CHECK(tokenizer->decode(ids, false).value() == decoded);
    CHECK(streamed(*tokenizer, ids, false) == decoded);
  }
}

void check_cases(const std::string& name) { check_cases(name, Tokenizer::open(folder_of(name))); }

/// Runs the cases on the GGUF file that tests/golden/make_gguf.py made of the tokenizer.
void check_gguf_cases(const std::string& name) {
  INFO(name);
  auto tokenizer =
      open_gguf_tokenizer(fmt::format("{}/golden/gguf/{}.gguf", SINTER_TESTS_DIR, name));
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
  REQUIRE(tokenizer->has_value());
  check_cases(name, **tokenizer);
}

TEST_CASE("tokenizers of GGUF files give the ids and texts of their tokenizer.json") {
  for (const char* name :
       {"bytelevel_gpt2", "split_llama3", "bytefallback_llama2", "wordpiece_bert", "unigram_t5"})
    check_gguf_cases(name);
}
TEST_CASE("byte-level BPE, as in GPT-2") { check_cases("bytelevel_gpt2"); }
TEST_CASE("byte-level BPE after a split, as in Llama 3") { check_cases("split_llama3"); }
TEST_CASE("BPE with byte fallback, as in Llama 2") { check_cases("bytefallback_llama2"); }
TEST_CASE("WordPiece, as in BERT") { check_cases("wordpiece_bert"); }
TEST_CASE("Unigram with a character map, as in T5") { check_cases("unigram_t5"); }
TEST_CASE("SentencePiece model, unigram") { check_cases("sentencepiece_unigram"); }
TEST_CASE("SentencePiece model, BPE") { check_cases("sentencepiece_bpe"); }
TEST_CASE("tokenizer.bin of llama2.c") { check_cases("llama2c"); }

}  // namespace
}  // namespace sinter::tokenizer_golden_test
