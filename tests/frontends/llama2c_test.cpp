#include "frontends/files/llama2c.h"

#include <array>
#include <cstring>
#include <limits>
#include <numeric>

#include "frontends/llama2c_bytes.h"
#include "frontends/small_files.h"

namespace sinter::llama2c_test {
namespace {

/// The header of a small model with grouped keys; a test changes fields and sizes.
struct Checkpoint {
  // dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
  std::array<int32_t, 7> fields{8, 12, 2, 4, 2, 5, 6};
  int32_t version = 0;
  uint8_t shared = 1;
  int64_t extra_bytes = 0;

  /// Floats of the body, in this order: embedding, norms, projections, MLP, final norm, rotary
  /// table, classifier, or what version 1 makes of that.
  int64_t body_floats() const {
    const int64_t d = 8, i = 12, l = 2, kv = 4, v = 5, seq = 6, head = 2;
    const bool own_classifier = version == 0 ? fields[5] < 0 : shared == 0;
    return v * d + l * (2 * d + 2 * d * d + 2 * kv * d + 3 * i * d) + d +
           (version == 0 ? seq * head : 0) + (own_classifier ? v * d : 0);
  }

  std::string bytes() const {
    std::string result =
        testing::llama2c_bytes(fields, version, shared, static_cast<size_t>(body_floats()));
    result.resize(static_cast<size_t>(static_cast<int64_t>(result.size()) + extra_bytes), 'x');
    return result;
  }
};

class Files : public ScratchFolder {
 public:
  Result<Llama2cFile> open(const Checkpoint& checkpoint) const {
    return Llama2cFile::open(write("model.bin", checkpoint.bytes()));
  }
  Result<Llama2cFile> with_field(size_t field, int32_t value, int32_t version = 0) const {
    Checkpoint checkpoint;
    checkpoint.version = version;
    checkpoint.fields[field] = value;
    return open(checkpoint);
  }
};

/// The first float of a tensor, which is its place in the body; checks that the rest follows it.
float place_of(const Llama2cFile& file, std::string_view name, Dims dims) {
  CAPTURE(name);
  auto type = file.find(name);
  REQUIRE(type.has_value());
  CHECK(*type == TensorType{DType::f32, dims});
  int64_t count = 1;
  for (Dim dim : dims) count *= dim.constant();
  std::vector<float> values(count);
  REQUIRE(file.read(name, std::as_writable_bytes(std::span(values))));
  CHECK(values.back() == values.front() + static_cast<float>(count - 1));
  return values.front();
}

}  // namespace

TEST_CASE("llama2c: version 0 places every tensor") {
  Files files;
  auto file = files.open({});
  if (!file) FAIL(file.error().message());
  const Llama2cHeader& h = file->header();
  CHECK(h.dim == 8);
  CHECK(h.n_kv_heads == 2);
  CHECK(h.vocab_size == 5);
  CHECK(h.seq_len == 6);
  CHECK(h.shared_classifier);
  CHECK(h.version == 0);
  CHECK(h.kv_dim() == 4);
  const auto at = [&](std::string_view name, Dims dims) { return place_of(*file, name, dims); };
  CHECK(at("model.embed_tokens.weight", {5, 8}) == 0);
  CHECK(at("model.layers.0.input_layernorm.weight", {8}) == 40);
  CHECK(at("model.layers.1.input_layernorm.weight", {8}) == 48);
  CHECK(at("model.layers.0.self_attn.q_proj.weight", {8, 8}) == 56);
  CHECK(at("model.layers.1.self_attn.q_proj.weight", {8, 8}) == 120);
  CHECK(at("model.layers.0.self_attn.k_proj.weight", {4, 8}) == 184);
  CHECK(at("model.layers.1.self_attn.k_proj.weight", {4, 8}) == 216);
  CHECK(at("model.layers.0.self_attn.v_proj.weight", {4, 8}) == 248);
  CHECK(at("model.layers.1.self_attn.o_proj.weight", {8, 8}) == 376);
  CHECK(at("model.layers.0.post_attention_layernorm.weight", {8}) == 440);
  CHECK(at("model.layers.0.mlp.gate_proj.weight", {12, 8}) == 456);
  CHECK(at("model.layers.1.mlp.down_proj.weight", {8, 12}) == 744);
  CHECK(at("model.layers.0.mlp.up_proj.weight", {12, 8}) == 840);
  CHECK(at("model.norm.weight", {8}) == 1032);
}

TEST_CASE("llama2c: names that are no tensor") {
  Files files;
  auto file = files.open({});
  REQUIRE(file);
  for (const char* name :
       {"lm_head.weight", "", "model.layers.", "model.layers.2.input_layernorm.weight",
        "model.layers.00.input_layernorm.weight", "model.layers.-0.input_layernorm.weight",
        "model.layers.99999999999999999999.input_layernorm.weight", "model.layers.0.",
        "model.layers.0.model.norm.weight", "input_layernorm.weight", "model.layers.0"}) {
    CAPTURE(name);
    CHECK_FALSE(file->find(name));
    check_error(file->read(name, {}), {"no tensor named"});
  }
}

TEST_CASE("llama2c: a negative vocabulary of version 0 is a classifier of its own") {
  Files files;
  auto file = files.with_field(5, -5);
  if (!file) FAIL(file.error().message());
  CHECK_FALSE(file->header().shared_classifier);
  CHECK(file->header().vocab_size == 5);
  CHECK(place_of(*file, "lm_head.weight", {5, 8}) == 1040 + 12);
}

TEST_CASE("llama2c: version 1 places every tensor") {
  Files files;
  Checkpoint c;
  c.version = 1;
  c.shared = 0;
  auto file = files.open(c);
  if (!file) FAIL(file.error().message());
  CHECK(file->header().version == 1);
  CHECK_FALSE(file->header().shared_classifier);
  const auto at = [&](std::string_view name, Dims dims) { return place_of(*file, name, dims); };
  CHECK(at("model.layers.0.input_layernorm.weight", {8}) == 0);
  CHECK(at("model.layers.1.post_attention_layernorm.weight", {8}) == 24);
  CHECK(at("model.norm.weight", {8}) == 32);
  CHECK(at("model.embed_tokens.weight", {5, 8}) == 40);
  CHECK(at("model.layers.1.self_attn.q_proj.weight", {8, 8}) == 144);
  CHECK(at("model.layers.0.mlp.gate_proj.weight", {12, 8}) == 464);
  CHECK(at("model.layers.0.mlp.down_proj.weight", {8, 12}) == 656);
  CHECK(at("model.layers.0.mlp.up_proj.weight", {12, 8}) == 848);
  CHECK(at("lm_head.weight", {5, 8}) == 1040);
  c.shared = 1;
  file = files.open(c);
  REQUIRE(file);
  CHECK_FALSE(file->find("lm_head.weight"));
}

TEST_CASE("llama2c hostile: other versions and flags") {
  Files files;
  Checkpoint c;
  c.version = 2;
  check_error(files.open(c), {"model.bin", "version 2 (quantized)", "0 and 1"});
  c.version = -1;
  std::string bytes = Checkpoint{.version = 1}.bytes();
  bytes[4] = 9;
  check_error(Llama2cFile::open(files.write("model.bin", bytes)), {"version 9", "0 and 1"});
  c.version = 1;
  c.shared = 7;
  check_error(files.open(c), {"shared_classifier", "got 7"});
}

TEST_CASE("llama2c hostile: short headers") {
  Files files;
  const std::string v0 = Checkpoint{}.bytes(), v1 = Checkpoint{.version = 1}.bytes();
  check_error(Llama2cFile::open(files.write("m.bin", v0.substr(0, 27))), {"m.bin", "28", "27"});
  check_error(Llama2cFile::open(files.write("m.bin", v0.substr(0, 3))), {"m.bin", "28", "3"});
  check_error(Llama2cFile::open(files.write("m.bin", v1.substr(0, 255))), {"256", "255"});
  check_error(Llama2cFile::open(files.write("m.bin", "")), {"m.bin", "empty"});
  check_error(Llama2cFile::open(files.write("m.bin", "version https://git-lfs.github.com/spec/v1")),
              {"m.bin", "git-lfs"});
  check_error(Llama2cFile::open(files.write("m.bin", "PK\x03\x04" + v0)), {"PyTorch"});
}

TEST_CASE("llama2c hostile: zero and negative fields") {
  Files files;
  const std::array<const char*, 7> names{"dim",        "hidden_dim", "n_layers", "n_heads",
                                         "n_kv_heads", "vocab_size", "seq_len"};
  for (size_t field = 0; field < names.size(); ++field)
    for (int32_t version : {0, 1})
      for (int32_t value : {0, -3, std::numeric_limits<int32_t>::min()}) {
        CAPTURE(value);
        // Version 0 gives negative vocabularies a meaning; -3 then only has the wrong size.
        if (field == 5 && version == 0 && value == -3) continue;
        const bool is_negated = field == 5 && version == 0;
        check_error(files.with_field(field, value, version),
                    {"model.bin", names[field],
                     is_negated && value < 0 ? "got 2147483648" : fmt::format("got {}", value)});
      }
}

TEST_CASE("llama2c hostile: head counts that do not fit") {
  Files files;
  check_error(files.with_field(3, 3), {"model.bin", "dim 8", "n_heads 3"});
  check_error(files.with_field(4, 8), {"n_kv_heads 8", "n_heads 4"});
  check_error(files.with_field(4, 3), {"n_kv_heads 3", "n_heads 4"});
  check_error(files.with_field(3, 8), {"head size 1", "odd"});
}

TEST_CASE("llama2c hostile: sizes that overflow, and sizes that are not the file's") {
  Files files;
  Checkpoint c;
  const std::string bytes = c.bytes();
  check_error(files.with_field(5, 1 << 30), {"model.bin", "need 34359", "has 4236"});  // 2^35 bytes
  c.fields = {65536, 65536, 1, 2, 2, 65536, 16};  // dim * dim is 0 in 32 bits
  check_error(files.open(c), {"need", "has 4236"});
  c.fields = {2147483644, 2147483647, 2147483647, 2, 2, 2147483647, 2147483647};
  check_error(files.open(c), {"2^63 bytes", "2147483644", "4236"});
  for (int64_t difference : {-4, 4, -1, 1}) {
    Checkpoint wrong;
    wrong.extra_bytes = difference;
    check_error(files.open(wrong),
                {"model.bin", "need 4236 bytes", fmt::format("has {}", 4236 + difference),
                 difference < 0 ? "too few" : "too many"});
  }
  CHECK(bytes.size() == 4236);
}

TEST_CASE("llama2c hostile: truncations are refused, flipped header bits do not crash") {
  Files files;
  for (int32_t version : {0, 1}) {
    const std::string bytes = Checkpoint{.version = version}.bytes();
    for (size_t length = 0; length < bytes.size(); length += length < 300 ? 1 : 101) {
      CAPTURE(length);
      check_error(
          Llama2cFile::open(files.write("t.bin", std::string_view(bytes).substr(0, length))),
          {"t.bin"});
    }
    for (size_t bit = 0; bit < 8 * 40; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      auto file = Llama2cFile::open(files.write("t.bin", flipped));
      if (!file) check_message(file.error(), {"t.bin"});
    }
  }
}

}  // namespace sinter::llama2c_test
