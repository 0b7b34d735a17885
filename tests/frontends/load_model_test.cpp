// load_model on the golden models, and on folders that are not quite models. One file: its cases
// alter the same small models by the same few functions.
#include "frontends/load_model.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "frontends/config_text.h"
#include "frontends/files/safetensors.h"
#include "golden/models.h"
#include "ir/code_format.h"
#include "ir/sym_expr.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter::load_model_test {
namespace {

namespace fs = std::filesystem;
using testing::message_of;

const fs::path kGolden = fs::path(SINTER_TESTS_DIR) / "golden";

std::string read_text(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A folder that lives as long as its test.
class ScratchFolder {
 public:
  ScratchFolder() {
    static int count = 0;
    path_ = fs::temp_directory_path() / fmt::format("sinter-load-{}-{}", getpid(), count++);
    fs::create_directories(path_);
  }
  ~ScratchFolder() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A golden model with another config.
ScratchFolder golden_with(const std::string& name, const std::string& key,
                          const std::string& value) {
  ScratchFolder folder;
  folder.write("config.json", testing::with(read_text(kGolden / name / "config.json"), key, value));
  fs::copy(kGolden / name / "model.safetensors", folder.path());
  return folder;
}

std::string load_error(const ScratchFolder& folder, const std::string& file = "") {
  std::string message = message_of(load_model((folder.path() / file).string()));
  const std::string path = folder.path().string();
  for (size_t at = message.find(path); at != std::string::npos; at = message.find(path))
    message.replace(at, path.size(), "DIR");
  return message;
}

TEST_CASE("golden models: every tensor of the file is used, with its shape") {
  for (const char* name : kGoldenDecoders) {
    CAPTURE(name);
    auto model = load_model((kGolden / name).string());
    REQUIRE_MESSAGE(model, message_of(model));
    REQUIRE(model->tensors);
    CHECK(model->spec->name == name);
    const Status verified = verify(model->module);
    CHECK_MESSAGE(verified, message_of(verified));
    std::set<std::string> used;
    for (const Weight& weight : model->module.weights) {
      const Op& result = weight.init[weight.init.outputs[0]];
      CHECK(result.type == weight.type);
      for (const Op& op : weight.init.ops()) {
        if (op.kind != OpKind::file) continue;
        const auto& tensor = op.attrs.get<std::string>(AttrName::tensor);
        CHECK(model->tensors->find(tensor) == op.type);
        used.insert(tensor);
      }
    }
    auto file = open_safetensors((kGolden / name / "model.safetensors").string());
    REQUIRE(file);
    for (const FileTensor& tensor : file->tensors())
      CHECK_MESSAGE(used.contains(tensor.name), tensor.name);
  }
}

TEST_CASE("fused projections are cut without holes or overlaps") {
  // Rows that q, k and v take of the fused tensor, by following the weight functions.
  for (const char* name : {"gpt2", "gpt_neox_parallel"}) {
    CAPTURE(name);
    const Model model = *load_model((kGolden / name).string());
    const int64_t rows = 3 * model.spec->hidden;
    std::vector<int> taken(static_cast<size_t>(rows));
    for (const char* which : {"l1.q.bias", "l1.k.bias", "l1.v.bias"}) {
      const Graph& init = model.module.find_weight(which)->init;
      int64_t groups = 1, group_rows = rows;
      for (const Op& op : init.ops()) {
        if (op.kind == OpKind::reshape && op.type.rank() == 2) {
          groups = op.type.dims[0].constant();
          group_rows = op.type.dims[1].constant();
        }
        if (op.kind != OpKind::slice) continue;
        const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
        for (int64_t group = 0; group < groups; ++group)
          for (int64_t row = 0; row < op.attrs.get<Dim>(AttrName::size).constant(); ++row)
            ++taken[static_cast<size_t>(group * group_rows + begin + row)];
      }
    }
    CHECK(taken == std::vector<int>(static_cast<size_t>(rows), 1));
  }
}

TEST_CASE("options: element type and stand-in weights") {
  auto model = load_model((kGolden / "llama").string(),
                          {.dtype = DType::bf16, .random_weights = {}, .streaming = {}});
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->spec->dtype == DType::bf16);
  const Weight& embed = *model->module.find_weight("embed.weight");
  CHECK(embed.type.dtype == DType::bf16);
  CHECK(embed.init.ops()[0].type.dtype == DType::f32);  // as in the file, cast when loaded

  const std::string spec = fmt::format("{}/llama-3.2-1b.json", SINTER_SAMPLES_DIR);
  auto random = load_model(spec, {.dtype = {}, .random_weights = 7, .streaming = {}});
  REQUIRE_MESSAGE(random, message_of(random));
  REQUIRE(random->tensors);
  const auto type = random->tensors->find("l3.k.weight");
  REQUIRE(type);
  CHECK(*type == TensorType{DType::bf16, {512, 2048}});
}

TEST_CASE("a folder with a config alone has no weights") {
  ScratchFolder folder;
  folder.write("config.json", read_text(kGolden / "gpt2" / "config.json"));
  auto model = load_model(folder.path().string());
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(!model->tensors);
  CHECK(load_model(folder.path().string(), {.dtype = {}, .random_weights = 1, .streaming = {}})
            ->tensors);
}

TEST_CASE("a checkpoint without an output projection is tied") {
  const ScratchFolder folder = golden_with("llama3_gqa_scaled_rope", "tie_word_embeddings", "null");
  auto model = load_model(folder.path().string());
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->spec->tied);
  CHECK(!model->module.find_weight("lm_head.weight"));
  CHECK(load_error(golden_with("llama3_gqa_scaled_rope", "tie_word_embeddings", "false")) ==
        "DIR/model.safetensors: no tensor named \"lm_head.weight\", and the config says that the "
        "output projection is not the embedding table; the upload is incomplete, or "
        "tie_word_embeddings is wrong");
}

/// The message from reading the embedding table.
std::string read_table(const Model& model) {
  const char* name = "model.embed_tokens.weight";
  const TensorType type = *model.tensors->find(name);
  std::vector<std::byte> out(static_cast<size_t>(storage_bytes(type).upper_bound({})));
  const Status read = model.tensors->read(name, out);
  return message_of(read);
}

TEST_CASE("a tied model's output projection must be the embedding table, once weights are read") {
  const ScratchFolder folder = golden_with("llama", "tie_word_embeddings", "true");
  auto model = load_model(folder.path().string());
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->spec->tied);
  CHECK(!model->module.find_weight("lm_head.weight"));
  CHECK(model->tied_tensors ==
        std::pair<std::string, std::string>{"model.embed_tokens.weight", "lm_head.weight"});
  const std::string file = (folder.path() / "model.safetensors").string();
  CHECK(model->tensors->files() == std::vector{file});
  CHECK(read_table(*model) ==
        file +
            ": tensor lm_head.weight differs from model.embed_tokens.weight, but the config "
            "says that they are one; say tie_word_embeddings: false (in a spec, tied: false), or "
            "remove lm_head.weight");
  const ScratchFolder apart = golden_with("llama", "tie_word_embeddings", "false");
  CHECK(!load_model(apart.path().string())->tied_tensors);
  CHECK(read_table(*load_model(apart.path().string())) == "no error");
}

const std::string kIncomplete =
    "; if the names are of another model, give its weights, else they are incomplete: download or "
    "export them again";

TEST_CASE("weights that do not fit the config") {
  CHECK(load_error(golden_with("llama", "vocab_size", "212")) ==
        "DIR/model.safetensors: tensor model.embed_tokens.weight is f32[211, 64], but the model's "
        "sizes ask for f32[212, 64] (weight embed.weight); correct the config's sizes or give the "
        "weights that belong to them");
  CHECK(load_error(golden_with("llama", "num_hidden_layers", "4")) ==
        "DIR/model.safetensors: no tensor named \"model.layers.3.input_layernorm.weight\" among "
        "30, which weight l3.norm1.weight needs as [64]; the first one is \"lm_head.weight\"" +
            kIncomplete);
  CHECK(load_error(golden_with("llama", "num_hidden_layers", "2")) ==
        "DIR/model.safetensors: tensor model.layers.2.input_layernorm.weight is no part of the "
        "model that the config describes; give a config and weights that belong together");
  CHECK(load_error(golden_with("llama", "attention_bias", "true")) ==
        "DIR/model.safetensors: no tensor named \"model.layers.0.self_attn.q_proj.bias\" among 30, "
        "which weight l0.q.bias needs as [64]; the first one is \"lm_head.weight\"" +
            kIncomplete);
  CHECK(load_error(golden_with("gpt_neox_parallel", "attention_bias", "false")) ==
        "DIR/model.safetensors: tensor gpt_neox.layers.0.attention.dense.bias is no part of the "
        "model that the config describes; give a config and weights that belong together");
  CHECK(load_error(golden_with("gpt2", "n_inner", "128")) ==
        "DIR/model.safetensors: tensor transformer.h.0.mlp.c_fc.weight is f32[64, 256], but the "
        "model's sizes ask for f32[64, 128] (weight l0.mlp.up.weight); correct the config's sizes "
        "or give the weights that belong to them");
}

/// A checkpoint of the config, with tensors of zeros, whose names are what `rename` makes of the
/// usual ones; further tensors have the names `extra`.
template <typename Rename>
ScratchFolder renamed(const std::string& config, Rename rename,
                      const std::vector<std::string>& extra = {}) {
  ScratchFolder folder;
  folder.write("config.json", config);
  auto model = load_model(folder.path().string());
  REQUIRE_MESSAGE(model, message_of(model));
  const std::vector<std::byte> zeros(1 << 16);
  std::vector<NamedTensor> tensors;
  for (const Weight& weight : model->module.weights)
    for (const Op& op : weight.init.ops()) {
      if (op.kind != OpKind::file) continue;
      NamedTensor tensor{rename(op.attrs.template get<std::string>(AttrName::tensor)),
                         to_file_dtype(op.type.dtype),
                         {},
                         {}};
      for (Dim dim : op.type.dims) tensor.dims.push_back(dim.constant());
      tensor.bytes =
          std::span(zeros).first(static_cast<size_t>(storage_bytes(op.type).upper_bound({})));
      tensors.push_back(std::move(tensor));
    }
  for (const std::string& name : extra)
    tensors.push_back({name, FileDType::F32, {2}, std::span(zeros).first(8)});
  const Status written = write_safetensors((folder.path() / "model.safetensors").string(), tensors);
  REQUIRE_MESSAGE(written, message_of(written));
  return folder;
}

template <typename Rename>
ScratchFolder renamed_llama(Rename rename) {
  return renamed(testing::llama_config(), rename);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST_CASE("experts: missing tensors, and shapes that do not fit") {
  const std::string config =
      testing::with(testing::experts_config("qwen3_moe"), "moe_intermediate_size", "6");
  const auto same = [](const std::string& name) { return name; };
  CHECK(load_error(renamed(config, same)) == "no error");
  const auto without_one = [](const std::string& name) {
    const bool one = name == "model.layers.0.mlp.experts.3.up_proj.weight";
    return one ? "ignored.rotary_emb.inv_freq" : name;
  };
  CHECK(load_error(renamed(config, without_one)) ==
        "DIR/model.safetensors: no tensor named \"model.layers.0.mlp.experts.3.up_proj.weight\" "
        "among 24, which weight l0.experts.gate_up.weight needs as [6, 16]; the first one is "
        "\"ignored.rotary_emb.inv_freq\"" +
            kIncomplete);
  CHECK(load_error(renamed(config, same, {"model.layers.0.mlp.experts.4.up_proj.weight"})) ==
        "DIR/model.safetensors: tensor model.layers.0.mlp.experts.4.up_proj.weight is no part of "
        "the model that the config describes; give a config and weights that belong together");
  CHECK(load_error(golden_with("qwen3_moe", "moe_intermediate_size", "10")) ==
        "DIR/model.safetensors: tensor model.layers.0.mlp.experts.0.gate_proj.weight is "
        "f32[12, 16], but the model's sizes ask for f32[10, 16] (weight "
        "l0.experts.gate_up.weight); correct the config's sizes or give the weights that belong to "
        "them");
  CHECK(load_error(golden_with("granitemoe", "intermediate_size", "16")) ==
        "DIR/model.safetensors: tensor model.layers.0.block_sparse_moe.input_linear.weight is "
        "f32[8, 24, 16], but the model's sizes ask for f32[8, 32, 16] (weight "
        "l0.experts.gate_up.weight); correct the config's sizes or give the weights that belong to "
        "them");
}

TEST_CASE("experts: packed rows of those that the config quantizes") {
  const std::string config = testing::with(
      testing::with(testing::experts_config("qwen3_moe"), "moe_intermediate_size", "32"),
      "quantization_config",
      R"({"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": false, "sym": true})");
  ScratchFolder folder;
  folder.write("config.json", config);
  for (const bool random : {false, true}) {
    LoadOptions options;
    if (random) options.random_weights = 3;
    const auto model = load_model(folder.path().string(), options);
    REQUIRE_MESSAGE(model, message_of(model));
    const int64_t words = row_words(*parse_code_format("int4 g16 f16"), 32);
    CHECK(model->module.find_weight("l0.experts.down.weight")->type ==
          TensorType{DType::i32, {4, 16, words}});
  }
}

TEST_CASE("experts: the names that transformers has in memory") {
  const auto granite = [](const std::string& name) {
    return replaced(replaced(replaced(name, "input_linear.weight", "experts.gate_up_proj"),
                             "output_linear.weight", "experts.down_proj"),
                    "router.layer", "router");
  };
  CHECK(load_error(renamed(testing::experts_config("granitemoe"), granite)) == "no error");
  const auto mixtral = [](const std::string& name) {
    return replaced(name, "block_sparse_moe.gate", "mlp.gate");
  };
  CHECK(load_error(renamed(testing::experts_config("mixtral"), mixtral)) == "no error");
}

TEST_CASE("experts: the tensors of more than 64 experts are stacked in blocks") {
  const std::string config =
      testing::with(testing::with(testing::experts_config("qwen3_moe"), "num_experts", "100"),
                    "moe_intermediate_size", "6");
  const ScratchFolder folder = renamed(config, [](const std::string& name) { return name; });
  const Model model = *load_model(folder.path().string());
  const Weight& weight = *model.module.find_weight("l0.experts.gate_up.weight");
  CHECK(weight.type == TensorType{DType::bf16, {100, 12, 16}});
  std::vector<std::string> order;
  for (const Op& op : weight.init.ops())
    if (op.kind == OpKind::file) order.push_back(op.attrs.get<std::string>(AttrName::tensor));
  REQUIRE(order.size() == 200);
  CHECK(order[2] == "model.layers.0.mlp.experts.1.gate_proj.weight");
  CHECK(order[199] == "model.layers.0.mlp.experts.99.up_proj.weight");
}

TEST_CASE("weight names with and without their prefix") {
  const auto bare = renamed_llama(
      [](std::string name) { return name.starts_with("model.") ? name.substr(6) : name; });
  CHECK(load_error(bare) == "no error");
  const auto foreign = renamed_llama([](std::string name) { return "text." + name; });
  CHECK(load_error(foreign) ==
        "DIR/model.safetensors: the weights hold no embedding table, neither "
        "model.embed_tokens.weight nor embed_tokens.weight; give weights that belong to the "
        "config's model_type");
}

TEST_CASE("weights of an element type that is not read are called so, not missing") {
  const ScratchFolder folder = renamed_llama([](std::string name) { return name; });
  const std::vector<std::byte> zeros(512);
  const std::vector<NamedTensor> wide = {
      {"model.embed_tokens.weight", FileDType::F64, {8, 8}, std::span(zeros)}};
  const Status written = write_safetensors((folder.path() / "model.safetensors").string(), wide);
  REQUIRE_MESSAGE(written, message_of(written));
  CHECK(load_error(folder).starts_with(
      "DIR/model.safetensors: tensor \"model.embed_tokens.weight\" has elements of type F64, "
      "expected F32, "));
}

TEST_CASE("bert: names of the oldest files, with and without a prefix, heads of other tasks") {
  const std::string config = R"({
  "model_type": "bert", "vocab_size": 40, "hidden_size": 12, "num_attention_heads": 3,
  "num_hidden_layers": 1, "intermediate_size": 20, "max_position_embeddings": 20})";
  const auto old = [](const std::string& name) {
    return replaced(replaced(name, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias",
                    "LayerNorm.beta");
  };
  CHECK(load_error(renamed(config, old)) == "no error");
  const auto bare = [](const std::string& name) { return replaced(name, "bert.", ""); };
  CHECK(load_error(renamed(config, bare, {"embeddings.position_ids", "pooler.dense.weight"})) ==
        "no error");
  CHECK(load_error(renamed(config, old, {"cls.predictions.bias", "bert.pooler.dense.bias"})) ==
        "no error");
  const std::string other = load_error(renamed(config, old, {"classifier.weight"}));
  CHECK(other.find("tensor classifier.weight is no part of the model") != std::string::npos);
}

TEST_CASE("opt and gemma3: prefixes, and tensors of another model beside the text model's") {
  const std::string opt = R"({
  "model_type": "opt", "vocab_size": 40, "hidden_size": 12, "num_attention_heads": 3,
  "num_hidden_layers": 1, "ffn_dim": 20, "max_position_embeddings": 20})";
  const auto decoder = [](const std::string& name) {
    return replaced(name, "model.decoder.", "decoder.");
  };
  CHECK(load_error(renamed(opt, decoder, {"lm_head.weight"})) == "no error");
  const std::string gemma = R"({
  "model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "vocab_size": 40,
  "hidden_size": 12, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
  "num_hidden_layers": 1, "intermediate_size": 20, "max_position_embeddings": 20, "sliding_window": 4},
  "vision_config": {}})";
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    const auto inside = [&](const std::string& name) { return replaced(name, "model.", prefix); };
    CHECK(load_error(renamed(gemma, inside, {"vision_tower.patch.weight"})) == "no error");
  }
}

TEST_CASE("gemma3 inside a multimodal model keeps an output projection of its own") {
  const std::string gemma = R"({
  "model_type": "gemma3", "tie_word_embeddings": false,
  "text_config": {"model_type": "gemma3_text", "vocab_size": 40, "tie_word_embeddings": false,
  "hidden_size": 12, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
  "num_hidden_layers": 1, "intermediate_size": 20, "max_position_embeddings": 20, "sliding_window": 4},
  "vision_config": {}})";
  const ScratchFolder folder = renamed(gemma, [](const std::string& name) {
    return name.starts_with("lm_head") ? "language_model." + name
                                       : replaced(name, "model.", "language_model.model.");
  });
  auto model = load_model(folder.path().string());
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(!model->spec->tied);
  CHECK(model->module.find_weight("lm_head.weight"));
  CHECK(model->tensors->find("language_model.lm_head.weight"));
}

TEST_CASE("settings for generating text that are not applied are named") {
  const auto unapplied = [](const std::string& generation) {
    ScratchFolder folder;
    folder.write("config.json", testing::llama_config());
    folder.write("generation_config.json", generation);
    auto model = load_model(folder.path().string());
    REQUIRE_MESSAGE(model, message_of(model));
    return model->unapplied;
  };
  CHECK(unapplied(R"({"repetition_penalty": 1.0, "temperature": 0.6, "suppress_tokens": [],
                      "forced_eos_token_id": null, "num_beams": 1})") ==
        std::vector<std::string>{});
  CHECK(unapplied(R"({"repetition_penalty": 1.05, "suppress_tokens": [3], "min_length": 2,
                      "forced_bos_token_id": 0})") ==
        std::vector<std::string>{"forced_bos_token_id 0", "min_length 2", "repetition_penalty 1.05",
                                 "suppress_tokens"});
  ScratchFolder folder;
  folder.write("config.json", testing::llama_config());
  folder.write("generation_config.json", "[]");
  CHECK(load_error(folder) ==
        "DIR/generation_config.json: expected an object, got an array of 0; correct this value");
}

TEST_CASE("the last token of a text is not fed") {
  CHECK(text_tokens(40, 0) == 40);
  CHECK(text_tokens(40, 1) == 40);
  CHECK(text_tokens(40, 9) == 48);
  const std::string folder = (kGolden / "phi3_longrope_short").string();
  LoadOptions options;
  options.context = 49;
  const Model model = *load_model(folder, options);
  CHECK(context_note(model, 48) == "");
  CHECK(context_note(model, 49) == "a text of 49 tokens exceeds 48: long factors for all of them");
}

TEST_CASE("a text of the long kind asks for the factors that belong to it") {
  const std::string folder = (kGolden / "phi3_longrope_short").string();
  const auto positions = [&](int64_t context) {
    LoadOptions options;
    options.context = context;
    return load_model(folder, options)->spec->max_positions;
  };
  CHECK(positions(0) == 48);
  CHECK(positions(48) == 48);
  CHECK(positions(49) == 64);
}

TEST_CASE("buffers are ignored, other tensors refused") {
  const auto add = [](const std::string& name) {
    ScratchFolder folder = renamed_llama([](std::string same) { return same; });
    const std::string path = (folder.path() / "model.safetensors").string();
    auto file = open_safetensors(path);
    std::vector<LoadedTensor> data;
    std::vector<NamedTensor> tensors;
    for (const FileTensor& tensor : file->tensors())
      data.push_back(*file->read_tensor(tensor.name));
    for (size_t i = 0; i < data.size(); ++i)
      tensors.push_back({file->tensors()[i].name, data[i].dtype, data[i].dims, data[i].bytes});
    const std::vector<std::byte> zeros(8);
    tensors.push_back({name, FileDType::F32, {2}, zeros});
    CHECK(write_safetensors(path, tensors));
    return load_error(folder);
  };
  CHECK(add("model.layers.0.self_attn.rotary_emb.inv_freq") == "no error");
  CHECK(add("model.layers.0.self_attn.q_norm.weight") ==
        "DIR/model.safetensors: tensor model.layers.0.self_attn.q_norm.weight is no part of the "
        "model that the config describes; give a config and weights that belong together");
}

TEST_CASE("a module in text form") {
  ScratchFolder folder;
  const Model model = *load_model((kGolden / "llama").string());
  folder.write("llama.sir", print_module(model.module));
  auto loaded = load_model((folder.path() / "llama.sir").string());
  REQUIRE_MESSAGE(loaded, message_of(loaded));
  CHECK(!loaded->spec);
  CHECK(!loaded->tensors);
  CHECK(print_module(loaded->module) == print_module(model.module));
  auto random = load_model((folder.path() / "llama.sir").string(),
                           {.dtype = {}, .random_weights = 3, .streaming = {}});
  REQUIRE(random);
  CHECK(random->tensors->find("model.norm.weight") == TensorType{DType::f32, {64}});
}

TEST_CASE("llama2.c files") {
  ScratchFolder folder;
  // dim, hidden_dim, layers, heads, kv_heads, vocabulary, positions; then zeros for the weights:
  // table, norms, q k v o, ffn norm, w1 w2 w3, final norm, two tables of frequencies.
  const int32_t header[] = {8, 12, 2, 2, 1, 20, 16};
  const size_t floats =
      20 * 8 + 2 * (8 + 8 * 8 + 4 * 8 + 4 * 8 + 8 * 8 + 8 + 3 * 8 * 12) + 8 + 2 * 16 * 2;
  folder.write("tiny.bin", std::string(reinterpret_cast<const char*>(header), sizeof header) +
                               std::string(4 * floats, '\0'));
  auto model = load_model((folder.path() / "tiny.bin").string());
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->spec->name == "tiny");
  CHECK(model->spec->rope->pairing == "interleaved");
  CHECK(model->spec->kv_heads == 1);
  CHECK(model->spec->head_dim == 4);
  CHECK(model->spec->tied);
  CHECK(model->module.find_weight("l1.k.weight")->type == TensorType{DType::f32, {4, 8}});
  CHECK(verify(model->module));
}

TEST_CASE("what is no model") {
  ScratchFolder folder;
  CHECK(
      load_error(folder) ==
      "DIR/: the folder has neither config.json nor model.sir; the folder is empty; a Hugging Face "
      "folder has config.json, a tokenizer and model.safetensors, a module's has model.sir");
  CHECK(load_error(folder, "nothing") == "DIR/nothing: no such file or folder; check the path");
  folder.write("model.txt", "hello");
  CHECK(load_error(folder, "model.txt") ==
        "DIR/model.txt: a file that ends in '.txt' is no model; give a Hugging Face folder, a "
        ".gguf, a llama2.c .bin, a spec .json, or a module .sir or its folder");
  folder.write("page.json", "<!DOCTYPE html><html></html>");
  CHECK(load_error(folder, "page.json") ==
        "DIR/page.json: this is a web page, not a model file; download the model again");
  folder.write("empty.bin", "");
  CHECK(load_error(folder, "empty.bin") ==
        "DIR/empty.bin: the file is empty; download the model again");
  folder.write("pointer.bin",
               "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  CHECK(load_error(folder, "pointer.bin") ==
        "DIR/pointer.bin: this is a git-lfs pointer, not the file it stands for; run `git lfs "
        "pull` in the model's folder");
  folder.write("config.json", "<!DOCTYPE html><html></html>");
  CHECK(load_error(folder) ==
        "DIR/config.json: this is a web page, not a model file; download the model again");
}

}  // namespace
}  // namespace sinter::load_model_test
