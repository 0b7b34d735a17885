// `sinter run` of a module: what its results are called.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

/// A safetensors file with one tensor of type F32.
std::string file_of(const std::string& name, const std::array<float, 4>& values) {
  const nlohmann::json header = {
      {name, {{"dtype", "F32"}, {"shape", {1, 4}}, {"data_offsets", {0, sizeof(values)}}}}};
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string file(sizeof(length) + sizeof(values), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), values.data(), sizeof(values));
  return file.insert(sizeof(length), text);
}

/// The float at `place` of the tensor `name` in a safetensors file.
float element(const std::string& file, const std::string& name, size_t place) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const auto header = nlohmann::json::parse(file.substr(sizeof(length), length));
  REQUIRE_MESSAGE(header.contains(name), header.dump());
  float value = 0;
  std::memcpy(&value,
              file.data() + sizeof(length) + length +
                  header[name]["data_offsets"][0].get<size_t>() + place * sizeof(value),
              sizeof(value));
  return value;
}

TEST_CASE("results have the names that the module gives its outputs") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/";
  // %a and %b become one value, %b is an output twice, %x needs a copy, %v is a view.
  write_whole(path + "m.sir", R"(module @m {
  symbol N in [1, 8]
  entry @f(%x: f32[N, 4]) -> (%b, %a, %b, %x, %v) {
    %a = neg %x : f32[N, 4]
    %b = neg %x : f32[N, 4]
    %v = transpose %a {axes = [1, 0]} : f32[4, N]
  }
}
)");
  write_whole(path + "in.safetensors", file_of("x", {1, 2, 3, 4}));
  for (const char* fuse : {"--quiet", "--no-fuse"}) {
    const ProgramRun run =
        run_program({"run", path + "m.sir", "--inputs", path + "in.safetensors", "--out",
                     path + "out.safetensors", "--device", "cpu", fuse});
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    const std::string out = read_whole(path + "out.safetensors");
    CHECK(element(out, "a", 2) == -3);
    CHECK(element(out, "b", 2) == -3);
    CHECK(element(out, "x", 2) == 3);
    CHECK(element(out, "v", 2) == -3);
  }
}

}  // namespace
}  // namespace sinter
