#include "frontends/files/shards.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "frontends/small_files.h"

namespace sinter::shards_test {
namespace {

/// A shard whose tensors are F32[1] and hold their place in the list.
std::string shard(std::initializer_list<std::string_view> names) {
  std::string header = "{";
  size_t at = 0;
  std::string data;
  for (std::string_view name : names) {
    header += (at ? "," : "") +
              entry(name, "F32", "[1]", fmt::format("{}", at), fmt::format("{}", at + 4));
    const float value = static_cast<float>(at / 4);
    data.append(reinterpret_cast<const char*>(&value), 4);
    at += 4;
  }
  return safetensors_bytes(header + "}", 0) + data;
}

std::string index(std::string_view map) {
  return fmt::format(R"({{"metadata": {{"total_size": 1}}, "weight_map": {}}})", map);
}

constexpr const char* index_file = "model.safetensors.index.json";

class Model : public ScratchFolder {
 public:
  Result<std::unique_ptr<TensorSource>> open(std::string_view map) const {
    write(index_file, index(map));
    return open_weights(path());
  }
};

}  // namespace

TEST_CASE("shards: a folder with one file") {
  Model m;
  m.write("model.safetensors", shard({"a", "b"}));
  auto source = open_weights(m.path());
  REQUIRE(source);
  CHECK((*source)->files() == std::vector{m.path("model.safetensors")});
  float value = 0;
  REQUIRE((*source)->read("b", std::as_writable_bytes(std::span(&value, 1))));
  CHECK(value == 1);
}

TEST_CASE("shards: tensors come from the shard that has them") {
  Model m;
  m.write("one.safetensors", shard({"a", "b"}));
  m.write("two.safetensors", shard({"z", "c"}));
  auto source = m.open(R"({"a": "one.safetensors", "c": "two.safetensors",
                           "b": "one.safetensors", "z": "two.safetensors"})");
  if (!source) FAIL(source.error().message());
  float value = -1;
  const auto out = std::as_writable_bytes(std::span(&value, 1));
  CHECK((*source)->find("c") == TensorType{DType::f32, {1}});
  CHECK((*source)->files() ==
        std::vector{m.path(index_file), m.path("one.safetensors"), m.path("two.safetensors")});
  REQUIRE((*source)->read("c", out));
  CHECK(value == 1);
  REQUIRE((*source)->read("a", out));
  CHECK(value == 0);
  CHECK_FALSE((*source)->find("d"));
  check_error((*source)->read("d", out), {index_file, "\"d\"", "4 of 2 shards", "\"a\""});
}

TEST_CASE("shards: symbolic links are followed, as in a hub cache, but only to files") {
  Model m;
  std::filesystem::create_directory(m.path("blobs"));
  std::filesystem::create_directory(m.path("snapshot"));
  m.write("blobs/1", shard({"a"}));
  m.write("blobs/2", index(R"({"a": "s.safetensors"})"));
  const auto link = [&](const char* target, const char* name) {
    std::filesystem::remove(m.path(name));
    REQUIRE(::symlink(target, m.path(name).c_str()) == 0);
  };
  link("../blobs/2", "snapshot/model.safetensors.index.json");
  link("../blobs/1", "snapshot/s.safetensors");
  auto source = open_weights(m.path("snapshot"));
  REQUIRE(source);
  CHECK((*source)->find("a").has_value());

  link("../blobs", "snapshot/s.safetensors");
  check_error(open_weights(m.path("snapshot")), {"s.safetensors", "a folder"});
  REQUIRE(::mkfifo(m.path("fifo").c_str(), 0600) == 0);
  link("../fifo", "snapshot/s.safetensors");
  check_error(open_weights(m.path("snapshot")), {"s.safetensors", "a FIFO"});
  link("/dev/zero", "snapshot/s.safetensors");
  check_error(open_weights(m.path("snapshot")), {"s.safetensors", "a device"});
  link("../blobs/gone", "snapshot/s.safetensors");
  check_error(open_weights(m.path("snapshot")), {"s.safetensors", "symbolic link"});
}

TEST_CASE("shards: names in the index that lead elsewhere are refused") {
  Model m;
  std::filesystem::create_directory(m.path("sub"));
  m.write("s.safetensors", shard({"a"}));
  m.write("sub/s.safetensors", shard({"a"}));
  for (const char* name : {"sub/s.safetensors", "../s.safetensors", "/etc/passwd", "..", ".", "",
                           "./s.safetensors", "sub\\\\s.safetensors", "s.safetensors\\u0000.x"}) {
    CAPTURE(name);
    check_error(m.open(fmt::format(R"({{"a": "{}"}})", name)),
                {index_file, "/weight_map/a", "in the same folder"});
  }
  CHECK(m.open(R"({"a": "s.safetensors"})"));
}

TEST_CASE("shards: an index with values that are not names") {
  Model m;
  m.write("s.safetensors", shard({"a"}));
  check_error(m.open(R"({"l/a": {"file": "s.safetensors"}})"),
              {index_file, "/weight_map/l~1a", "expected a string, got an object of 1"});
  check_error(m.open(R"({"a": 3})"), {index_file, "/weight_map/a", "got 3"});
  check_error(m.open(R"(["a"])"),
              {index_file, "/weight_map", "expected an object, got an array of 1"});
  check_error(m.open(R"({"a": "s.safetensors", "a": "s.safetensors"})"),
              {index_file, "/weight_map", "\"a\"", "twice"});
  m.write(index_file, "{}");
  check_error(open_weights(m.path()), {index_file, "/weight_map", "the key is missing"});
  m.write(index_file, "");
  check_error(open_weights(m.path()), {index_file, "empty"});
}

TEST_CASE("shards: a missing shard, a missing tensor, a tensor in two shards") {
  Model m;
  m.write("one.safetensors", shard({"a", "b"}));
  m.write("two.safetensors", shard({"b", "c"}));
  check_error(m.open(R"({"a": "one.safetensors", "c": "three.safetensors"})"),
              {index_file, "/weight_map/c", "\"three.safetensors\"", "not in the folder"});
  check_error(m.open(R"({"a": "one.safetensors", "c": "one.safetensors"})"),
              {index_file, "/weight_map/c", "\"one.safetensors\"", "lacks"});
  check_error(m.open(R"({"a": "one.safetensors", "c": "two.safetensors"})"),
              {index_file, "\"b\"", "one.safetensors", "two.safetensors"});
  m.write("two.safetensors", shard({"c"}).substr(0, 60));
  check_error(m.open(R"({"a": "one.safetensors", "c": "two.safetensors"})"),
              {"two.safetensors", "truncated"});
}

TEST_CASE("shards: folders without weights say what to do") {
  Model m;
  check_error(open_weights(m.path()),
              {m.path(), "neither model.safetensors nor", "--random-weights"});
  m.write("pytorch_model.bin", "x");
  check_error(open_weights(m.path()),
              {m.path(), "only pytorch_model.bin", "this makes safetensors of it",
               "torch.load(file, map_location='cpu', weights_only=True)"});
  check_error(open_weights(m.path("none")), {m.path("none"), "no such file or folder"});
  check_error(open_weights(m.write("file", "x")), {"file", "at least 8 bytes"});
}

}  // namespace sinter::shards_test
