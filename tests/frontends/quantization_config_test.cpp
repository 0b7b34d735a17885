// quantization_config of config.json: what is read, and configs that must be refused by name.
#include <doctest/doctest.h>

#include "frontends/config_text.h"
#include "frontends/huggingface/quantization.h"

namespace sinter::quantization_config_test {
namespace {

using testing::llama_config;
using testing::message_of;
using testing::with;

Result<HfModel> read(const std::string& quantization) {
  return testing::read_config(with(llama_config(), "quantization_config", quantization));
}

WeightScheme only_scheme(const std::string& quantization) {
  const auto model = read(quantization);
  REQUIRE_MESSAGE(model, message_of(model));
  REQUIRE(model->quantization);
  REQUIRE(model->quantization->groups.size() == 1);
  return model->quantization->groups[0].scheme;
}

/// A config of compressed-tensors with one group; `weights` are members of its object.
std::string compressed(const std::string& format, const std::string& weights,
                       const std::string& more = "") {
  return fmt::format(
      R"({{"quant_method": "compressed-tensors", "format": "{}", "config_groups": {{"group_0": )"
      R"({{"targets": ["Linear"], "weights": {{{}}}}}}}, "ignore": ["lm_head"]{}}})",
      format, weights, more);
}

constexpr const char* kPackedWeights =
    R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": true)";

TEST_CASE("GPTQ") {
  const std::string gptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 128)";
  WeightScheme expected{.layout = WeightLayout::gptq,
                        .bits = 4,
                        .strategy = ScaleStrategy::group,
                        .group = 128,
                        .zeros_less_one = true};
  CHECK(only_scheme(gptq + R"(, "desc_act": false, "sym": true, "damp_percent": 0.1})") ==
        expected);
  expected.act_order = true;
  expected.symmetric = false;
  CHECK(only_scheme(gptq + R"(, "desc_act": true, "sym": false, "checkpoint_format": "gptq"})") ==
        expected);
  expected.zeros_less_one = false;
  CHECK(only_scheme(gptq + R"(, "desc_act": true, "sym": false,
                    "checkpoint_format": "gptq_v2", "meta": {"quantizer": ["x:1"]}})") == expected);
  CHECK(only_scheme(R"({"quant_method": "gptq", "bits": 8, "group_size": -1})") ==
        WeightScheme{.layout = WeightLayout::gptq,
                     .bits = 8,
                     .strategy = ScaleStrategy::channel,
                     .zeros_less_one = true});
}

TEST_CASE("AWQ and fp8: names of modules that are left as they are") {
  const auto awq = read(R"({"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": 64,
               "zero_point": true, "modules_to_not_convert": ["visual", "layers.3."]})");
  REQUIRE_MESSAGE(awq, message_of(awq));
  const Quantization& names = *awq->quantization;
  CHECK(names.groups[0].scheme == WeightScheme{.layout = WeightLayout::awq,
                                               .bits = 4,
                                               .strategy = ScaleStrategy::group,
                                               .group = 64,
                                               .symmetric = false});
  CHECK(*names.scheme_of("model.layers.2.mlp.up_proj") == &names.groups[0].scheme);
  CHECK(*names.scheme_of("model.layers.3.mlp.up_proj") == nullptr);
  CHECK(*names.scheme_of("lm_head") == nullptr);
  CHECK(names.description() == "awq: INT4, groups of 64, zero points");
  CHECK(only_scheme(R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                        "weight_block_size": [128, 128]})") ==
        WeightScheme{
            .layout = WeightLayout::inverse, .is_float = true, .strategy = ScaleStrategy::block});
}

TEST_CASE("compressed-tensors: the presets that people publish") {
  WeightScheme expected{
      .layout = WeightLayout::packed, .bits = 4, .strategy = ScaleStrategy::group, .group = 128};
  CHECK(only_scheme(compressed("pack-quantized", kPackedWeights)) == expected);
  expected.act_order = true;
  CHECK(only_scheme(compressed("pack-quantized", std::string(kPackedWeights) +
                                                     R"(, "actorder": "group")")) == expected);
  CHECK(only_scheme(compressed("int-quantized",
                               R"("num_bits": 8, "strategy": "channel", "symmetric": false)")) ==
        WeightScheme{.symmetric = false});
  CHECK(only_scheme(compressed("float-quantized",
                               R"("num_bits": 8, "type": "float", "strategy": "tensor")")) ==
        WeightScheme{.is_float = true, .strategy = ScaleStrategy::tensor});
  CHECK(only_scheme(compressed("float-quantized", R"("num_bits": 8, "type": "float",
                    "strategy": "block", "block_structure": [128, 128])")) ==
        WeightScheme{.is_float = true, .strategy = ScaleStrategy::block});
}

TEST_CASE("FP4: compressed-tensors and modelopt") {
  WeightScheme expected{.layout = WeightLayout::pairs,
                        .bits = 4,
                        .is_float = true,
                        .strategy = ScaleStrategy::group,
                        .group = 16};
  CHECK(only_scheme(compressed("nvfp4-pack-quantized", R"("num_bits": 4, "type": "float",
                    "strategy": "tensor_group", "group_size": 16,
                    "scale_dtype": "torch.float8_e4m3fn")")) == expected);
  expected.layout = WeightLayout::modelopt;
  for (const char* algorithm : {"NVFP4", "W4A16_NVFP4"})
    CHECK(only_scheme(fmt::format(R"({{"quant_method": "modelopt", "quant_algo": "{}",
                                       "group_size": 16, "ignore": ["lm_head"],
                                       "kv_cache_scheme": null, "producer": {{}}}})",
                                  algorithm)) == expected);
  expected.layout = WeightLayout::pairs;
  expected.group = 32;
  expected.exponents = true;
  CHECK(only_scheme(compressed("mxfp4-pack-quantized", R"("num_bits": 4, "type": "float",
                    "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8")")) ==
        expected);
  CHECK(only_scheme(R"({"quant_method": "modelopt", "quant_algo": "FP8"})") ==
        WeightScheme{.is_float = true, .strategy = ScaleStrategy::tensor});
  const auto model = read(R"({"quant_method": "modelopt", "quant_algo": "FP8",
                              "exclude_modules": ["lm_head", "model.layers.1.*"]})");
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(*model->quantization->scheme_of("model.layers.1.mlp.up_proj") == nullptr);
  CHECK(*model->quantization->scheme_of("model.layers.10.mlp.up_proj") != nullptr);
}

TEST_CASE("naive-quantized has the codes that its scheme says") {
  for (const bool is_float : {false, true})
    CHECK(only_scheme(compressed(
              "naive-quantized",
              fmt::format(R"("num_bits": 8, "type": "{}", "strategy": "channel")",
                          is_float ? "float" : "int"))) == WeightScheme{.is_float = is_float});
}

TEST_CASE("the text that a plan keeps lacks the keys that were ignored, and names the method") {
  const std::string text = R"({"bits": 4, "colour": {"a": 1}, "group_size": 64})";
  const auto document = parse_json(text, "quantize_config.json");
  REQUIRE(document);
  const IgnoredKeys ignored{{"colour"}};
  REQUIRE(read_quantization(*document, document->view(), ignored, "gptq"));
  const std::string kept = quantization_text(document->root, ignored, "gptq");
  CHECK(kept == R"({"bits": 4, "group_size": 64, "quant_method": "gptq"})");
  CHECK(read_quantization_text(kept, "manifest.json"));
}

TEST_CASE("compressed-tensors: targets and ignored modules") {
  const auto model = read(R"({"quant_method": "compressed-tensors", "config_groups": {
      "a": {"targets": ["re:.*self_attn.(q|k)_proj$", "model.layers.0.mlp.up_proj"],
            "format": "pack-quantized", "weights": {"num_bits": 8, "strategy": "channel"}},
      "b": {"targets": ["Linear"], "format": "int-quantized",
            "weights": {"num_bits": 8, "strategy": "channel"}}},
      "ignore": ["lm_head", "re:model\\.layers\\.[12]\\.", "re:mlp"]})");
  REQUIRE_MESSAGE(model, message_of(model));
  const Quantization& names = *model->quantization;
  const auto scheme = [&](const char* module) { return *names.scheme_of(module); };
  CHECK(scheme("model.layers.0.self_attn.q_proj") == &names.groups[0].scheme);
  CHECK(scheme("model.layers.0.self_attn.q_proj.x") == &names.groups[1].scheme);
  CHECK(scheme("model.layers.0.mlp.up_proj") == &names.groups[0].scheme);
  CHECK(scheme("model.layers.0.mlp.down_proj") == &names.groups[1].scheme);
  CHECK(scheme("model.layers.1.self_attn.q_proj") == nullptr);
  CHECK(scheme("model.layers.11.self_attn.q_proj") == &names.groups[0].scheme);
  CHECK(scheme("lm_head") == nullptr);
}

TEST_CASE("a pattern that takes too long is an error") {
  const auto model = read(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
               "config_groups": {"a": {"targets": ["Linear"],
                 "weights": {"num_bits": 8, "strategy": "channel"}}},
               "ignore": ["re:(a+)+$"]})");
  REQUIRE_MESSAGE(model, message_of(model));
  const auto scheme = model->quantization->scheme_of(std::string(60, 'a') + "b");
  CHECK(message_of(scheme).find("gives up on the name aaa") != std::string::npos);
}

/// One line, bad input, with all of the parts.
void refuses(const std::string& quantization, std::initializer_list<std::string_view> parts) {
  CAPTURE(quantization);
  const auto model = read(quantization);
  REQUIRE_FALSE(model.has_value());
  const std::string message = model.error().message();
  CHECK(model.error().code == ExitCode::bad_input);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.starts_with("config.json: /quantization_config"));
  for (std::string_view part : parts)
    CHECK_MESSAGE(message.find(part) != std::string::npos, part, " in ", message);
}

TEST_CASE("refused: methods") {
  refuses("4", {"expected an object, got 4"});
  refuses("{}", {"/quant_method", "missing"});
  refuses(R"({"quant_method": 4})", {"/quant_method", "got 4"});
  for (const char* method : {"bitsandbytes", "hqq", "eetq", "aqlm", "torchao", "mxfp4", "quark",
                             "fbgemm_fp8", "gguf\\u000a"})
    refuses(fmt::format(R"({{"quant_method": "{}", "bits": 4}})", method),
            {"/quant_method", "are not supported",
             "supported: gptq, awq, compressed-tensors, fp8, modelopt"});
}

TEST_CASE("refused: GPTQ") {
  const auto gptq = [](const std::string& members) {
    return fmt::format(R"({{"quant_method": "gptq", {}}})", members);
  };
  refuses(gptq(R"("group_size": 128)"), {"/bits", "missing"});
  refuses(gptq(R"("bits": 3, "group_size": 128)"), {"/bits", "3 bits", "4 and 8 bits"});
  refuses(gptq(R"("bits": 2, "group_size": 128)"), {"/bits", "2 bits"});
  refuses(gptq(R"("bits": "4", "group_size": 128)"), {"/bits", "\"4\""});
  refuses(gptq(R"("bits": 4)"), {"/group_size", "missing"});
  refuses(gptq(R"("bits": 4, "group_size": 0)"), {"/group_size", "groups of 0"});
  refuses(gptq(R"("bits": 4, "group_size": 48)"), {"/group_size", "48", "16, 32, 64"});
  refuses(gptq(R"("bits": 4, "group_size": -2)"), {"/group_size", "-2"});
  refuses(gptq(R"("bits": 4, "group_size": 1e400)"), {"/group_size", "1e400"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "sym": 1)"), {"/sym", "got 1"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "checkpoint_format": "marlin")"),
          {"/checkpoint_format", "'marlin'", "gptq, gptq_v2"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "is_marlin_format": true)"),
          {"/is_marlin_format", "true"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "pack_dtype": "int16")"),
          {"/pack_dtype", "int32", "int16"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "dynamic": {"+:q_proj": {"bits": 8}})"),
          {"/dynamic", "single modules"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "adapter": {"type": "lora"})"),
          {"/adapter", "LoRA"});
  refuses(gptq(R"("bits": 4, "group_size": 128, "rotation": "hadamard")"),
          {"/rotation", "no such key"});
}

TEST_CASE("refused: AWQ") {
  for (const char* version : {"gemv", "gemv_fast", "marlin", "exllama", "llm-awq"})
    refuses(
        fmt::format(R"({{"quant_method": "awq", "bits": 4, "group_size": 128, "version": "{}"}})",
                    version),
        {"/version", version, "supported: gemm"});
  refuses(R"({"quant_method": "awq", "bits": 8, "group_size": 128})", {"/bits", "8 bits"});
  refuses(R"({"quant_method": "awq", "bits": 4, "group_size": 100})", {"/group_size", "100"});
  refuses(R"({"quant_method": "awq", "bits": 4, "group_size": 64, "modules_to_not_convert": [7]})",
          {"/modules_to_not_convert/0", "7"});
}

TEST_CASE("refused: fp8") {
  refuses(R"({"quant_method": "fp8"})", {"/weight_block_size", "missing"});
  refuses(R"({"quant_method": "fp8", "weight_block_size": [64, 128]})",
          {"/weight_block_size/0", "128", "64"});
  refuses(R"({"quant_method": "fp8", "weight_block_size": [128]})", {"/weight_block_size/1"});
  refuses(R"({"quant_method": "fp8", "weight_block_size": [128, 128, 1]})",
          {"/weight_block_size", "two numbers"});
  refuses(R"({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e5m2"})",
          {"/fmt", "e4m3", "e5m2"});
}

TEST_CASE("refused: modelopt") {
  const auto modelopt = [](const std::string& members) {
    return fmt::format(R"({{"quant_method": "modelopt", {}}})", members);
  };
  refuses(modelopt(R"("ignore": [])"), {"/quant_algo", "missing"});
  refuses(modelopt(R"("quant_algo": "NVFP4_AWQ")"), {"/quant_algo", "NVFP4_AWQ", "FP8, NVFP4"});
  refuses(modelopt(R"("quant_algo": "NVFP4", "group_size": 32)"), {"/group_size", "16", "32"});
  refuses(modelopt(R"("quant_algo": "FP8", "kv_cache_quant_algo": "FP8")"),
          {"/kv_cache_quant_algo", "caches"});
  refuses(modelopt(R"("quant_algo": "FP8", "ignore": [""])"), {"/ignore/0"});
}

TEST_CASE("refused: compressed-tensors") {
  for (const char* format : {"marlin-24", "sparse-bitmask", "mxfp6-pack-quantized", "dense"})
    refuses(compressed(format, kPackedWeights), {"/format", format, "pack-quantized"});
  refuses(compressed("naive-quantized", kPackedWeights), {"/num_bits", "4 bits", "8 bits"});
  refuses(compressed("nvfp4-pack-quantized", kPackedWeights), {"/type", "float"});
  refuses(compressed("nvfp4-pack-quantized", R"("num_bits": 8, "type": "float",
                     "strategy": "tensor_group", "group_size": 16)"),
          {"/num_bits", "8 bits", "4 bits"});
  refuses(compressed("nvfp4-pack-quantized", R"("num_bits": 4, "type": "float",
                     "strategy": "tensor_group", "group_size": 32)"),
          {"/group_size", "16", "32"});
  refuses(compressed("mxfp4-pack-quantized", R"("num_bits": 4, "type": "float",
                     "strategy": "channel")"),
          {"/strategy", "group", "channel"});
  const auto packed = [](const std::string& weights) {
    return compressed("pack-quantized", weights);
  };
  refuses(packed(R"("num_bits": 3, "strategy": "channel")"), {"/num_bits", "3 bits"});
  refuses(packed(R"("strategy": "channel")"), {"/num_bits", "missing"});
  refuses(packed(R"("num_bits": 4, "strategy": "group")"), {"/group_size", "-1"});
  refuses(packed(R"("num_bits": 4, "strategy": "group", "group_size": 24)"), {"/group_size", "24"});
  refuses(packed(R"("num_bits": 4, "strategy": "channel", "group_size": 128)"),
          {"/group_size", "128", "channel"});
  refuses(packed(R"("num_bits": 4, "strategy": "tensor_group", "group_size": 16)"),
          {"/strategy", "tensor_group"});
  refuses(packed(R"("num_bits": 8, "strategy": "block", "block_structure": [128, 128])"),
          {"/strategy", "blocks"});
  refuses(packed(R"("num_bits": 8, "strategy": "channel", "type": "float")"), {"/type", "int"});
  refuses(packed(R"("num_bits": 8, "strategy": "channel", "actorder": "sideways")"),
          {"/actorder", "sideways"});
  refuses(packed(R"("num_bits": 8, "strategy": "channel", "dynamic": true)"), {"/dynamic"});
  refuses(packed(R"("num_bits": 8, "strategy": "channel", "colour": 3)"), {"/colour"});
  refuses(compressed("int-quantized", kPackedWeights), {"/num_bits", "4 bits", "8 bits"});
  refuses(
      compressed("float-quantized",
                 R"("num_bits": 8, "type": "float", "strategy": "channel", "symmetric": false)"),
      {"/symmetric", "no zero points"});
  refuses(compressed("float-quantized", R"("num_bits": 8, "type": "float", "strategy": "block",
                     "block_structure": [128, 64])"),
          {"/block_structure/1", "64"});
  refuses(compressed("pack-quantized", kPackedWeights,
                     R"(, "kv_cache_scheme": {"num_bits": 8, "type": "float"})"),
          {"/kv_cache_scheme", "caches"});
  refuses(compressed("pack-quantized", kPackedWeights,
                     R"(, "sparsity_config": {"format": "sparse-24-bitmask"})"),
          {"/sparsity_config/format", "sparse-24-bitmask"});
  refuses(compressed("pack-quantized", kPackedWeights,
                     R"(, "transform_config": {"config_groups": {}})"),
          {"/transform_config", "transforms"});
  refuses(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {}})",
          {"/config_groups", "at least one group"});
  refuses(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"a": {"targets": ["Conv1d"], "weights": {"num_bits": 8}}}})",
          {"/targets/0", "Conv1d", "Linear"});
  refuses(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"a": {"targets": ["re:(unclosed"], "weights": {"num_bits": 8}}}})",
          {"/targets/0", "unclosed"});
  refuses(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"a": {"targets": ["Linear"], "weights": null}}})",
          {"/weights"});
  refuses(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 8},
                                      "output_activations": {"num_bits": 8}}}})",
          {"/output_activations"});
}

TEST_CASE("compressed-tensors: linears and embeddings are classes of their own") {
  const auto read = read_quantization_text(
      R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {)"
      R"("a": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32}}, )"
      R"("b": {"targets": ["Embedding"], "weights": {"num_bits": 8, "strategy": "channel"}}}})",
      "c");
  REQUIRE(read);
  Quantization names = *read;
  CHECK(*names.scheme_of("model.layers.0.mlp.up_proj") == &names.groups[0].scheme);
  CHECK(*names.scheme_of("model.embed_tokens") == &names.groups[1].scheme);
  names.groups.pop_back();
  CHECK(*names.scheme_of("model.embed_tokens") == nullptr);
  for (const char* table : {"transformer.wte", "embeddings.word_embeddings", "embed_in"})
    CHECK(class_of(table) == ModuleClass::embedding);
  for (const char* linear : {"lm_head", "model.layers.0.self_attn.q_proj", "model.wte.proj"})
    CHECK(class_of(linear) == ModuleClass::linear);
}

}  // namespace
}  // namespace sinter::quantization_config_test
