// `sinter inspect` of a model of ordinary size reads its headers alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "frontends/gguf_bytes.h"
#include "runtime/temporary_directory.h"

namespace sinter::inspect_test {
namespace {

/// Llama-2-7B in one file of 13.5 GB, all of it a hole after the header.
void write_hollow_7b(const std::string& folder) {
  constexpr int64_t kHidden = 4096, kFfn = 11008, kVocabulary = 32000, kLayers = 32;
  using Json = nlohmann::ordered_json;
  const Json config = {{"model_type", "llama"},     {"hidden_size", kHidden},
                       {"intermediate_size", kFfn}, {"num_hidden_layers", kLayers},
                       {"num_attention_heads", 32}, {"num_key_value_heads", 32},
                       {"vocab_size", kVocabulary}, {"max_position_embeddings", 4096},
                       {"rms_norm_eps", 1e-5},      {"hidden_act", "silu"},
                       {"dtype", "float16"}};
  write_whole(folder + "/config.json", config.dump());
  Json header = Json::object();
  int64_t offset = 0;
  const auto put = [&](const std::string& name, const std::vector<int64_t>& dims) {
    int64_t bytes = 2;
    for (int64_t dim : dims) bytes *= dim;
    header[name] = {{"dtype", "F16"}, {"shape", dims}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  put("model.embed_tokens.weight", {kVocabulary, kHidden});
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      put(prefix + norm + ".weight", {kHidden});
    for (const char* part : {"q", "k", "v", "o"})
      put(fmt::format("{}self_attn.{}_proj.weight", prefix, part), {kHidden, kHidden});
    for (const char* part : {"gate", "up"})
      put(fmt::format("{}mlp.{}_proj.weight", prefix, part), {kFfn, kHidden});
    put(prefix + "mlp.down_proj.weight", {kHidden, kFfn});
  }
  put("model.norm.weight", {kHidden});
  put("lm_head.weight", {kVocabulary, kHidden});
  const std::string text = header.dump();
  const uint64_t length = text.size();
  const std::string file = folder + "/model.safetensors";
  write_whole(file, std::string(reinterpret_cast<const char*>(&length), sizeof length) + text);
  std::filesystem::resize_file(file, sizeof length + length + static_cast<uint64_t>(offset));
}

TEST_CASE("inspect of a 7B model reads no weights") {
  const TemporaryDirectory folder;
  write_hollow_7b(folder.path());
  // A shell's read count includes its children's once they have ended.
  const ProgramRun run = run_shell(fmt::format(
      "\"$SINTER\" inspect {} --json || exit; grep rchar: /proc/$$/io >&2", folder.path()));
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(nlohmann::json::parse(run.out)["parameters"] == 6738415616);
  constexpr int64_t kMaxBytes = 4 << 20;
  if (const size_t at = run.err.find("rchar: "); at != run.err.npos)
    CHECK(std::stoll(run.err.substr(at + 7)) < kMaxBytes);
}

TEST_CASE("inspect says what the model can take, and of an encoder no cache") {
  const auto facts = [](const std::string& name) {
    const ProgramRun run = run_program({"inspect", SINTER_TESTS_DIR "/golden/" + name});
    CAPTURE(run.err);
    CHECK(run.code == 0);
    return run.out;
  };
  const std::string longrope = facts("phi3_longrope_short");
  CAPTURE(longrope);
  CHECK(longrope.find("longrope: short factors for texts up to 48, long ones beyond), up to 64") !=
        longrope.npos);
  CHECK(longrope.find("2, hidden size 32") != longrope.npos);
  CHECK(longrope.find("cache per token") != longrope.npos);
  CHECK(facts("bert_post_ln").find("cache per token") == std::string::npos);
}

TEST_CASE("inspect says what a token reads of a mixture of experts") {
  const ProgramRun run =
      run_program({"inspect", SINTER_TESTS_DIR "/../samples/qwen3-30b-a3b.json", "--json"});
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  const auto json = nlohmann::json::parse(run.out);
  CHECK(json["parameters"] == 30532122624);
  // 128 (1 - (1 - 8/128)^8) = 51.6 experts
  CHECK(json["facts"]["a token reads"] ==
        "3.04 G parameters, 6.08 GB; 8 tokens 52 of a layer's 128 experts, 32 tokens 112, where "
        "all experts are as likely");
}

TEST_CASE("inspect says which files of a folder change nothing") {
  const TemporaryDirectory folder;
  write_hollow_7b(folder.path());
  const auto ignored = [&] {
    const ProgramRun run = run_program({"inspect", folder.path(), "--json"});
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    return nlohmann::json::parse(run.out)["facts"].value("files ignored", "none");
  };
  CHECK(ignored() == "none");
  for (const char* name : {"preprocessor_config.json", "vocab.txt", "tokenizer_config.json"})
    write_whole(folder.path() + "/" + name, "{}");
  CHECK(ignored() == "preprocessor_config.json");
  write_whole(folder.path() + "/tokenizer.json", "{}");
  CHECK(ignored() == "vocab.txt, preprocessor_config.json");
}

TEST_CASE("inspect of a GGUF file says what it holds") {
  GgufBytes bytes;
  bytes.string("general.architecture", "llama").number<uint32_t>("llama.block_count", 4, 2);
  bytes.tensor("blk.0.attn_q.weight", 12, {512, 3}, 864);
  bytes.tensor("blk.1.attn_q.weight", 12, {512, 3}, 864).tensor("output_norm.weight", 0, {5}, 20);
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/m.gguf";
  write_whole(path, bytes.file());
  const ProgramRun run = run_program({"inspect", path});
  CHECK(run.code == 0);
  CHECK(run.out ==
        "m.gguf: GGUF 3, 1 file, 3 tensors, 1.75 KB\n"
        "\n"
        "general.architecture  \"llama\"\n"
        "llama.block_count     2\n"
        "\n"
        "type  tensors    bytes\n"
        "Q4_K        2  1.73 KB\n"
        "F32         1     20 B\n"
        "\n"
        "tensor               count  type            bytes\n"
        "blk.*.attn_q.weight      2  Q4_K[3, 512]  1.73 KB\n"
        "output_norm.weight       1  F32[5]           20 B\n");
  const auto json = nlohmann::json::parse(run_program({"inspect", path, "--json"}).out);
  CHECK(json["metadata"]["llama.block_count"] == 2);
  CHECK(json["tensors"][1]["dims"] == nlohmann::json({3, 512}));
  write_whole(path, bytes.file(4));
  const ProgramRun broken = run_program({"inspect", path});
  CHECK(broken.code == 4);
  CHECK(broken.err.find("a tensor has no name") != std::string::npos);
}

}  // namespace
}  // namespace sinter::inspect_test
