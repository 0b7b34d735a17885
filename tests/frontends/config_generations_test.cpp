// The golden models' configs, rewritten as older versions of transformers wrote them: each reads as
// the same model, down to the module's text.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "frontends/config_text.h"
#include "frontends/model/build_model.h"
#include "frontends/model/spec_json.h"
#include "golden/models.h"
#include "ir/text.h"
#include "support/result.h"

namespace sinter::config_generations_test {
namespace {

using Json = nlohmann::json;

Json config_of(const std::string& name) {
  std::ifstream file(fmt::format("{}/golden/{}/config.json", SINTER_TESTS_DIR, name));
  REQUIRE_MESSAGE(file, name);
  return Json::parse(file);
}

HfModel read(const Json& config) { return value(testing::read_config(config.dump(2))); }

std::string module_text(const HfModel& model) {
  auto module =
      build_model(model.spec, {model.map, model.map.prefixes.front()}, nullptr, "config.json");
  REQUIRE_MESSAGE(module, testing::message_of(module));
  return print_module(*module);
}

void rename(Json& object, const char* from, const char* to) {
  if (!object.contains(from) || std::string_view(from) == to) return;
  object[to] = object[from];
  object.erase(from);
}

/// One rotary dict as top-level keys: theta, part, and the rest under rope_scaling.
void flatten_rope(Json& config, Json dict, const char* type_key) {
  const bool neox = config["model_type"] == "gpt_neox";
  if (dict.contains("rope_theta"))
    config[neox ? "rotary_emb_base" : "rope_theta"] = dict["rope_theta"];
  if (dict.contains("partial_rotary_factor"))
    config[neox ? "rotary_pct" : "partial_rotary_factor"] = dict["partial_rotary_factor"];
  dict.erase("rope_theta");
  dict.erase("partial_rotary_factor");
  config["rope_scaling"] = nullptr;
  if (dict["rope_type"] == "default") return;
  rename(dict, "rope_type", type_key);
  config["rope_scaling"] = dict;
}

/// As transformers 4.53 to 4.57 wrote it: layer_types, but rotary facts at top level.
Json late_form(Json config, const char* type_key = "rope_type") {
  rename(config, "dtype", "torch_dtype");
  if (!config.contains("rope_parameters")) return config;
  const Json rope = config["rope_parameters"];
  config.erase("rope_parameters");
  if (config["model_type"] == "modernbert") {
    config["global_rope_theta"] = rope["full_attention"]["rope_theta"];
    config["local_rope_theta"] = rope["sliding_attention"]["rope_theta"];
  } else if (rope.contains("full_attention")) {
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"];
    flatten_rope(config, rope["full_attention"], type_key);
  } else {
    flatten_rope(config, rope, type_key);
  }
  return config;
}

/// As before 4.53: no layer types; which layers have a window is implied or told by a number.
Json old_form(Json config) {
  config = late_form(std::move(config), "type");
  const std::string type = config["model_type"];
  if (type == "gemma3_text") config.erase("_sliding_window_pattern");
  if (type == "falcon") {
    rename(config, "num_hidden_layers", "n_layer");
    rename(config, "num_attention_heads", "n_head");
    rename(config, "num_kv_heads", "n_head_kv");
    config["model_type"] =
        config["new_decoder_architecture"] == true ? "RefinedWeb" : "RefinedWebModel";
    config["architectures"] = {"RWForCausalLM"};
  }
  config.erase("layer_types");
  return config;
}

TEST_CASE("the same models in the keys of older versions") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const Json now = config_of(name);
    const HfModel model = read(now);
    const std::string text = module_text(model);
    // Both keys of a rotary type may be there; the newer counts.
    Json both = late_form(now);
    if (both.contains("rope_scaling") && both["rope_scaling"].is_object())
      both["rope_scaling"]["type"] = "linear";
    for (const Json& other : {late_form(now), both}) {
      CHECK(read(other).spec == model.spec);
      CHECK(module_text(read(other)) == text);
    }
    // Windows of single layers, apart from a rule, cannot be said in the oldest form.
    if (std::string(name) == "qwen3_bias_windows") continue;
    const HfModel old = read(old_form(now));
    CHECK(old.spec == model.spec);
    CHECK(module_text(old) == text);
  }
}

TEST_CASE("every family as a spec, printed and read back") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const ModelSpec spec = read(config_of(name)).spec;
    auto document = parse_json(print_spec(spec), "spec.json");
    REQUIRE_MESSAGE(document, testing::message_of(document));
    auto back = read_spec(*document);
    REQUIRE_MESSAGE(back, testing::message_of(back));
    CHECK(*back == spec);
  }
}

void refuses(Json config, const char* key, const Json& value, const std::string& expected) {
  config[key] = value;
  const std::string message = testing::message_of(testing::read_config(config.dump()));
  CHECK_MESSAGE(message == expected, message);
}

TEST_CASE("switches of a family that are not supported") {
  refuses(config_of("falcon_multi_query"), "alibi", true,
          "config.json: /alibi: biases by distance (alibi) are not supported; give a model with "
          "rotary positions");
  refuses(config_of("falcon_multi_query"), "num_ln_in_parallel_attn", 2,
          "config.json: /num_ln_in_parallel_attn: 2 norms before parallel branches; only the new "
          "decoder "
          "architecture has two, none has more");
  refuses(config_of("opt"), "layer_norm_elementwise_affine", false,
          "config.json: /layer_norm_elementwise_affine: norms without weights are not supported; "
          "give a model "
          "whose norms have weights");
  refuses(config_of("bert_post_ln"), "position_embedding_type", "relative_key",
          "config.json: /position_embedding_type: expected \"absolute\", got \"relative_key\"; "
          "other positions "
          "are not supported");
  refuses(config_of("bert_post_ln"), "is_decoder", true,
          "config.json: /is_decoder: expected false, got true; decoders of this model_type are not "
          "supported");
  refuses(config_of("gemma2"), "use_bidirectional_attention", true,
          "config.json: /use_bidirectional_attention: expected false, got true; this feature is "
          "not supported");
  refuses(
      config_of("phi3"), "attention_bias", true,
      "config.json: /attention_bias: expected false, got true; this model_type does not have it");
  refuses(config_of("mistral_window"), "layer_types",
          {"full_attention", "sliding_attention", "sliding_attention"},
          "config.json: /layer_types/0: expected sliding_attention, got \"full_attention\"; all "
          "layers of this "
          "model_type are alike");
  refuses(config_of("qwen2_mixed_windows"), "layer_types", {"full_attention"},
          "config.json: /layer_types: 1 layer types for 3 layers; give one type a layer");
  refuses(config_of("qwen2"), "layer_types",
          {"full_attention", "sliding_attention", "sliding_attention"},
          "config.json: /layer_types/1: expected full_attention, as there is no window, got "
          "\"sliding_attention\"; give the window's size (config.json: /sliding_window)");
  refuses(config_of("qwen3_bias_windows"), "layer_types",
          {"linear_attention", "full_attention", "full_attention"},
          "config.json: /layer_types/0: expected full_attention or sliding_attention, got "
          "\"linear_attention\"; other layer types are not supported");
  Json rope = config_of("phi3_longrope_short")["rope_parameters"];
  rope["long_factor"] = {1.0, 2.0};
  refuses(config_of("phi3_longrope_short"), "rope_parameters", rope,
          "config.json: /rope_parameters/long_factor: 2 factors for 4 pairs of elements that "
          "rotate; give one "
          "factor a pair");
}

TEST_CASE("keys of one family that transformers does not read") {
  refuses(config_of("gemma3_text"), "attn_logit_softcapping", 50.0,
          "config.json: /attn_logit_softcapping: a cap of attention's scores of 50; this "
          "model_type has none; remove the key");
  refuses(config_of("gemma3_text"), "rope_parameters", {{"rope_theta", 1e6}},
          "config.json: /rope_parameters/rope_theta: expected full_attention or "
          "sliding_attention, got 1000000; correct or remove the key");
  Json pattern = config_of("gemma3_text");
  pattern.erase("layer_types");
  pattern.erase("sliding_window_pattern");
  refuses(pattern, "_sliding_window_pattern", 3,
          "config.json: /_sliding_window_pattern: expected 6, got 3; say it as "
          "sliding_window_pattern");
  Json size = config_of("gemma2");
  size.erase("sliding_window");
  refuses(size, "sliding_window_size", 7,
          "config.json: /sliding_window_size: expected 4096, got 7; say it as sliding_window");
  refuses(config_of("phi3"), "rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}},
          "config.json: /rope_parameters/rope_type: rope type 'linear' is not supported; "
          "supported: default, longrope, su");
  refuses(config_of("falcon_new_two_norms"), "parallel_attn", false,
          "config.json: /parallel_attn: sequential branches in the new decoder architecture; "
          "parallel_attn must be true there");
  Json falcon = config_of("falcon_sequential");
  falcon["multi_query"] = false;
  falcon["num_attention_heads"] = 4;
  refuses(falcon, "num_kv_heads", 2,
          "config.json: /num_kv_heads: 2 key/value heads beside 4 query heads; only the new "
          "decoder architecture shares them; remove the key");
}

TEST_CASE("gemma3: rope_scaling adds to what rope_parameters says of full attention") {
  const Json now = config_of("gemma3_text");
  const ModelSpec scaled = read(now).spec;
  Json apart = now;
  apart["rope_parameters"]["full_attention"] = {{"rope_theta", 1e6}};
  apart["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  CHECK(read(apart).spec == scaled);
}

TEST_CASE("phi3: without its own key, the original length is the class's") {
  Json config = config_of("phi3_longrope_short");
  config["max_position_embeddings"] = 131072;
  config.erase("original_max_position_embeddings");
  config["rope_parameters"]["original_max_position_embeddings"] = 8192;
  CHECK(read(config).spec.rope->original_max_positions == 4096);
  config["original_max_position_embeddings"] = 8192;
  CHECK(read(config).spec.rope->original_max_positions == 8192);
}

TEST_CASE("keys that change nothing") {
  Json yarn = config_of("llama_bias_yarn");
  const ModelSpec said = read(yarn).spec;
  yarn["rope_parameters"]["attn_factor"] = 1.0;
  yarn["_num_labels"] = 2;
  yarn["max_sequence_length"] = 5;
  CHECK(read(yarn).spec == said);
  yarn["rope_parameters"]["factor"] = nullptr;
  yarn["rope_parameters"]["beta_fast"] = 0;
  yarn["rope_parameters"]["original_max_position_embeddings"] = 8;
  const Rope rope = *read(yarn).spec.rope;
  CHECK(rope.factor == static_cast<double>(said.max_positions) / 8.0);
  CHECK(rope.beta_fast == 32.0);
  Json qwen = config_of("qwen2");
  const ModelSpec full = read(qwen).spec;
  qwen["sliding_window"] = 0;
  qwen["use_sliding_window"] = false;
  qwen["head_dim"] = full.head_dim;
  CHECK(read(qwen).spec == full);
}

TEST_CASE("rotary positions of type dynamic are the usual ones up to the model's length") {
  Json config = config_of("llama");
  const ModelSpec usual = read(config).spec;
  config["rope_parameters"] = {{"rope_type", "dynamic"}, {"factor", 4.0}, {"rope_theta", 10000.0}};
  CHECK(read(config).spec == usual);
}

TEST_CASE("gemma3 inside a multimodal config names only what differs from the defaults") {
  Json text = config_of("gemma3_text");
  const HfModel model = read(text);
  text.erase("architectures");
  text.erase("hidden_activation");
  text.erase("rms_norm_eps");
  text.erase("_sliding_window_pattern");
  const Json outer = {
      {"model_type", "gemma3"},     {"architectures", {"Gemma3ForConditionalGeneration"}},
      {"text_config", text},        {"vision_config", {{"hidden_size", 8}}},
      {"mm_tokens_per_image", 256}, {"image_token_index", 262144},
      {"torch_dtype", "bfloat16"}};
  CHECK(read(outer).spec == model.spec);
  Json other = outer;
  other["audio_config"] = Json::object();
  CHECK(testing::message_of(testing::read_config(other.dump())).find("/audio_config") !=
        std::string::npos);
}

TEST_CASE("positions of layers with a window: a file that says it twice") {
  Json both = config_of("gemma3_text");
  both["rope_local_base_freq"] = 10000.0;
  CHECK(read(both).spec == read(config_of("gemma3_text")).spec);
}

}  // namespace
}  // namespace sinter::config_generations_test
