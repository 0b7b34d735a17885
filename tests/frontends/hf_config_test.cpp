// The meaning of config.json in its three generations.
#include "frontends/config_text.h"

namespace sinter::hf_config_test {
namespace {

using testing::message_of;
using testing::read_config;
using testing::with;
using testing::without;

ModelSpec spec_of(const std::string& config, const std::string& generation = "") {
  auto model = read_config(config, generation);
  REQUIRE_MESSAGE(model, message_of(model));
  return model->spec;
}

TEST_CASE("llama: every field") {
  const ModelSpec spec = spec_of(testing::llama_config());
  ModelSpec expected;
  expected.name = "small";
  expected.dtype = DType::bf16;
  expected.vocabulary = 40;
  expected.hidden = 12;
  expected.layers = 1;
  expected.heads = 4;
  expected.kv_heads = 2;
  expected.head_dim = 4;
  expected.ffn = 20;
  expected.max_positions = 20;
  expected.norm = NormKind::rms_norm;
  expected.norm_eps = 1e-6;
  expected.rope = Rope{.theta = 500000.0, .rotary = 4};
  expected.activation = OpKind::silu;
  expected.gated = true;
  expected.attention_scale = 0.5;
  expected.eos = {2, 5};
  CHECK(spec == expected);
}

TEST_CASE("llama: the three generations say the same") {
  const std::string old = testing::llama_config();
  const std::string late = with(with(with(without(old, "torch_dtype"), "dtype", "\"bfloat16\""),
                                     "layer_types", "[\"full_attention\"]"),
                                "rope_scaling", "null");
  const std::string v5 =
      with(without(without(late, "rope_theta"), "rope_scaling"), "rope_parameters",
           R"({"rope_theta": 500000.0, "rope_type": "default"})");
  CHECK(spec_of(old) == spec_of(late));
  CHECK(spec_of(old) == spec_of(v5));
}

TEST_CASE("llama: scaled rotary positions in the three generations") {
  const std::string base = testing::llama_config();
  const std::string fields =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64)";
  const ModelSpec oldest =
      spec_of(with(base, "rope_scaling", "{\"type\": \"llama3\", " + fields + "}"));
  // Files with both names of the key and two opinions exist.
  const ModelSpec late = spec_of(with(
      base, "rope_scaling", "{\"type\": \"linear\", \"rope_type\": \"llama3\", " + fields + "}"));
  const ModelSpec v5 =
      spec_of(with(without(base, "rope_theta"), "rope_parameters",
                   "{\"rope_type\": \"llama3\", \"rope_theta\": 500000, " + fields + "}"));
  REQUIRE(oldest.rope);
  CHECK(oldest.rope->scaling == RopeScaling::llama3);
  CHECK(oldest.rope->factor == 8.0);
  CHECK(oldest.rope->original_max_positions == 64);
  CHECK(oldest == late);
  CHECK(oldest == v5);

  const ModelSpec linear =
      spec_of(with(base, "rope_scaling", R"({"type": "linear", "factor": 2})"));
  CHECK(linear.rope->scaling == RopeScaling::linear);
  CHECK(linear.rope->factor == 2.0);
  CHECK(rope_frequencies(*linear.rope, 20)[0] == 0.5);
}

TEST_CASE("llama3 scaling without an original length takes the model's") {
  const ModelSpec spec = spec_of(
      with(testing::llama_config(), "rope_scaling",
           R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4})"));
  CHECK(spec.rope->original_max_positions == spec.max_positions);
}

TEST_CASE("rope: an empty rope_scaling counts as absent, the dict wins over top-level keys") {
  const std::string both =
      with(with(testing::llama_config(), "rope_scaling", "{}"), "rope_parameters",
           R"({"rope_type": "default", "rope_theta": 777})");
  CHECK(spec_of(both).rope->theta == 777.0);
}

TEST_CASE("gpt_neox: the three generations say the same, four copies of a fact included") {
  const std::string old = testing::gpt_neox_config();
  const std::string late = with(with(old, "rope_theta", "10000.0"), "partial_rotary_factor", "0.5");
  const std::string v5 =
      with(with(without(without(without(old, "rotary_pct"), "rotary_emb_base"), "torch_dtype"),
                "dtype", "\"float16\""),
           "rope_parameters",
           R"({"partial_rotary_factor": 0.5, "rope_theta": 10000.0, "rope_type": "default"})");
  const ModelSpec spec = spec_of(old);
  CHECK(spec.rope->rotary == 4);
  CHECK(spec.activation == OpKind::gelu);
  CHECK(spec.residual == ResidualForm::parallel);
  CHECK(spec.dtype == DType::f16);
  CHECK(spec == spec_of(late));
  CHECK(spec == spec_of(v5));
}

TEST_CASE("gpt_neox: a quarter rotates where no key says") {
  const std::string config =
      with(without(testing::gpt_neox_config(), "rotary_pct"), "hidden_size", "32");
  CHECK(spec_of(config).rope->rotary == 4);
}

TEST_CASE("gpt2: n_positions is the table, aliases are read, unset keys have their defaults") {
  const ModelSpec spec = spec_of(testing::gpt2_config());
  CHECK(spec.max_positions == 20);
  CHECK(spec.ffn == 48);
  CHECK(spec.tied);
  CHECK(!spec.rope);
  CHECK(spec.activation == OpKind::gelu_tanh);
  CHECK(spec.dtype == DType::f32);
  CHECK(spec.eos == std::vector<int64_t>{39});
  const std::string alias = with(without(testing::gpt2_config(), "n_embd"), "hidden_size", "12");
  CHECK(spec == spec_of(alias));
}

TEST_CASE("gpt2: the switches of attention's scale") {
  const std::string config = with(testing::gpt2_config(), "scale_attn_weights", "false");
  CHECK(spec_of(config).attention_scale == 1.0);
  const ModelSpec inverse =
      spec_of(with(testing::gpt2_config(), "scale_attn_by_inverse_layer_idx", "true"));
  CHECK(inverse.attention_scale == 0.5);
  CHECK(inverse.scale_by_inverse_layer);
}

TEST_CASE("activations: gelu is the exact one") {
  for (auto [name, kind] :
       {std::pair{"gelu", OpKind::gelu}, std::pair{"gelu_new", OpKind::gelu_tanh},
        std::pair{"gelu_pytorch_tanh", OpKind::gelu_tanh},
        std::pair{"gelu_fast", OpKind::gelu_tanh}, std::pair{"quick_gelu", OpKind::quick_gelu},
        std::pair{"swish", OpKind::silu}, std::pair{"relu", OpKind::relu}})
    CHECK(spec_of(with(testing::llama_config(), "hidden_act", fmt::format("\"{}\"", name)))
              .activation == kind);
}

TEST_CASE("llama: defaults of absent keys, and biases") {
  std::string config = testing::llama_config();
  for (const char* key : {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta",
                          "tie_word_embeddings", "torch_dtype", "eos_token_id", "architectures"})
    config = without(config, key);
  config = with(config, "hidden_size", "16");
  const ModelSpec spec = spec_of(config);
  CHECK(spec.kv_heads == 4);
  CHECK(spec.head_dim == 4);
  CHECK(spec.norm_eps == 1e-6);
  CHECK(spec.rope->theta == 10000.0);
  CHECK(!spec.tied);
  CHECK(spec.dtype == DType::f32);
  CHECK(spec.eos.empty());
  const ModelSpec biased =
      spec_of(with(with(config, "attention_bias", "true"), "mlp_bias", "true"));
  CHECK(biased.qkv_bias);
  CHECK(biased.attention_out_bias);
  CHECK(biased.mlp_bias);
}

TEST_CASE("generation_config.json wins over the config's end of text") {
  CHECK(spec_of(testing::llama_config(), R"({"eos_token_id": 7})").eos == std::vector<int64_t>{7});
  CHECK(spec_of(testing::llama_config(), R"({"temperature": 0.5})").eos ==
        std::vector<int64_t>{2, 5});
}

TEST_CASE("harmless keys, and unknown ones that are null") {
  const std::string config =
      with(with(with(testing::llama_config(), "pretraining_tp", "2"), "sliding_window", "null"),
           "_name_or_path", "\"somewhere\"");
  CHECK(spec_of(config) == spec_of(testing::llama_config()));
}

TEST_CASE("keys with an underscore: those of transformers are silent, others are noted") {
  std::vector<std::string> notes;
  const auto read = [&](const std::string& config, std::vector<std::string> names = {}) {
    return read_hf_config(
        *parse_json(config, "config.json"), nullptr, "small",
        {std::move(names), [&](const std::string& note) { notes.push_back(note); }});
  };
  const std::string config = testing::llama_config();
  const ModelSpec spec = spec_of(config);
  for (const char* key : {"_model_name_or_path", "_from_auto", "_attn_implementation_autoset"})
    CHECK(read(with(config, key, "\"x\""))->spec == spec);
  CHECK(notes.empty());
  CHECK(read(with(config, "_somebody's", "7"))->spec == spec);
  CHECK(notes ==
        std::vector<std::string>{"config.json: /_somebody's: the key is not known and is ignored"});
  CHECK(read(with(config, "_somebody's", "7"), {"_somebody's"})->spec == spec);
  CHECK(notes.size() == 1);
}

TEST_CASE("keys that are ignored at the caller's wish") {
  const std::string config = testing::llama_config();
  const auto read = [](const std::string& text, std::vector<std::string> names) {
    return read_hf_config(*parse_json(text, "config.json"), nullptr, "small", {std::move(names)});
  };
  const std::string odd = with(with(config, "color", "7"), "mood", "[1]");
  CHECK(read(odd, {"mood", "color", "absent"})->spec == spec_of(config));
  CHECK(testing::message_of(read(odd, {"mood"})).find("/color: ") != std::string::npos);
  CHECK(
      testing::message_of(read(config, {"hidden_size"})) ==
      "config.json: /hidden_size: a key that is read for this model_type cannot be ignored; leave "
      "out --ignore-key hidden_size");
}

TEST_CASE("numbers that nothing reads may be of any size") {
  const std::string config =
      with(testing::llama_config(), "max_length", "1000000000000000019884624838656");
  CHECK(spec_of(with(config, "temperature", "1e400")) == spec_of(testing::llama_config()));
}

TEST_CASE("roberta: positions begin behind the padding token's row") {
  const std::string roberta = R"({
  "model_type": "roberta",
  "vocab_size": 40, "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 1,
  "intermediate_size": 20, "max_position_embeddings": 20, "type_vocab_size": 1,
  "pad_token_id": 4, "output_past": true
})";
  const HfModel model = *testing::read_config(roberta);
  CHECK(model.spec.max_positions == 15);
  CHECK(model.map.rules.at("embed.pos.weight").begin == 5);
  CHECK(model.map.rules.at("embed.pos.weight").group_rows == 20);
  CHECK(testing::message_of(testing::read_config(with(roberta, "pad_token_id", "19"))) ==
        "config.json: /pad_token_id: expected an integer from 0 to 18, got 19; correct this value");
}

TEST_CASE("gemma: gelu of the first files means its approximation") {
  const std::string gemma = with(testing::llama_config(), "model_type", "\"gemma\"");
  const std::string plain = without(without(gemma, "architectures"), "hidden_act");
  CHECK(spec_of(plain).activation == OpKind::gelu_tanh);
  CHECK(spec_of(with(plain, "hidden_act", "\"gelu\"")).activation == OpKind::gelu_tanh);
  CHECK(spec_of(with(plain, "hidden_act", "\"silu\"")).activation == OpKind::silu);
  CHECK(spec_of(with(with(plain, "hidden_act", "\"silu\""), "hidden_activation", "\"gelu\""))
            .activation == OpKind::gelu);
}

TEST_CASE("smollm3: layers without rotation, by their interval or by a list") {
  const std::string base =
      with(without(testing::llama_config(), "architectures"), "model_type", "\"smollm3\"");
  const std::string config = with(with(base, "num_hidden_layers", "4"), "max_window_layers", "28");
  CHECK(spec_of(config).rotated == std::vector<bool>{true, true, true, false});
  CHECK(spec_of(with(config, "no_rope_layers", "[0, 1, 1, 1]")).rotated ==
        std::vector<bool>{false, true, true, true});
  CHECK(spec_of(with(config, "no_rope_layers", "[1, 1, 1, 1]")).rotated.empty());
  CHECK(testing::message_of(testing::read_config(with(config, "no_rope_layers", "[1]"))) ==
        "config.json: /no_rope_layers/1: the key is missing, expected an integer from 0 to 1; add "
        "it");
  const ModelSpec windows =
      spec_of(with(with(config, "use_sliding_window", "true"), "sliding_window", "8"));
  CHECK(windows.window == 8);
  CHECK(windows.windowed == std::vector<bool>{false, false, false, true});
}

TEST_CASE("experts: how each family weighs them") {
  const auto experts = [](const std::string& type) {
    return spec_of(testing::experts_config(type)).experts;
  };
  CHECK(experts("mixtral") == Experts{.count = 4,
                                      .chosen = 2,
                                      .ffn = 20,
                                      .routing = Routing::softmax_first,
                                      .normalized = true,
                                      .wide_weights = true});
  CHECK(experts("olmoe") == Experts{.count = 4, .chosen = 2, .ffn = 20});
  CHECK(experts("granitemoe") ==
        Experts{.count = 4, .chosen = 2, .ffn = 20, .routing = Routing::choice_first});
  CHECK(experts("qwen2_moe") ==
        Experts{.count = 4, .chosen = 2, .ffn = 1408, .shared_ffn = 5632, .shared_gate = true});
  CHECK(experts("qwen3_moe") == Experts{.count = 4, .chosen = 2, .ffn = 768});
  for (const char* type : {"olmoe", "qwen2_moe", "qwen3_moe"})
    CHECK(
        spec_of(with(testing::experts_config(type), "norm_topk_prob", "true")).experts->normalized);
}

TEST_CASE("experts: sizes that the classes of transformers have where the files say none") {
  for (const auto& [type, count, chosen] : {std::tuple("mixtral", 8, 2),
                                            {"olmoe", 64, 8},
                                            {"granitemoe", 8, 2},
                                            {"qwen2_moe", 60, 4},
                                            {"qwen3_moe", 128, 8}}) {
    CAPTURE(type);
    const ModelSpec spec = spec_of(
        without(without(testing::experts_config(type), "num_experts"), "num_experts_per_tok"));
    CHECK(spec.experts->count == count);
    CHECK(spec.experts->chosen == chosen);
  }
  CHECK(spec_of(with(without(testing::experts_config("mixtral"), "num_experts"),
                     "num_local_experts", "6"))
            .experts->count == 6);
}

TEST_CASE("experts: the layers that have them") {
  const std::string config = with(testing::experts_config("qwen3_moe"), "num_hidden_layers", "4");
  const auto sparse = [](const std::string& text) { return spec_of(text).experts->sparse; };
  CHECK(sparse(with(config, "mlp_only_layers", "[]")).empty());
  CHECK(sparse(with(config, "mlp_only_layers", "[0, 2]")) ==
        std::vector<bool>{false, true, false, true});
  CHECK(sparse(with(config, "decoder_sparse_step", "2")) ==
        std::vector<bool>{false, true, false, true});
  CHECK(sparse(with(with(config, "decoder_sparse_step", "2"), "mlp_only_layers", "[1]")) ==
        std::vector<bool>{false, false, false, true});
  CHECK_FALSE(spec_of(with(config, "decoder_sparse_step", "5")).experts);
}

TEST_CASE("experts: windows of qwen2_moe, qwen3_moe and mixtral") {
  const auto slides = [](const char* type) {
    const std::string config = with(testing::experts_config(type), "num_hidden_layers", "4");
    return with(with(config, "sliding_window", "7"), "use_sliding_window", "true");
  };
  CHECK(spec_of(slides("qwen2_moe")).windowed == std::vector<bool>{true, false, true, false});
  CHECK(spec_of(with(slides("qwen2_moe"), "max_window_layers", "1")).windowed ==
        std::vector<bool>{true, false, false, false});
  CHECK(spec_of(slides("qwen3_moe")).window == 7);
  CHECK(spec_of(slides("qwen3_moe")).windowed.empty());
  CHECK_FALSE(spec_of(with(slides("qwen3_moe"), "use_sliding_window", "false")).window);
  CHECK(spec_of(without(slides("mixtral"), "use_sliding_window")).window == 7);
  CHECK_FALSE(spec_of(testing::experts_config("mixtral")).window);
}

TEST_CASE("modernbert: the first files and those of transformers 5 say the same") {
  const std::string config = R"({
  "model_type": "modernbert",
  "vocab_size": 40, "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 4,
  "intermediate_size": 20, "max_position_embeddings": 64,
  "norm_eps": 1e-05, "local_attention": 8
})";
  const std::string first =
      with(with(with(config, "global_rope_theta", "5000"), "local_rope_theta", "300.0"),
           "global_attn_every_n_layers", "2");
  const ModelSpec spec = spec_of(first);
  CHECK(spec.window == 9);
  CHECK(spec.windowed == std::vector<bool>{false, true, false, true});
  CHECK(spec.rope->theta == 5000);
  CHECK(spec.local_rope->theta == 300);
  const std::string types =
      R"(["full_attention", "sliding_attention", "full_attention", "sliding_attention"])";
  const std::string positions = R"({"full_attention": {"rope_type": "default", "rope_theta": 5000},
    "sliding_attention": {"rope_type": "default", "rope_theta": 300}})";
  CHECK(spec_of(with(with(config, "layer_types", types), "rope_parameters", positions)) == spec);
}

TEST_CASE("rotary frequencies: short wavelengths stay, long ones stretch, a blend in between") {
  const Rope rope{.theta = 500000.0,
                  .rotary = 16,
                  .scaling = RopeScaling::llama3,
                  .factor = 8.0,
                  .low_freq_factor = 1.0,
                  .high_freq_factor = 4.0,
                  .original_max_positions = 64};
  const double expected[] = {1.0,
                             0.07940300917920821,
                             0.004700753866357992,
                             0.0009115830921521387,
                             0.00017677669529663688,
                             3.428102195952591e-05,
                             6.647869871181235e-06,
                             1.2891731721515574e-06};
  const std::vector<double> frequencies = rope_frequencies(rope, 64);
  REQUIRE(frequencies.size() == 8);
  for (size_t i = 0; i < 8; ++i)
    CHECK(frequencies[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

}  // namespace
}  // namespace sinter::hf_config_test
