// Vectors of texts against the reference's hidden states, packed calls against single ones, and
// what sentence-transformers writes beside a model.
#include "driver/embed/embed.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "driver/embed/text_tokens.h"
#include "driver/small_models.h"
#include "frontends/files/safetensors.h"
#include "runtime/temporary_directory.h"

namespace sinter::embed_test {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

constexpr size_t kLength = 23, kWidth = 64;

struct Reference {
  Texts texts{2};
  std::vector<std::vector<float>> hidden{2};  // rows after one another
};

Reference reference() {
  const auto file =
      value(open_safetensors(SINTER_TESTS_DIR "/golden/bert_post_ln/reference.safetensors"));
  const auto ids = value(file.read_tensor("input_ids")),
             hidden = value(file.read_tensor("last_hidden_state"));
  Reference result;
  for (size_t s = 0; s < 2; ++s) {
    const auto* id = reinterpret_cast<const int64_t*>(ids.bytes.data()) + s * kLength;
    const auto* row = reinterpret_cast<const float*>(hidden.bytes.data()) + s * kLength * kWidth;
    result.texts[s].assign(id, id + kLength);
    result.hidden[s].assign(row, row + kLength * kWidth);
  }
  return result;
}

struct Embeddings : EmbedCalls {
  std::vector<std::vector<double>> vectors;  // of each text
};

Result<Embeddings> embed_by_bert(const Texts& texts, const EmbedOptions& options) {
  const OpenedModel model = load_golden("bert_post_ln", DType::f32);
  const ReadyPlan ready = value(make_ready(model, {}, *cpu()));
  Embeddings result;
  SINTER_LET(calls, embed(model, ready, texts, options, [&](llvm::ArrayRef<double> vector) {
               result.vectors.push_back(vector.vec());
               return Status();
             }));
  static_cast<EmbedCalls&>(result) = calls;
  return result;
}

Embeddings embedded(const Texts& texts, int64_t activation_bytes) {
  return value(embed_by_bert(texts, {{}, activation_bytes, {}}));
}

std::vector<std::vector<double>> vectors(const Texts& texts, const Pooling& pooling = {}) {
  return value(embed_by_bert(texts, {pooling, kActivationBytes, {}})).vectors;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST_CASE("means, first tokens and lengths of one, against the reference") {
  const Reference expected = reference();
  const auto means = vectors(expected.texts);
  const auto firsts =
      vectors(expected.texts, {.kind = PoolingKind::cls, .normalize = true, .max_tokens = {}});
  for (size_t s = 0; s < 2; ++s) {
    std::vector<double> mean(kWidth), first(kWidth);
    double squares = 0;
    for (size_t i = 0; i < kWidth; ++i) {
      for (size_t t = 0; t < kLength; ++t)
        mean[i] += static_cast<double>(expected.hidden[s][t * kWidth + i]) / kLength;
      first[i] = static_cast<double>(expected.hidden[s][i]);
      squares += first[i] * first[i];
    }
    for (double& x : first) x /= std::sqrt(squares);
    CHECK(largest_difference(means[s], mean) < 2e-5);
    CHECK(largest_difference(firsts[s], first) < 2e-5);
  }
}

TEST_CASE("texts of unequal length share calls without a trace of each other") {
  Texts texts;
  // 128 positions: more than one call.
  for (int64_t length : {1, 40, 7, 100, 128, 3, 9})
    texts.push_back(some_tokens(length, static_cast<uint64_t>(length)));
  const auto together = vectors(texts);
  REQUIRE(together.size() == texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(i);
    CHECK(largest_difference(together[i], vectors({texts[i]})[0]) < 1e-5);
  }
}

TEST_CASE("whole texts share a call as far as the memory for activations goes") {
  Texts texts;
  for (int64_t length : {9, 20, 1, 30, 3})
    texts.push_back(some_tokens(length, static_cast<uint64_t>(length)));
  const Embeddings together = embedded(texts, kActivationBytes);
  CHECK(together.calls == 1);
  const Embeddings few = value(embed_by_bert(texts, {{}, kActivationBytes, 30}));
  CHECK(few.calls == 3);
  CHECK(value(embed_by_bert(texts, {{}, kActivationBytes, 1})).calls == 5);
  for (size_t i = 0; i < texts.size(); ++i)
    CHECK(largest_difference(together.vectors[i], few.vectors[i]) < 1e-5);
  // The memory for the longest text alone gives three calls: 9 + 20 + 1, then 30, then 3 tokens.
  const int64_t longest = embedded({texts[3]}, kActivationBytes).arena_bytes;
  const Embeddings apart = embedded(texts, longest);
  CHECK(apart.calls == 3);
  CHECK(apart.arena_bytes == longest);
  for (size_t i = 0; i < texts.size(); ++i)
    CHECK(largest_difference(together.vectors[i], apart.vectors[i]) < 1e-5);

  const auto refused = embed_by_bert(texts, {{}, longest - 1, {}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message() ==
        fmt::format("bert_post_ln: text 4 of 30 tokens needs {0} bytes for activations, {1} are "
                    "allowed; set activation-memory to {0}B or more, or split the text",
                    longest, longest - 1));
}

TEST_CASE("the tokens of a prompt can be left out of the pooling") {
  const Reference expected = reference();
  for (const PoolingKind kind : {PoolingKind::mean, PoolingKind::cls})
    for (const size_t prompt : {size_t{0}, size_t{5}, kLength}) {
      CAPTURE(prompt);
      EmbedOptions options;
      options.pooling.kind = kind;
      options.prompt_tokens = static_cast<int64_t>(prompt);
      const auto pooled = value(embed_by_bert(expected.texts, options)).vectors[1];
      CHECK(largest_difference(pooled, vectors(expected.texts, options.pooling)[1]) == 0);
      options.pooling.pools_prompt = false;
      const auto rest = value(embed_by_bert(expected.texts, options)).vectors[1];
      std::vector<double> wanted(kWidth);
      const bool first = kind == PoolingKind::cls;
      for (size_t i = 0; i < kWidth; ++i)
        for (size_t t = prompt; t < (first ? std::min(prompt + 1, kLength) : kLength); ++t)
          wanted[i] += static_cast<double>(expected.hidden[1][t * kWidth + i]) /
                       static_cast<double>(first ? 1 : kLength - prompt);
      if (first && prompt == kLength)  // no token is left: the first one counts
        for (size_t i = 0; i < kWidth; ++i) wanted[i] = static_cast<double>(expected.hidden[1][i]);
      CHECK(largest_difference(rest, wanted) < 2e-5);
    }
}

TEST_CASE("what cannot be embedded") {
  const auto message = [&](const Texts& texts, const Pooling& pooling = {}) {
    const auto result = embed_by_bert(texts, {pooling, kActivationBytes, {}});
    REQUIRE(!result.has_value());
    return result.error().what;
  };
  const Status decoder = require_encoder(load_golden("llama", DType::f32));
  REQUIRE_FALSE(decoder.has_value());
  CHECK(decoder.error().what == "embeddings need an encoder, such as BERT");
  CHECK(message({{1}, {}}) == "text 2 has 0 tokens, 1 to 128 are possible");
  CHECK(message({some_tokens(129, 1)}) == "text 1 has 129 tokens, 1 to 128 are possible");
  CHECK(message({{1, 211}}) == "token 211 is outside the vocabulary of 211");
  Pooling short_texts;
  short_texts.max_tokens = 4;
  CHECK(message({some_tokens(5, 1)}, short_texts) == "text 1 has 5 tokens, 1 to 4 are possible");
}

TEST_CASE("texts that are too long keep their first tokens and the special ones at their end") {
  const Tokenizer tokenizer =
      value(Tokenizer::open(SINTER_TESTS_DIR "/golden/tokenizers/wordpiece_bert/tokenizer.json"));
  const std::vector<std::string> texts = {"a b c a b c a b", "a", ""};
  const TextTokens whole = value(tokenize_texts(tokenizer, texts));
  CHECK(whole.cut.empty());
  REQUIRE(whole.texts[0].size() == 10);
  const TextTokens cut = value(tokenize_texts(tokenizer, texts, 5));
  CHECK(cut.cut == std::vector<size_t>{0});
  std::vector<int32_t> expected(whole.texts[0].begin(), whole.texts[0].begin() + 4);
  expected.push_back(whole.texts[0].back());
  CHECK(cut.texts[0] == expected);
  CHECK(cut.texts[1] == whole.texts[1]);
  CHECK(cut.texts[2] == whole.texts[2]);
  CHECK(value(tokenize_texts(tokenizer, texts, 1)).texts[0].size() == 1);
  // [CLS] b c [SEP] of the prompt alone, without the last.
  const TextTokens after = value(tokenize_texts(tokenizer, texts, 5, "b c "));
  CHECK(after.texts[1] == value(tokenize_texts(tokenizer, {"b c a"})).texts[0]);
  CHECK(after.prompt_tokens == 3);
  CHECK(whole.prompt_tokens == 0);
  CHECK(value(tokenize_texts(tokenizer, texts, 2, "b c ")).prompt_tokens == 1);
}

TEST_CASE("pooling as modules.json says") {
  const TemporaryDirectory folder;
  const auto write = [&](const char* name, const char* text) {
    const std::filesystem::path path = std::filesystem::path(folder.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const auto read = [&] { return find_pooling(folder.path()); };
  CHECK(value(read()).kind == PoolingKind::mean);
  write("modules.json", R"([
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  write("1_Pooling/config.json",
        R"({"word_embedding_dimension": 384, "pooling_mode_cls_token": true,
    "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false})");
  const Pooling pooling = value(read());
  CHECK(pooling.kind == PoolingKind::cls);
  CHECK(pooling.normalize);
  CHECK(pooling.max_tokens == 256);
  write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  CHECK(read().error().what == "pooling by max_tokens is not supported");
  write("1_Pooling/config.json",
        R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})");
  CHECK(read().error().what == "2 ways of pooling");
  write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "pooling_mode": ["cls"]})");
  CHECK(value(read()).kind == PoolingKind::cls);
  write("1_Pooling/config.json", R"({"pooling_mode_cls_token": false, "include_prompt": false})");
  CHECK(value(read()).kind == PoolingKind::mean);
  CHECK_FALSE(value(read()).pools_prompt);
  write("2_Normalize/config.json", R"({"module_input_name": "token_embeddings"})");
  CHECK(read().error().what == "expected sentence_embedding, got \"token_embeddings\"");
  write("2_Normalize/config.json", "{}");
  write("sentence_bert_config.json", R"({"do_lower_case": true})");
  CHECK(read().error().what == "expected nothing here, got true");
  write("sentence_bert_config.json", R"({"modality_config": {"message": {"method": "forward"}}})");
  CHECK(read().error().what.starts_with("expected text alone"));
  write("sentence_bert_config.json", R"({"wordpieces": 3})");
  CHECK(read().error().what.starts_with("expected no such key in a Transformer module"));
  // An older name, and the tokenizer's length where no file says another.
  write("sentence_bert_config.json", "{}");
  write("sentence_xlm-roberta_config.json", R"({"max_seq_length": 128})");
  CHECK(value(read()).max_tokens == 128);
  write("sentence_xlm-roberta_config.json", R"({"do_lower_case": false})");
  CHECK_FALSE(value(read()).max_tokens.has_value());
  write("tokenizer_config.json", R"({"model_max_length": 64})");
  CHECK(value(read()).max_tokens == 64);
  write("modules.json",
        R"([{"path": "../1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  CHECK(read().error().what == "'../1_Pooling' leads out of the model's folder");
  write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  CHECK(read().error().what == "module 'sentence_transformers.models.Dense' is not supported");
}

TEST_CASE("prompts of config_sentence_transformers.json") {
  const TemporaryDirectory folder;
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(std::filesystem::path(folder.path()) / name) << text;
  };
  const auto read = [&] { return find_pooling(folder.path()); };
  const auto chosen = [](const Pooling& pooling, std::optional<std::string> text,
                         std::optional<std::string> name) {
    const auto prompt = choose_prompt(pooling.prompts, text, name);
    return prompt ? *prompt : prompt.error().message();
  };
  constexpr const char* kFile = "config_sentence_transformers.json";
  write(kFile, R"({"prompts": {"query": "query: ", "old": null}, "default_prompt_name": "query",
                   "similarity_fn_name": "dot", "__version__": {"transformers": "5.0"}})");
  // sentence-transformers reads it beside a modules.json alone.
  CHECK(value(read()).prompts.all.empty());
  CHECK(chosen(value(read()), {}, "query") ==
        "no prompt is called \"query\"; the model has none: give the prompt itself");
  write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"}])");
  const Pooling pooling = value(read());
  CHECK(chosen(pooling, {}, {}) == "query: ");
  CHECK(chosen(pooling, "", {}) == "");
  CHECK(chosen(pooling, "to: ", {}) == "to: ");
  CHECK(chosen(pooling, {}, "old") == "");
  CHECK(chosen(pooling, {}, "document") == "");
  CHECK(chosen(pooling, {}, "x") == "no prompt is called \"x\"; one of: query, document, old");
  CHECK(chosen(pooling, "a", "query") ==
        "a prompt and a prompt's name are given; give one of them");
  write(kFile, R"({"prompts": {"query": "query: "}})");
  CHECK(chosen(value(read()), {}, {}) == "");
  CHECK(chosen(value(read()), {}, "query") == "query: ");
  write(kFile, R"({"default_prompt_name": "passage"})");
  CHECK(read().error().what == "no prompt is called \"passage\"");
  write(kFile, R"({"truncate_dim": 8})");
  CHECK(read().error().what == "expected null, got 8");
  write(kFile, R"({"model_type": "SparseEncoder"})");
  CHECK(read().error().what == "expected SentenceTransformer, got \"SparseEncoder\"");
}

}  // namespace
}  // namespace sinter::embed_test
