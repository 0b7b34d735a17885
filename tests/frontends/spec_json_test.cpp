// Specs: models as JSON, without files.
#include "frontends/model/spec_json.h"

#include <doctest/doctest.h>

#include "frontends/config_text.h"
#include "frontends/load_model.h"
#include "ir/verifier.h"

namespace sinter::spec_json_test {
namespace {

using testing::message_of;
using testing::with;
using testing::without;

std::string llama_spec() {
  return R"({
  "sinter_spec": 1,
  "name": "small",
  "dtype": "f16",
  "vocabulary": 40,
  "hidden": 16,
  "layers": 2,
  "heads": 4,
  "kv_heads": 2,
  "ffn": 20,
  "max_positions": 20,
  "norm": "rms_norm",
  "norm_eps": 1e-05,
  "rope": {"theta": 10000, "scaling": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_positions": 64},
  "activation": "silu",
  "gated": true,
  "window": 7,
  "eos": [2]
})";
}

Result<ModelSpec> read(const std::string& text) {
  SINTER_LET(document, parse_json(text, "small.json"));
  return read_spec(document);
}

TEST_CASE("a spec reads with its defaults, and what is printed reads back") {
  auto spec = read(llama_spec());
  REQUIRE_MESSAGE(spec, message_of(spec));
  CHECK(spec->head_dim == 4);
  CHECK(spec->attention_scale == 0.5);
  CHECK(spec->residual == ResidualForm::sequential);
  CHECK(spec->window == 7);
  REQUIRE(spec->rope);
  CHECK(spec->rope->rotary == 4);
  CHECK(spec->rope->pairing == "half");
  CHECK(*read(print_spec(*spec)) == *spec);

  for (const std::string& config :
       {testing::gpt2_config(), testing::gpt_neox_config(), testing::llama_config()}) {
    const ModelSpec other = testing::read_config(config)->spec;
    auto back = read(print_spec(other));
    REQUIRE_MESSAGE(back, message_of(back));
    CHECK(*back == other);
  }
}

TEST_CASE("experts of a spec: defaults, and what is printed reads back") {
  auto spec = read(with(llama_spec(), "experts", R"({"count": 6, "chosen": 2})"));
  REQUIRE_MESSAGE(spec, message_of(spec));
  CHECK(spec->experts == Experts{.count = 6, .chosen = 2, .ffn = 20});
  CHECK(*read(print_spec(*spec)) == *spec);
  spec = read(with(llama_spec(), "experts",
                   R"({"count": 6, "chosen": 2, "ffn": 10, "routing": "choice_first",)"
                   R"( "wide_weights": true, "shared_ffn": 8, "shared_gate": true,)"
                   R"( "sparse": [true, false]})"));
  REQUIRE_MESSAGE(spec, message_of(spec));
  CHECK(spec->experts == Experts{.count = 6,
                                 .chosen = 2,
                                 .ffn = 10,
                                 .routing = Routing::choice_first,
                                 .wide_weights = true,
                                 .shared_ffn = 8,
                                 .shared_gate = true,
                                 .sparse = {true, false}});
  CHECK(*read(print_spec(*spec)) == *spec);
}

void spec_refuses(const std::string& text, const std::string& expected) {
  CHECK(message_of(read(text)) == expected);
}

TEST_CASE("specs that must be refused") {
  spec_refuses(
      with(llama_spec(), "sinter_spec", "2"),
      "small.json: /sinter_spec: expected format version 1, got 2; use a newer version of this "
      "program");
  spec_refuses(
      testing::llama_config(),
      "small.json: this is a Hugging Face config, not a spec; give the folder that it lies in");
  spec_refuses(
      with(llama_spec(), "heads", "0"),
      "small.json: /heads: expected an integer from 1 to 268435456, got 0; correct this value");
  spec_refuses(with(llama_spec(), "hidden", "18"),
               "small.json: /head_dim: hidden 18 is not divisible by 4 heads; correct them or give "
               "head_dim");
  spec_refuses(
      with(llama_spec(), "kv_heads", "3"),
      "small.json: /kv_heads: 4 query heads cannot share 3 key/value heads; give a divisor of "
      "the number of query heads (small.json: /heads)");
  spec_refuses(with(llama_spec(), "colour", "1"),
               "small.json: /colour: expected no such key, got 1; correct or remove the key");
  spec_refuses(
      without(llama_spec(), "rope"),
      "small.json: /rope: the key is missing, expected an object, or null for learned positions; "
      "add it");
  spec_refuses(with(llama_spec(), "rope", R"({"theta": 0})"),
               "small.json: /rope/theta: rope.theta is 0, not a number in 1e-30 .. 1e+30; give a "
               "positive finite number");
  spec_refuses(
      with(llama_spec(), "rope", R"({"theta": 10000, "rotary": 3})"),
      "small.json: /rope/rotary: 3 of 4 head elements rotate, which is not an even number in 2 "
      ".. 4; elements rotate in pairs: give an even rotary size");
  spec_refuses(with(llama_spec(), "rope", R"({"theta": 10000, "factor": 3})"),
               "small.json: /rope/factor: expected no such key, got 3; correct or remove the key");
  spec_refuses(
      with(llama_spec(), "rope", R"({"theta": 10000, "pairing": "both"})"),
      "small.json: /rope/pairing: rope pairing 'both' is unknown; use half or interleaved");
  spec_refuses(
      with(llama_spec(), "norm", "\"batch_norm\""),
      "small.json: /norm: 'batch_norm' is not a known norm; use one of layer_norm, rms_norm, "
      "rms_norm_wide, rms_norm_plus_one");
  spec_refuses(
      with(llama_spec(), "norm_eps", "0"),
      "small.json: /norm_eps: norm_eps is 0, not a number in 1e-30 .. 1000000; give a positive "
      "finite number");
  spec_refuses(
      with(llama_spec(), "activation", "\"add\""),
      "small.json: /activation: activation 'add' is not supported; supported: gelu, gelu_tanh, "
      "quick_gelu, silu, relu, sigmoid, tanh");
  spec_refuses(with(llama_spec(), "dtype", "\"i32\""),
               "small.json: /dtype: 'i32' is not a known dtype; use one of f32, f16, bf16");
}

TEST_CASE("experts that must be refused") {
  const auto refuses = [](const std::string& experts, const std::string& expected) {
    spec_refuses(with(llama_spec(), "experts", experts), "small.json: /" + expected);
  };
  refuses(R"({"count": 6})",
          "experts/chosen: the key is missing, expected an integer from 1 to 268435456; add it");
  refuses(R"({"count": 6, "chosen": 7})",
          "experts/chosen: a token has 7 of 6 experts; give at most as many as there are "
          "(small.json: /experts/count)");
  refuses(R"({"count": 100, "chosen": 65})",
          "experts/chosen: experts.chosen is 65, outside 1 .. 64; give the model's true size");
  refuses(R"({"count": 6, "chosen": 2, "routing": "choice_first", "normalized": true})",
          "experts/normalized: a softmax over the chosen experts alone has the sum 1 already; "
          "give false");
  refuses(R"({"count": 6, "chosen": 2, "shared_gate": true})",
          "experts/shared_gate: a gate of a shared expert, but there is none; give its width "
          "(small.json: /experts/shared_ffn)");
  refuses(R"({"count": 6, "chosen": 2, "sparse": [true]})",
          "experts/sparse: `sparse` has 1 entries, the model has 2 layers; give one value a layer");
  refuses(R"({"count": 6, "chosen": 2, "groups": 2})",
          "experts/groups: expected no such key, got 2; correct or remove the key");
  spec_refuses(
      with(with(llama_spec(), "experts", R"({"count": 6, "chosen": 2})"), "gated", "false"),
      "small.json: /gated: experts without a gate; only gated experts are supported");
}

TEST_CASE("sample specs have the parameters of the models they name") {
  struct Sample {
    const char* name;
    int64_t parameters;
  };
  // Published counts of the checkpoints' parameters.
  for (const Sample& sample :
       {Sample{"gpt2-124m", 124439808}, Sample{"pythia-2.8b", 2775208960},
        Sample{"llama-2-7b", 6738415616}, Sample{"llama-3.2-1b", 1235814400},
        Sample{"qwen3-30b-a3b", 30532122624}, Sample{"olmoe-1b-7b", 6919161856},
        Sample{"mixtral-8x7b", 46702792704}}) {
    CAPTURE(sample.name);
    auto model = load_model(fmt::format("{}/{}.json", SINTER_SAMPLES_DIR, sample.name));
    REQUIRE_MESSAGE(model, message_of(model));
    CHECK(model->spec->name == sample.name);
    CHECK(!model->tensors);
    const Status verified = verify(model->module);
    CHECK_MESSAGE(verified, message_of(verified));
    int64_t parameters = 0;
    for (const Weight& weight : model->module.weights) {
      if (weight.name == "rope.inv_freq") continue;
      int64_t count = 1;
      for (Dim dim : weight.type.dims) count *= dim.constant();
      parameters += count;
    }
    CHECK(parameters == sample.parameters);
  }
}

}  // namespace
}  // namespace sinter::spec_json_test
