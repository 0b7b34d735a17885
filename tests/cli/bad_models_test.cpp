// Hostile models as the program meets them. The readers' own tests go into every corner; these show
// that a command gives on what they say and leaves nothing behind.
#include <sys/stat.h>

#include <filesystem>

#include "cli/refused_command.h"

namespace sinter::bad_models_test {
namespace {

namespace fs = std::filesystem;

std::string with_header(uint64_t length, const std::string& header, size_t data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xFF);
  return bytes + header + std::string(data, '\0');
}
std::string safetensors(const std::string& header, size_t data) {
  return with_header(header.size(), header, data);
}

TEST_CASE("bad input: what is no model, given as one") {
  const Folder folder;
  const std::string out = folder.at("plan");
  for (const char* ending : {".bin", ".json", ".sir"}) {
    const std::string name = std::string("model") + ending;
    const auto refused = [&](const std::string& bytes, const std::string& part) {
      const std::string file = folder.write(name, bytes);
      check_refused({"inspect", file}, {name, part});
      check_refused({"compile", file, "-o", out}, {name, part});
      CHECK_FALSE(fs::exists(out));
    };
    refused("", "the file is empty");
    refused("<!DOCTYPE html>\n<html></html>", "web page");
    refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull");
  }
  check_refused({"inspect", folder.path()}, {"model.sir", "git lfs pull"});
  fs::remove(folder.at("model.sir"));
  check_refused({"inspect", folder.path()}, {"config.json", "model.sir"});
  REQUIRE(::mkfifo(folder.at("fifo.bin").c_str(), 0600) == 0);
  check_refused({"inspect", folder.at("fifo.bin")}, {"a FIFO"});
  fs::create_directory(folder.at("sub"));
  fs::create_symlink("nowhere", folder.at("sub/config.json"));
  check_refused({"inspect", folder.at("sub")}, {"config.json", "symbolic link"});
}

TEST_CASE("bad input: models of other formats, in every command") {
  const Folder folder;
  const std::string text = folder.write("text", "a");
  for (const auto& [name, part] :
       {std::pair("m.onnx", "ONNX files are converted before they are read"),
        {"m.pt", "PyTorch files are not read"}}) {
    const std::string file = folder.at(name);
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"inspect"},
                                               {"compile", "-o", folder.at("plan")},
                                               {"explain"},
                                               {"opt"},
                                               {"run", "--tokens", "1"},
                                               {"verify"},
                                               {"generate", "--prompt", "a"},
                                               {"tokenize", "--text", "a"},
                                               {"ppl", "--text", text},
                                               {"quantize", "--to", "fp8", "-o", folder.at("new")},
                                               {"embed", "--text", "a"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.begin() + 1, file);
      check_refused(arguments, {name, part});
    }
  }
  CHECK_FALSE(fs::exists(folder.at("plan")));
  CHECK_FALSE(fs::exists(folder.at("new")));
}

TEST_CASE("bad input: numbers and forms that JSON or a config cannot have") {
  const Folder folder;
  const auto refused = [&](const std::string& value, Parts parts) {
    folder.config("llama", "vocab_size", value);
    check_refused({"inspect", folder.path()}, parts);
  };
  refused(std::string(100000, '['), {"config.json", "/vocab_size", "64 levels"});
  refused("1e400", {"config.json:", "/vocab_size", "1e400"});
  refused("NaN", {"config.json:", "/vocab_size", "not JSON"});
  refused("-1", {"/vocab_size", "got -1", "268435456"});
  refused("4096.5", {"/vocab_size", "got 4096.5"});
  refused("9223372036854775808", {"/vocab_size", "9223372036854775808"});
  refused("\"211\"", {"/vocab_size", "got \"211\""});
  refused("211, \"vocab_size\": 211", {"config.json", "\"vocab_size\"", "twice"});
}

TEST_CASE("bad input: configs that make no model") {
  const Folder folder;
  const auto refused = [&](const std::string& model, const std::string& key,
                           const std::string& value, Parts parts) {
    folder.config(model, key, value);
    check_refused({"inspect", folder.path()}, parts);
  };
  refused("llama", "num_attention_heads", "0", {"/num_attention_heads", "got 0"});
  refused("gpt2", "n_head", "5", {"/n_head", "not divisible by 5"});
  refused("llama", "num_key_value_heads", "3",
          {"/num_key_value_heads", "4 query heads cannot share 3"});
  refused("llama", "num_key_value_heads", "8",
          {"/num_key_value_heads", "4 query heads cannot share 8"});
  refused("llama", "head_dim", "15", {"head_dim", "15"});
  refused("llama", "rope_theta", "0", {"rope_theta", "0"});
  refused("llama", "rms_norm_eps", "NaN", {"/rms_norm_eps"});
  refused("llama", "model_type", "\"frobnicator\"", {"/model_type", "frobnicator"});
  refused("llama", "hidden_act", "\"swoosh\"", {"/hidden_act", "swoosh"});
  refused("llama", "rope_type", "\"spiral\"", {"rope_type", "spiral"});
  refused("llama", "vocab_size", "211, \"quantization_config\": {\"bits\": 4}",
          {"/quantization_config"});
  refused("llama", "vocab_size", "1048577", {"/vocab_size", "1048577", "1048576"});
  // The weights have 211 rows.
  folder.config("llama", "vocab_size", "212");
  fs::copy_file(kGolden + "llama/model.safetensors", folder.at("model.safetensors"));
  check_refused({"inspect", folder.path()},
                {"model.safetensors", "model.embed_tokens.weight", "211", "212"});
}

TEST_CASE("bad input: safetensors whose header lies") {
  const Folder folder;
  folder.config("llama", "vocab_size", "211");
  const auto refused = [&](const std::string& bytes, Parts parts) {
    folder.write("model.safetensors", bytes);
    check_refused({"inspect", folder.path()}, parts);
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  refused(with_header(0, "{}", 0), {"model.safetensors", "length is 0"});
  refused(with_header(UINT64_MAX, "{}", 0), {"18446744073709551615", "100000000"});
  refused(with_header(100'000'001, "{}", 0), {"100000001"});
  refused(with_header(99'999'999, "{}", 0), {"length is 99999999", "truncated"});
  refused(safetensors("{\"\xff\": 1}", 0), {"UTF-8"});
  refused(safetensors("[]", 0), {"0x5b"});
  refused(safetensors(good, 9), {"1 too many"});
  refused(safetensors(good, 7), {"1 too few"});
  refused(safetensors(
              R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
          {"/a", "2^63"});
  refused(safetensors(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8),
          {"/a/dtype", "F33"});
  refused(safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
          {"/a", "begin at 8"});
  refused(safetensors(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
          {"/a", "span 8 bytes"});
  refused(
      safetensors(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      {"/a", "twice"});
}

TEST_CASE("bad input: shards that lie elsewhere or are no files") {
  const Folder folder;
  folder.config("llama", "vocab_size", "211");
  const std::string good =
      safetensors(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4);
  folder.write("s.safetensors", good);
  const auto refused = [&](const std::string& shard, Parts parts) {
    folder.write("model.safetensors.index.json",
                 fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", shard));
    check_refused({"inspect", folder.path()}, parts);
  };
  for (const char* name : {"../s.safetensors", "/etc/passwd", "sub/s.safetensors", ".."})
    refused(name, {"index.json: /weight_map/a", "in the same folder"});
  refused("none.safetensors", {"/weight_map/a", "none.safetensors", "download the model again"});
  fs::create_directory(folder.at("folder.safetensors"));
  refused("folder.safetensors", {"folder.safetensors", "a folder"});
  REQUIRE(::mkfifo(folder.at("fifo.safetensors").c_str(), 0600) == 0);
  refused("fifo.safetensors", {"fifo.safetensors", "a FIFO"});
  fs::create_symlink("/dev/zero", folder.at("zero.safetensors"));
  refused("zero.safetensors", {"zero.safetensors", "a device"});
  folder.write("model.safetensors.index.json", R"({"weight_map": {"b": "s.safetensors"}})");
  check_refused({"inspect", folder.path()}, {"/weight_map/b", "lacks this tensor"});
}

TEST_CASE("bad input: llama2.c files whose sizes are not theirs") {
  const Folder folder;
  const auto header = [](std::initializer_list<int32_t> fields, size_t body) {
    std::string bytes;
    for (int32_t field : fields) bytes.append(reinterpret_cast<const char*>(&field), 4);
    return bytes + std::string(body, '\0');
  };
  const auto refused = [&](const std::string& bytes, Parts parts) {
    check_refused({"inspect", folder.write("model.bin", bytes)}, parts);
  };
  // One layer of width 4, two heads that share keys, an MLP of 2, 3 tokens, 4 positions.
  constexpr size_t kBody = 4 * (3 * 4 + 4 + 4 + 16 + 2 * 8 + 16 + 3 * 8 + 4 + 4 * 2);
  CHECK(run_program({"inspect", folder.write("model.bin", header({4, 2, 1, 2, 1, 3, 4}, kBody))})
            .code == 0);
  refused(header({4, 2, 1, 2, 1, 3, 4}, 0).substr(0, 27), {"model.bin", "28 bytes", "27"});
  refused(header({4, 2, 1, 2, 1, 3, 4}, kBody - 4), {"model.bin", "4 too few"});
  refused(header({4, 2, 1, 2, 1, 3, 4}, kBody + 4), {"model.bin", "4 too many"});
  refused(header({0, 2, 1, 2, 1, 3, 4}, kBody), {"dim", "got 0"});
  refused(header({4, -2, 1, 2, 1, 3, 4}, kBody), {"hidden_dim", "got -2"});
  refused(header({4, 2, 1, 2, 1, INT32_MIN, 4}, kBody), {"vocab_size", "2147483648"});
  refused(header({65536, 65536, 1, 2, 2, 65536, 16}, kBody), {"model.bin", "too few"});
  refused(header({INT32_MAX - 1, INT32_MAX, INT32_MAX, 1, 1, INT32_MAX, INT32_MAX}, kBody),
          {"2^63"});
  refused(header({0x616b3432, 2, 4, 2, 1, 2, 1, 3, 4}, 256), {"version 2 (quantized)"});
}

TEST_CASE("bad input: a reference for another model") {
  const Folder folder;
  const auto refused = [&](const std::string& header, size_t data, Parts parts) {
    const std::string file = folder.write("reference.safetensors", safetensors(header, data));
    check_refused({"verify", kGolden + "llama", "--reference", file, "--dtype", "fp32", "--steps",
                   "1", "--device", "cpu"},
                  parts);
  };
  const std::string ids = R"("input_ids":{"dtype":"I64","shape":[1,3],"data_offsets":[0,24]})";
  refused("{}", 0, {"reference.safetensors", "input_ids"});
  refused(R"({"input_ids":{"dtype":"I64","shape":[3],"data_offsets":[0,24]}})", 24,
          {"input_ids has 1 axis,"});
  refused(R"({"input_ids":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]}})", 12,
          {"input_ids", "F32"});
  refused("{" + ids + R"(,"nll_mean":{"dtype":"F32","shape":[0],"data_offsets":[24,24]}})", 24,
          {"nll_mean has 0 elements"});
  refused("{" + ids + R"(,"hidden_0":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})", 32,
          {"hidden_0 has 2 elements"});
}

}  // namespace
}  // namespace sinter::bad_models_test
