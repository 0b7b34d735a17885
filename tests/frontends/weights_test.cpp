// load_model with weights that stand apart from the model, and folders of a module.
#include <doctest/doctest.h>

#include <filesystem>

#include "frontends/check_tensors.h"
#include "frontends/config_text.h"
#include "frontends/files/shards.h"
#include "frontends/load_model.h"
#include "frontends/small_files.h"

namespace sinter::weights_test {
namespace {

namespace fs = std::filesystem;
using testing::message_of;

const fs::path kGolden = fs::path(SINTER_TESTS_DIR) / "golden";
const fs::path kSamples = SINTER_SAMPLES_DIR;

constexpr const char* kModule = R"(module @m {
  weight %a : f32[2] = file {tensor = "a"}
  weight %b : f32[3] = {
    %raw = file {tensor = "b"} : f16[3]
    %b = cast %raw : f32[3]
    return %b
  }
  entry @f(%x: f32[2]) -> (%y) {
    %y = add %x, %a : f32[2]
  }
}
)";

struct Tensor {
  std::string name;
  FileDType dtype;
  std::vector<int64_t> dims;
};
const Tensor kA{"a", FileDType::F32, {2}}, kB{"b", FileDType::F16, {3}};

/// Writes tensors of zeros; gives the file's path.
std::string write_zeros(const std::string& path, const std::vector<Tensor>& tensors) {
  const std::vector<std::byte> zeros(1 << 20);
  std::vector<NamedTensor> named;
  for (const Tensor& tensor : tensors)
    named.push_back({tensor.name, tensor.dtype, tensor.dims,
                     std::span(zeros).first(*tensor_bytes(tensor.dtype, tensor.dims))});
  const Status written = write_safetensors(path, named);
  REQUIRE_MESSAGE(written, message_of(written));
  return path;
}

LoadOptions with_weights(const std::string& path) {
  LoadOptions options;
  options.weights = path;
  return options;
}

/// The message from loading the module with these weights, paths cut to the part in the folder.
std::string module_error(const ScratchFolder& folder, const std::string& weights) {
  folder.write("m.sir", kModule);
  std::string message =
      message_of(load_model(folder.path("m.sir"), with_weights(folder.path(weights))));
  for (size_t at; (at = message.find(folder.path() + "/")) != std::string::npos;)
    message.replace(at, folder.path().size() + 1, "");
  return message;
}

TEST_CASE("a module takes its weights from a file, from a folder and from shards") {
  const ScratchFolder folder;
  folder.write("m.sir", kModule);
  CHECK(!load_model(folder.path("m.sir"))->tensors);
  write_zeros(folder.path("w.safetensors"), {kA, kB});
  fs::create_directory(folder.path("one"));
  write_zeros(folder.path("one/model.safetensors"), {kB, kA});
  fs::create_directory(folder.path("two"));
  write_zeros(folder.path("two/s1.safetensors"), {kA});
  write_zeros(folder.path("two/s2.safetensors"), {kB});
  folder.write("two/model.safetensors.index.json",
               R"({"weight_map": {"b": "s2.safetensors", "a": "s1.safetensors"}})");
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"w.safetensors", {"w.safetensors"}},
      {"one", {"one/model.safetensors"}},
      {"two", {"two/model.safetensors.index.json", "two/s2.safetensors", "two/s1.safetensors"}}};
  for (const auto& [weights, files] : cases) {
    CAPTURE(weights);
    auto model = load_model(folder.path("m.sir"), with_weights(folder.path(weights)));
    REQUIRE_MESSAGE(model, message_of(model));
    CHECK(model->origin == folder.path("m.sir"));
    std::vector<std::string> paths;
    for (const std::string& file : files) paths.push_back(folder.path(file));
    CHECK(model->tensors->files() == paths);
  }
}

TEST_CASE("weights that do not fit a module are named with both types and the file") {
  const ScratchFolder folder;
  write_zeros(folder.path("w"), {kA});
  CHECK(module_error(folder, "w") ==
        "w: no tensor named \"b\" among 1, which weight %b needs as f16[3]; the first one is "
        "\"a\"; if the names are of another model, give its weights, else they are incomplete: "
        "download or export them again");
  write_zeros(folder.path("w"), {kA, {"b", FileDType::F32, {3}}});
  CHECK(module_error(folder, "w") ==
        "w: tensor b is f32[3], weight %b needs it as f16[3]; give the weights that belong to the "
        "module");
  write_zeros(folder.path("w"), {kB, {"a", FileDType::F32, {2, 1}}});
  CHECK(module_error(folder, "w")
            .starts_with("w: tensor a is f32[2, 1], weight %a needs it as f32[2]"));
  write_zeros(folder.path("w"), {kB, {"a", FileDType::F64, {2}}});
  CHECK(module_error(folder, "w")
            .starts_with("w: tensor \"a\" has elements of type F64, expected F32"));
  write_zeros(folder.path("w"), {kA, kB, {"c", FileDType::F64, {1}}});
  CHECK(module_error(folder, "w") ==
        "w: no weight of the module reads 1 of the tensors: c; give the weights that belong to "
        "the module, and no others");
  std::vector<Tensor> many = {kA, kB};
  for (const char* name : {"p", "q", "r", "s", "t"}) many.push_back({name, FileDType::F32, {1}});
  write_zeros(folder.path("w"), many);
  CHECK(module_error(folder, "w")
            .starts_with("w: no weight of the module reads 5 of the tensors: p, q, r and 2 more;"));
  folder.write("w", "no safetensors");
  CHECK(module_error(folder, "w").starts_with("w: "));
  CHECK(module_error(folder, "none") == "none: no such file or folder; check the path");
}

TEST_CASE("shards of a module: one is missing, two have one tensor") {
  const ScratchFolder folder;
  fs::create_directory(folder.path("two"));
  write_zeros(folder.path("two/s1.safetensors"), {kA});
  const std::string index = R"({"weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}})";
  folder.write("two/model.safetensors.index.json", index);
  CHECK(module_error(folder, "two").find("the shard \"s2.safetensors\" is not in the folder") !=
        std::string::npos);
  write_zeros(folder.path("two/s2.safetensors"), {kA, kB});
  CHECK(module_error(folder, "two").find("tensor \"a\" is in two shards") != std::string::npos);
}

TEST_CASE("a folder with model.sir is a module, with the weights that stand beside it") {
  const ScratchFolder folder;
  folder.write("model.sir", kModule);
  CHECK(is_module_path(folder.path()));
  auto bare = load_model(folder.path());
  REQUIRE_MESSAGE(bare, message_of(bare));
  CHECK(!bare->spec);
  CHECK(!bare->tensors);
  CHECK(bare->origin == folder.path());
  const std::string own = write_zeros(folder.path("model.safetensors"), {kA, kB});
  CHECK(load_model(folder.path())->tensors->files() == std::vector{own});
  const std::string other = write_zeros(folder.path("other.safetensors"), {kA, kB});
  CHECK(load_model(folder.path(), with_weights(other))->tensors->files() == std::vector{other});
  LoadOptions random;
  random.random_weights = 1;
  CHECK(load_model(folder.path(), random)->tensors->files().empty());
  write_zeros(own, {kA});
  check_error(load_model(folder.path()), {own, "\"b\"", "f16[3]"});
  folder.write("config.json", "{}");
  check_error(load_model(folder.path()), {folder.path(), "both config.json and model.sir"});
}

constexpr const char* kSpec = R"({"sinter_spec": 1, "name": "s", "dtype": "f16", "vocabulary": 8,
  "hidden": 8, "layers": 1, "heads": 2, "ffn": 8, "max_positions": 8, "norm": "rms_norm",
  "norm_eps": 1e-5, "rope": {"theta": 10000}, "activation": "silu", "gated": true, "tied": true})";

TEST_CASE("a spec takes weights by the names of its own, each of any float type") {
  const ScratchFolder folder;
  folder.write("s.json", kSpec);
  auto bare = load_model(folder.path("s.json"));
  REQUIRE_MESSAGE(bare, message_of(bare));
  CHECK(!bare->tensors);
  std::vector<Tensor> tensors;
  for (const auto& [name, type] : file_tensors(bare->module)) {
    Tensor tensor{name, FileDType::F32, {}};
    for (Dim dim : type.dims) tensor.dims.push_back(dim.constant());
    tensors.push_back(std::move(tensor));
  }
  const std::string weights = folder.path("w.safetensors");
  const auto load = [&](const std::vector<Tensor>& given) {
    write_zeros(weights, given);
    return load_model(folder.path("s.json"), with_weights(weights));
  };
  auto model = load(tensors);
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->tensors->files() == std::vector{weights});
  CHECK(!model->tied_tensors);

  std::vector<Tensor> changed = tensors;
  changed.push_back({"l0.extra", FileDType::F32, {1}});
  check_error(load(changed), {weights, "tensor l0.extra is no part of the model"});
  changed = tensors;
  changed.pop_back();
  check_error(load(changed), {weights, "no tensor named \"" + tensors.back().name + "\""});
  changed = tensors;
  changed.front().dims.front() = 9;
  check_error(load(changed), {weights, "f32[9", "f32[8"});
  // A head beside the table it is tied to is compared when the table is read.
  changed = tensors;
  changed.push_back({"lm_head.weight", FileDType::F32, {8, 8}});
  auto tied = load(changed);
  REQUIRE_MESSAGE(tied, message_of(tied));
  CHECK(tied->tied_tensors ==
        std::pair<std::string, std::string>{"embed.weight", "lm_head.weight"});
}

TEST_CASE("a Hugging Face folder takes other weights, a llama2.c file none") {
  const ScratchFolder folder;
  fs::copy(kGolden / "gpt2" / "config.json", folder.path());
  const std::string own = (kGolden / "gpt2" / "model.safetensors").string();
  auto model = load_model(folder.path(), with_weights(own));
  REQUIRE_MESSAGE(model, message_of(model));
  CHECK(model->tensors->files() == std::vector{own});
  // The folder's own stay unread.
  folder.write("model.safetensors", "broken");
  CHECK(load_model(folder.path(), with_weights((kGolden / "gpt2").string())));
  check_error(load_model(folder.path(),
                         with_weights((kSamples / "small-llama" / "model.safetensors").string())),
              {"small-llama", "no embedding table"});
  folder.write("m.bin", std::string(28, '\1'));
  const auto refused = load_model(folder.path("m.bin"), with_weights(own));
  REQUIRE(!refused);
  CHECK(refused.error().message() ==
        folder.path("m.bin") + ": a llama2.c file holds its own weights; leave out --weights");
  CHECK(refused.error().code == ExitCode::usage);
}

}  // namespace
}  // namespace sinter::weights_test
