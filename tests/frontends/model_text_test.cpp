// The module of a one-layer model of each family, as text. SINTER_BLESS=1 rewrites the
// expectations.
#include "frontends/config_text.h"
#include "frontends/model/build_model.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::model_text_test {
namespace {

void check_module(const std::string& name, const std::string& config) {
  CAPTURE(name);
  const HfModel model = value(testing::read_config(config));
  const WeightNames names{model.map, model.map.prefixes.front()};
  const Module module = value(build_model(model.spec, names, nullptr, "config.json"));
  require(verify(module));

  const std::string text = print_module(module);
  CHECK(print_module(value(parse_module(text, name))) == text);
  test::check_text_file(text, "frontends/" + name + ".txt", "frontends_model");
}

TEST_CASE("the bound of a vocabulary is that of the op sample") {
  const auto accepts = [](int64_t vocabulary) {
    const TensorType f32{DType::f32, {1}}, i32{DType::i32, {1}};
    return infer_type(OpKind::sample, {{DType::f32, {1, vocabulary}}, f32, i32, f32, i32, i32}, {},
                      {})
        .has_value();
  };
  CHECK(accepts(kMaxChosenFrom));
  CHECK_FALSE(accepts(kMaxChosenFrom + 1));
}

TEST_CASE("gpt2: learned positions, transposed fused qkv, tied") {
  check_module("model_gpt2", testing::gpt2_config());
}

TEST_CASE("gpt_neox: parallel residual, partial rotary, qkv interleaved per head") {
  check_module("model_gpt_neox_parallel", testing::gpt_neox_config());
}

TEST_CASE("gpt_neox: sequential residual, no attention bias") {
  check_module(
      "model_gpt_neox_sequential",
      testing::with(testing::with(testing::gpt_neox_config(), "use_parallel_residual", "false"),
                    "attention_bias", "false"));
}

TEST_CASE("llama: grouped queries, gated MLP, head size apart from the hidden size") {
  check_module("model_llama", testing::llama_config());
}

TEST_CASE("gemma2: norms of 1 + weight around each branch, caps, a window on every other layer") {
  check_module("model_gemma2", R"({
  "model_type": "gemma2",
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 4,
  "num_hidden_layers": 2,
  "intermediate_size": 20,
  "max_position_embeddings": 20,
  "query_pre_attn_scalar": 6,
  "sliding_window": 5,
  "torch_dtype": "bfloat16"
})");
}

TEST_CASE("qwen3: norms of each head of q and k") {
  check_module("model_qwen3", R"({
  "model_type": "qwen3",
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 8,
  "num_hidden_layers": 1,
  "intermediate_size": 20,
  "max_position_embeddings": 20,
  "torch_dtype": "bfloat16"
})");
}

TEST_CASE("qwen2_moe: experts of every second layer, a shared one with a gate") {
  check_module("model_qwen2_moe", R"({
  "model_type": "qwen2_moe",
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 3,
  "num_key_value_heads": 3,
  "num_hidden_layers": 2,
  "intermediate_size": 20,
  "max_position_embeddings": 20,
  "num_experts": 3,
  "num_experts_per_tok": 2,
  "moe_intermediate_size": 6,
  "shared_expert_intermediate_size": 8,
  "decoder_sparse_step": 2,
  "norm_topk_prob": true,
  "torch_dtype": "bfloat16"
})");
}

TEST_CASE("granitemoe: the choice before the softmax, experts in one tensor") {
  check_module("model_granitemoe", R"({
  "model_type": "granitemoe",
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 3,
  "num_hidden_layers": 1,
  "intermediate_size": 6,
  "max_position_embeddings": 20,
  "num_local_experts": 3,
  "num_experts_per_tok": 2,
  "torch_dtype": "bfloat16"
})");
}

TEST_CASE("bert: token types, a norm after every addition, no cache") {
  check_module("model_bert", R"({
  "model_type": "bert",
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 3,
  "num_hidden_layers": 1,
  "intermediate_size": 20,
  "max_position_embeddings": 20
})");
}

TEST_CASE(
    "each layer has its scale, a window reaches attention, an attention factor scales tables") {
  ModelSpec spec = testing::read_config(testing::gpt2_config())->spec;
  spec.layers = 2;
  spec.scale_by_inverse_layer = true;
  spec.window = 6;
  spec.rope = Rope{.rotary = 4, .attention_factor = 1.5};
  const Module module = *build_model(spec, {WeightMap::identity(), {}}, nullptr, "spec");
  const Graph& graph = module.find_entry("decode")->graph;
  const Attributes& first = graph[graph.find("l0.attn")].attrs;
  const Attributes& second = graph[graph.find("l1.attn")].attrs;
  CHECK(first.get<double>(AttrName::scale) == spec.attention_scale);
  CHECK(second.get<double>(AttrName::scale) == spec.attention_scale / 2);
  CHECK(second.get<int64_t>(AttrName::window) == 6);
  const Op& table = graph[graph.find("rope.cos")];
  REQUIRE(table.kind == OpKind::mul);
  CHECK(graph[table.operands[1]].attrs.get<Number>(AttrName::value) == Number(1.5));
  CHECK(verify(module));
}

}  // namespace
}  // namespace sinter::model_text_test
