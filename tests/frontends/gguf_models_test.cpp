// Models of GGUF files are those of the folders that they were made from: tests/golden/gguf, which
// tests/golden/make_gguf.py makes.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "frontends/files/safetensors.h"
#include "frontends/gguf/gguf_blocks.h"
#include "frontends/gguf/gguf_config.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/gguf/gguf_tokenizer.h"
#include "frontends/gguf_bytes.h"
#include "frontends/load_model.h"
#include "frontends/small_files.h"
#include "ir/builder.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter::gguf_models_test {
namespace {

namespace fs = std::filesystem;

enum : uint32_t { kU32 = 4, kF32 = 6, kI32 = 5 };

std::string golden(const std::string& name) {
  return fmt::format("{}/golden/gguf/{}", SINTER_TESTS_DIR, name);
}

Model loaded(const std::string& path) {
  LoadOptions options;
  options.dtype = DType::f32;
  auto model = load_model(path, options);
  REQUIRE_MESSAGE(model, model.error().message());
  return std::move(*model);
}

std::vector<std::byte> value_of(const Model& model, const Weight& weight) {
  Graph graph = weight.init;
  for (const Op& op : std::vector<Op>(graph.ops().begin(), graph.ops().end()))
    if (op.kind == OpKind::pack_codes)
      graph.outputs[0] =
          Builder(graph, {}).op(OpKind::dequantize, {graph.outputs[0]}, Attributes(op.attrs));
  auto values = evaluate(graph, {}, {}, {}, {.precise = false, .source = model.tensors.get()});
  REQUIRE_MESSAGE(values, values.error().message());
  return std::move(values->front().bytes);
}

/// Llama 3's scaling is a list of float32 divisors in a file: frequencies differ in their last bit.
void check_rope(std::optional<Rope>& of_file, std::optional<Rope>& of_folder,
                int64_t max_positions) {
  REQUIRE(of_file.has_value() == of_folder.has_value());
  if (!of_file || *of_file == *of_folder) return;
  const auto found = rope_frequencies(*of_file, max_positions),
             expected = rope_frequencies(*of_folder, max_positions);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] / expected[i] - 1) < 1e-6);
  CHECK(std::abs(of_file->attention_factor / of_folder->attention_factor - 1) < 1e-12);
  of_file = of_folder;
}

TEST_CASE("a GGUF file is the model of its folder, in every field and every bit of a weight") {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(golden(""))) {
    if (!entry.is_directory()) continue;
    INFO(entry.path().filename().string());
    Model folder = loaded(entry.path().string());
    Model file = loaded((entry.path() / "model.gguf").string());
    ++models;
    file.spec->name = folder.spec->name;
    if (folder.spec->encoder) file.spec->eos = folder.spec->eos;
    if (folder.spec->name.starts_with("falcon"))  // the converter writes 2048 for all of them
      folder.spec->max_positions = file.spec->max_positions;
    check_rope(file.spec->rope, folder.spec->rope, folder.spec->max_positions);
    CHECK((*file.spec == *folder.spec));
    REQUIRE(file.module.weights.size() == folder.module.weights.size());
    for (size_t i = 0; i < folder.module.weights.size(); ++i) {
      const Weight& weight = folder.module.weights[i];
      INFO(weight.name);
      REQUIRE(file.module.weights[i].name == weight.name);
      if (weight.name == "rope.inv_freq") continue;  // check_rope
      const auto found = value_of(file, file.module.weights[i]),
                 expected = value_of(folder, weight);
      CHECK((found == expected));
    }
  }
  CHECK(models == 22);
}

TEST_CASE("matrices of blocks are codes") {
  LoadOptions options;
  std::string notes;
  options.note = [&](const std::string& note) { notes += note; };
  const auto model = load_model(golden("llama_blocks/model.gguf"), options);
  REQUIRE_MESSAGE(model, model.error().message());
  CHECK(notes.find("dequantized") == notes.npos);
  int packed = 0;
  for (const Weight& weight : model->module.weights)
    packed +=
        llvm::any_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::pack_codes; });
  CHECK(packed == 11);  // the table, and q, k, v, gate and up of two layers
}

TEST_CASE("the values of blocks are those of the package gguf, bit for bit") {
  const auto file = open_safetensors(golden("blocks.safetensors"));
  REQUIRE(file.has_value());
  int types = 0;
  for (int i = 0; i <= static_cast<int>(GgufType::NVFP4); ++i) {
    const auto type = static_cast<GgufType>(i);
    const GgufTypeInfo& info = gguf_type_info(type);
    const Dequantize dequantize = dequantize_of(type);
    if (!dequantize) continue;
    INFO(info.name);
    ++types;
    const auto blocks = file->read_tensor(fmt::format("{}.blocks", info.name));
    const auto values = file->read_tensor(fmt::format("{}.values", info.name));
    REQUIRE((blocks && values));
    std::vector<float> found(values->bytes.size() / sizeof(float));
    const auto count = blocks->bytes.size() / static_cast<size_t>(info.block_bytes);
    REQUIRE(found.size() == count * static_cast<size_t>(info.block_elements));
    for (size_t block = 0; block < count; ++block)
      dequantize(blocks->bytes.data() + block * static_cast<size_t>(info.block_bytes),
                 found.data() + block * static_cast<size_t>(info.block_elements));
    CHECK(std::memcmp(found.data(), values->bytes.data(), values->bytes.size()) == 0);
  }
  CHECK(types == 13);
}

TEST_CASE("packed matrices have the values of blocks, and no more bytes") {
  const auto file = open_safetensors(golden("blocks.safetensors"));
  REQUIRE(file.has_value());
  int types = 0;
  for (int i = 0; i <= static_cast<int>(GgufType::NVFP4); ++i) {
    const auto type = static_cast<GgufType>(i);
    const GgufTypeInfo& info = gguf_type_info(type);
    const std::optional<CodeFormat> format = code_format_of(type);
    if (!format) continue;
    INFO(info.name);
    ++types;
    const auto blocks = file->read_tensor(fmt::format("{}.blocks", info.name));
    const auto values = file->read_tensor(fmt::format("{}.values", info.name));
    REQUIRE((blocks && values));
    const auto length = static_cast<int64_t>(values->bytes.size() / sizeof(float));
    const auto part = [&](BlockPart of_block, int64_t bytes) {
      std::vector<std::byte> out(static_cast<size_t>(bytes));
      copy_part(type, of_block, blocks->bytes, out);
      return out;
    };
    const int64_t scale_bytes = 2 * code_scales(*format, length);
    const auto codes = part(BlockPart::codes, 4 * code_words(*format, length));
    const auto scales = part(BlockPart::scales, scale_bytes);
    std::vector<std::byte> minima, parts;
    if (format->minima) minima = part(BlockPart::minima, scale_bytes);
    if (format->part_bits != 0) parts = part(BlockPart::parts, 4 * code_groups(*format, length));
    std::vector<std::byte> packed(static_cast<size_t>(4 * row_words(*format, length)));
    pack_row(*format, length,
             {.words = reinterpret_cast<const int32_t*>(codes.data()),
              .scales = scales.data(),
              .minima = minima.data(),
              .parts = reinterpret_cast<const int32_t*>(parts.data())},
             packed.data());
    UnpackedRow<float> row;
    row.read(*format, length, packed.data());
    const auto* expected = reinterpret_cast<const float*>(values->bytes.data());
    for (int64_t k = 0; k < length; ++k) {
      const auto at = static_cast<size_t>(k), group = static_cast<size_t>(k / format->group);
      const float minimum = format->minima ? row.minima[group] : 0;
      REQUIRE(std::fma(row.scales[group], row.codes[at], -minimum) == expected[k]);
    }
    // Rows of whole steps: padding to 16 bytes at most for each.
    const int64_t wide = 4096, in_file = wide / info.block_elements * info.block_bytes;
    // An exponent of MXFP4 becomes 16 bits.
    const int64_t wider = type == GgufType::MXFP4 ? wide / 32 : in_file / 100;
    CHECK(4 * row_words(*format, wide) <= in_file + wider);
  }
  CHECK(types == 11);
}

TEST_CASE("a folder with one GGUF file is that file") {
  ScratchFolder folder;
  fs::copy(golden("qwen2/model.gguf"), folder.path() + "/a.gguf");
  CHECK(loaded(folder.path()).spec->layers == 2);
  fs::copy(golden("qwen2/model.gguf"), folder.path() + "/b.gguf");
  CHECK(!gguf_model(folder.path()));
  const auto two = load_model(folder.path());
  check_error(two, {"config.json", "it holds a.gguf, b.gguf"});
}

/// A model with these keys and no tensors but the table.
GgufBytes model_bytes(std::string_view architecture) {
  GgufBytes bytes;
  bytes.string("general.architecture", architecture);
  for (const auto& [key, value] :
       {std::pair("block_count", 1), std::pair("embedding_length", 4),
        std::pair("attention.head_count", 2), std::pair("context_length", 8),
        std::pair("feed_forward_length", 4)})
    bytes.number<uint32_t>(fmt::format("{}.{}", architecture, key), kU32,
                           static_cast<uint32_t>(value));
  return bytes.tensor("token_embd.weight", 0, {4, 8}, 128);
}

void refuses(const GgufBytes& bytes, std::initializer_list<std::string_view> parts) {
  ScratchFolder folder;
  check_error(load_model(folder.write("m.gguf", bytes.file())), parts);
}

TEST_CASE("models that are not read are refused by name") {
  refuses(GgufBytes(), {"m.gguf", "no general.architecture", "supported: bert, falcon"});
  refuses(model_bytes("qwen35"), {"general.architecture \"qwen35\" is not supported"});
  refuses(model_bytes("nomic-bert"), {"\"nomic-bert\" is not supported"});
  refuses(model_bytes("llama").string("general.type", "mmproj"), {"general.type is \"mmproj\""});
  refuses(model_bytes("llama").string("general.type", "adapter"), {"merge the adapter"});
  refuses(model_bytes("llama").number<uint32_t>("llama.new_fact", kU32, 3),
          {"llama.new_fact", "no such key"});
  refuses(model_bytes("llama").tensor("blk.0.attn_q.weight", 16, {256, 2}, 132),
          {"tensor blk.0.attn_q.weight is IQ2_XXS, which is not read", "Q4_K"});
  refuses(model_bytes("llama").tensor("blk.0.attn_q.weight", 0, {4, 3}, 48),
          {"tensor blk.0.attn_q.weight has 3 rows for 2 heads"});
  refuses(model_bytes("gemma").tensor("output_norm.weight", 1, {4}, 8),
          {"output_norm.weight is F16, expected F32"});
  refuses(model_bytes("qwen2").array("qwen2.attention.head_count_kv", kU32, 2,
                                     bytes_of_number<uint32_t>(1) + bytes_of_number<uint32_t>(2)),
          {"qwen2.attention.head_count_kv is 2 of u32", "layers of different sizes"});
  refuses(model_bytes("llama"), {"blk.0.", "weight"});
  refuses(model_bytes("llama").number<float>("llama.block_count.x", kF32, 1), {"no such key"});
}

std::shared_ptr<const GgufTensors> tensors_of(const GgufBytes& bytes) {
  ScratchFolder folder;
  const auto tensors = GgufTensors::open(folder.write("m.gguf", bytes.file()));
  REQUIRE_MESSAGE(tensors, tensors.error().message());
  return *tensors;
}

TEST_CASE("codes are those of matrices alone") {
  const auto tensors =
      tensors_of(model_bytes("qwen2").tensor("blk.0.attn_v.weight", 8, {32, 4, 3, 2}, 816));
  CHECK(tensors->coded().empty());
  const auto type = tensors->find("blk.0.attn_v.weight");
  REQUIRE(type);
  CHECK(*type == TensorType{DType::f32, {2, 3, 4, 32}});
  ScratchFolder folder;
  const auto twice = GgufTensors::open(
      folder.write("m.gguf", model_bytes("qwen2moe")
                                 .tensor("blk.0.ffn_up_exps.0.weight", 0, {32, 1}, 128)
                                 .tensor("blk.0.ffn_up_exps.weight", 2, {32, 1, 2}, 36)
                                 .file()));
  check_error(twice, {"is stored twice, alone and among its experts"});
}

TEST_CASE("an exponent of MXFP4 that is no number is refused") {
  ScratchFolder folder;
  std::string file = model_bytes("qwen2").tensor("blk.0.attn_v.weight", 39, {32, 1}, 17).file();
  file.replace(file.size() - 17, 17, 17, '\xff');
  const auto tensors = GgufTensors::open(folder.write("m.gguf", file));
  REQUIRE_MESSAGE(tensors, tensors.error().message());
  std::byte scale[2];
  check_error((*tensors)->read("blk.0.attn_v.weight.scales", scale),
              {"tensor blk.0.attn_v.weight has a scale that is not a number"});
}

TEST_CASE("scaled positions are linear where only a factor is named") {
  const auto config = [](const GgufBytes& bytes) { return gguf_config(*tensors_of(bytes)); };
  const auto scaled =
      config(model_bytes("qwen2").number<float>("qwen2.rope.scaling.factor", kF32, 4));
  REQUIRE_MESSAGE(scaled, scaled.error().message());
  CHECK(scaled->view()["rope_scaling"]["rope_type"].string() == "linear");
  check_error(config(model_bytes("llama")
                         .number<float>("llama.rope.scaling.factor", kF32, 4)
                         .tensor("rope_freqs.weight", 0, {1}, 4)),
              {"llama.rope.scaling.type", "expected none beside rope_freqs.weight"});
}

Result<std::optional<Tokenizer>> tokenizer_of(const GgufBytes& bytes) {
  ScratchFolder folder;
  return open_gguf_tokenizer(folder.write("t.gguf", bytes.file()));
}

std::string texts(std::initializer_list<std::string_view> list) {
  std::string bytes;
  for (std::string_view text : list) bytes += GgufBytes::text(text);
  return bytes;
}

GgufBytes tokenizer_bytes(std::string_view model, std::string_view pre,
                          std::initializer_list<std::string_view> tokens) {
  GgufBytes bytes;
  bytes.string("tokenizer.ggml.model", model).string("tokenizer.ggml.pre", pre);
  return bytes.array("tokenizer.ggml.tokens", 8, tokens.size(), texts(tokens));
}

TEST_CASE("tokenizers that cannot be are refused by name") {
  CHECK(!tokenizer_of(GgufBytes())->has_value());
  const auto refused = [](const GgufBytes& bytes, std::initializer_list<std::string_view> parts) {
    check_error(tokenizer_of(bytes), parts);
  };
  refused(tokenizer_bytes("rwkv", "default", {"a"}), {"tokenizer.ggml.model \"rwkv\""});
  refused(tokenizer_bytes("t5", "default", {"a"})
              .array("tokenizer.ggml.scores", kF32, 1, bytes_of_number<float>(0))
              .string("tokenizer.ggml.precompiled_charsmap", "map"),
          {"tokenizer.ggml.precompiled_charsmap is \"map\", expected bytes"});
  refused(tokenizer_bytes("t5", "default", {"a"})
              .array("tokenizer.ggml.scores", kF32, 1, bytes_of_number<float>(0))
              .number<int32_t>("tokenizer.ggml.eos_token_id", kI32, 0)
              .number<int32_t>("tokenizer.ggml.unknown_token_id", kI32, 1),
          {"tokenizer.ggml.unknown_token_id is 1, and there are 1 tokens"});
  refused(tokenizer_bytes("gpt2", "new-words", {"a"}), {"tokenizer.ggml.pre \"new-words\""});
  refused(tokenizer_bytes("gpt2", "gpt-2", {"a"}), {"tokenizer.ggml.merges"});
  refused(tokenizer_bytes("gpt2", "gpt-2", {"a", "b", "a"}), {"tokens 0 and 2", "both \"a\""});
  refused(tokenizer_bytes("gpt2", "gpt-2", {"\xff"}), {"token 0", "not UTF-8"});
  refused(
      tokenizer_bytes("gpt2", "gpt-2", {"a"}).array("tokenizer.ggml.merges", 8, 1, texts({"ab"})),
      {"merge 0", "\"ab\""});
  refused(tokenizer_bytes("llama", "default", {"a"}), {"tokenizer.ggml.scores"});
  refused(tokenizer_bytes("llama", "default", {"a", "b"})
              .array("tokenizer.ggml.scores", kF32, 1, bytes_of_number<float>(0)),
          {"tokenizer.ggml.scores is 1 of f32, expected 2 numbers"});
  refused(tokenizer_bytes("llama", "default", {"a"})
              .array("tokenizer.ggml.scores", kF32, 1, bytes_of_number<float>(0))
              .number<int32_t>("tokenizer.ggml.bos_token_id", kI32, -5),
          {"tokenizer.ggml.bos_token_id is -5"});
  refused(tokenizer_bytes("bert", "default", {"a"}),
          {"cls_token_id is 101, and there are 1 tokens"});
}

}  // namespace
}  // namespace sinter::gguf_models_test
