#include "frontends/files/safetensors.h"

#include <sys/stat.h>

#include <array>
#include <cstring>

#include "frontends/small_files.h"

namespace sinter::safetensors_test {
namespace {

template <typename T, size_t n>
std::span<const std::byte> raw(const std::array<T, n>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

TEST_CASE("safetensors: what is written is read back") {
  ScratchFolder folder;
  const std::array<float, 6> matrix{1, 2, 3, 4, 5, 6};
  const std::array<uint16_t, 3> halves{0x3C00, 0x0001, 0xFBFF};
  const std::array<int64_t, 2> ids{-5, 1LL << 40};
  const std::array<uint8_t, 2> flags{0, 1};
  const std::array<float, 1> scalar{-0.0f};
  const std::string path = folder.path("t.safetensors");
  REQUIRE(write_safetensors(path, {{"h", FileDType::F16, {3}, raw(halves)},
                                   {"m", FileDType::F32, {2, 3}, raw(matrix)},
                                   {"ids", FileDType::I64, {1, 2}, raw(ids)},
                                   {"flags", FileDType::BOOL, {2}, raw(flags)},
                                   {"empty", FileDType::BF16, {4, 0}, {}},
                                   {"scalar", FileDType::F32, {}, raw(scalar)},
                                   {"quote\"\n\u20ac", FileDType::F32, {1}, raw(scalar)}}));
  auto file = open_safetensors(path);
  if (!file) FAIL(file.error().message());
  CHECK(file->tensors().size() == 7);
  CHECK(file->find("m") == TensorType{DType::f32, {2, 3}});
  CHECK(file->find("h") == TensorType{DType::f16, {3}});
  CHECK(file->find("flags") == TensorType{DType::i1, {2}});
  CHECK(file->find("empty") == TensorType{DType::bf16, {4, 0}});
  CHECK(file->find("scalar") == TensorType{DType::f32, {}});
  CHECK(file->find("quote\"\n\u20ac").has_value());
  CHECK_FALSE(file->find("nothing"));

  std::array<float, 6> read{};
  REQUIRE(file->read("m", std::as_writable_bytes(std::span(read))));
  CHECK(read == matrix);
  auto loaded = file->read_tensor("ids");
  REQUIRE(loaded);
  CHECK(loaded->dims == std::vector<int64_t>{1, 2});
  CHECK(std::memcmp(loaded->bytes.data(), ids.data(), sizeof ids) == 0);
  CHECK(file->read_tensor("empty")->bytes.empty());
}

TEST_CASE("safetensors: writing does not depend on the order of its input; data is aligned") {
  ScratchFolder folder;
  const std::array<float, 1> f{1};
  const std::array<uint16_t, 1> h{2};
  const std::array<int64_t, 1> i{3};
  const NamedTensor a{"a", FileDType::F16, {1}, raw(h)}, b{"b", FileDType::F32, {1}, raw(f)},
      c{"c", FileDType::I64, {1}, raw(i)};
  REQUIRE(write_safetensors(folder.path("1"), {a, b, c}));
  REQUIRE(write_safetensors(folder.path("2"), {c, a, b}));
  CHECK(bytes_of(folder.path("1")) == bytes_of(folder.path("2")));
  auto file = open_safetensors(folder.path("1"));
  REQUIRE(file);
  CHECK(file->entry("c")->begin == 0);
  CHECK(file->entry("b")->begin == 8);
  CHECK(file->entry("a")->begin == 12);
  CHECK((bytes_of(folder.path("1")).size() - 14) % 8 == 0);
}

TEST_CASE("safetensors: a writer's bad names leave no file") {
  ScratchFolder folder;
  const std::array<float, 1> f{1};
  const NamedTensor good{"a", FileDType::F32, {1}, raw(f)};
  NamedTensor bad = good;
  check_error(write_safetensors(folder.path("o"), {good, good}), {"o:", "two tensors", "\"a\""});
  bad.name = "\xff";
  check_error(write_safetensors(folder.path("o"), {bad}), {"\\xff"});
  bad.name = "__metadata__";
  check_error(write_safetensors(folder.path("o"), {bad}), {"__metadata__"});
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("safetensors: an unsupported element type is an error only when it is asked for") {
  ScratchFolder folder;
  auto file = open_safetensors(folder.write(
      "m.safetensors", safetensors_bytes("{" + entry("d", "F64", "[1]", "0", "8") + "," +
                                             entry("f", "F32", "[1]", "8", "12") + "," +
                                             entry("q", "F4", "[3,2]", "12", "15") + "}",
                                         15)));
  if (!file) FAIL(file.error().message());
  CHECK(file->find("f").has_value());
  CHECK_FALSE(file->find("d"));
  CHECK(file->read_tensor("d")->bytes.size() == 8);
  std::array<std::byte, 8> out;
  check_error(file->read("d", out), {"m.safetensors", "\"d\"", "F64", "expected F32"});
  check_message(file->missing("q"), {"F4", "expected F32"});
  check_message(file->missing("x"), {"m.safetensors", "\"x\"", "among 3", "\"d\""});
  check_error(file->read_tensor("x"), {"m.safetensors", "\"x\""});
}

TEST_CASE("safetensors: metadata and padding are accepted, an empty file too") {
  ScratchFolder folder;
  const auto opens = [&](std::string_view header, size_t data) {
    auto file = open_safetensors(folder.write("m", safetensors_bytes(header, data)));
    if (!file) MESSAGE(file.error().message());
    return file.has_value();
  };
  CHECK(opens("{}", 0));
  CHECK(opens("{\"__metadata__\":{\"format\":\"pt\"}}   ", 0));
  CHECK(opens("{\"x\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"U32\"}}", 4));
  CHECK(opens("{" + entry("a", "F32", "[1]", "4", "8") + "," + entry("b", "F32", "[1]", "0", "4") +
                  "," + entry("e", "F32", "[0]", "4", "4") + "}",
              8));
}

TEST_CASE("safetensors: truth values other than 0 and 1 are refused") {
  ScratchFolder folder;
  auto file = open_safetensors(
      folder.write("m", safetensors_bytes("{" + entry("b", "BOOL", "[3]", "0", "3") + "}", 3)));
  REQUIRE(file);
  std::array<std::byte, 3> out;
  check_error(file->read("b", out), {"element 2", "\"b\"", "is 2"});
}

TEST_CASE("safetensors: a file that shrinks after it was opened") {
  ScratchFolder folder;
  const std::string path =
      folder.write("m", safetensors_bytes("{" + entry("b", "F32", "[100]", "0", "400") + "}", 400));
  auto file = open_safetensors(path);
  REQUIRE(file);
  std::filesystem::resize_file(path, 100);
  std::array<std::byte, 400> out;
  check_error(file->read("b", out), {path, "now has 100"});
}

TEST_CASE("safetensors: I64 becomes i32 where it fits") {
  const std::array<int64_t, 3> good{INT32_MIN, -1, INT32_MAX}, bad{0, 1LL << 31, 0};
  const auto tensor = [](const std::array<int64_t, 3>& values) {
    auto bytes = raw(values);
    return LoadedTensor{FileDType::I64, {3}, {bytes.begin(), bytes.end()}};
  };
  CHECK(*to_i32(tensor(good)) == std::vector<int32_t>{INT32_MIN, -1, INT32_MAX});
  check_error(to_i32(tensor(bad)), {"element 1", "2147483648", "2147483647"});
  CHECK(*to_i32({FileDType::I32, {1}, std::vector<std::byte>(4)}) == std::vector<int32_t>{0});
  CHECK(to_i32({FileDType::I32, {0}, {}})->empty());
  check_error(to_i32({FileDType::F32, {1}, std::vector<std::byte>(4)}), {"I64", "F32"});
}

TEST_CASE("safetensors: an I64 tensor is a source of i64, and of i32 where its values fit") {
  ScratchFolder folder;
  std::vector<int64_t> values(20'000);  // more than are read at once
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) - 7;
  values.front() = INT32_MIN;
  values.back() = INT32_MAX;
  const std::string path = folder.path("m.safetensors");
  const auto write = [&] {
    REQUIRE(write_safetensors(
        path, {{"ids", FileDType::I64, {100, 200}, std::as_bytes(std::span(values))},
               {"none", FileDType::I64, {0, 3}, {}}}));
    return open_safetensors(path);
  };
  auto file = write();
  REQUIRE(file);
  CHECK(file->find("ids") == TensorType{DType::i64, {100, 200}});
  CHECK(reads_as(*file->find("ids"), {DType::i64, {100, 200}}));
  CHECK(reads_as(*file->find("ids"), {DType::i32, {100, 200}}));
  CHECK_FALSE(reads_as(*file->find("ids"), {DType::i32, {200, 100}}));
  CHECK_FALSE(reads_as(*file->find("ids"), {DType::f32, {100, 200}}));
  CHECK_FALSE(reads_as({DType::i32, {3}}, {DType::i64, {3}}));
  CHECK(reads_as(FileDType::I64, DType::i32));
  CHECK_FALSE(reads_as(FileDType::I32, DType::i64));
  std::vector<int64_t> wide(values.size());
  REQUIRE(file->read("ids", std::as_writable_bytes(std::span(wide))));
  CHECK(wide == values);
  std::vector<int32_t> read(values.size());
  REQUIRE(file->read("ids", std::as_writable_bytes(std::span(read))));
  CHECK(std::equal(read.begin(), read.end(), values.begin()));
  CHECK(file->find("none") == TensorType{DType::i64, {0, 3}});
  CHECK(file->read("none", {}));

  for (const auto& [element, value] : {std::pair<size_t, int64_t>{0, int64_t{INT32_MIN} - 1},
                                       {19'999, int64_t{INT32_MAX} + 1},
                                       {12'345, INT64_MIN},
                                       {8'192, INT64_MAX},
                                       {8'191, int64_t{1} << 32}}) {
    const int64_t before = std::exchange(values[element], value);
    file = write();
    REQUIRE(file);
    check_error(file->read("ids", std::as_writable_bytes(std::span(read))),
                {path, fmt::format("element {} of the I64 tensor \"ids\" is {}", element, value),
                 "from -2147483648 to 2147483647"});
    values[element] = before;
  }
}

TEST_CASE("safetensors: an I64 tensor in a file that shrinks") {
  ScratchFolder folder;
  const std::string path =
      folder.write("m", safetensors_bytes("{" + entry("b", "I64", "[100]", "0", "800") + "}", 800));
  auto file = open_safetensors(path);
  REQUIRE(file);
  std::filesystem::resize_file(path, 500);
  std::array<std::byte, 400> out;
  check_error(file->read("b", out), {path, "now has 500"});
}

TEST_CASE("safetensors: every element type has a name there, of as many bits") {
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    const FileDType there = to_file_dtype(info.dtype);
    CHECK(to_string(there) == info.safetensors);
    CHECK(size_bits(there) == info.bits);
    CHECK(to_dtype(there) == info.dtype);
  }
}

TEST_CASE("safetensors: byte counts") {
  CHECK(*tensor_bytes(FileDType::F32, {2, 3}) == 24);
  CHECK(*tensor_bytes(FileDType::F32, {}) == 4);
  CHECK(*tensor_bytes(FileDType::F4, {2, 3}) == 3);
  CHECK(*tensor_bytes(FileDType::F4, {3, 0}) == 0);
  check_error(tensor_bytes(FileDType::F4, {3}), {"[3] of F4", "12 bits"});
  check_error(tensor_bytes(FileDType::I8, {int64_t{1} << 60}), {"2^63 bits"});
  check_error(tensor_bytes(FileDType::I8, {INT64_MAX, INT64_MAX, 0}), {"2^63 bits"});
  check_error(tensor_bytes(FileDType::I8, {-1}), {"-1"});
}

}  // namespace sinter::safetensors_test
