// The GGUF container: what right files hold, and attacks on readers.
#include <doctest/doctest.h>

#include "frontends/gguf/gguf_file.h"
#include "frontends/gguf_bytes.h"
#include "frontends/small_files.h"

namespace sinter {
namespace {

enum : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
enum : uint32_t { kTypeF32 = 0, kTypeQ4_0 = 2, kTypeQ4_K = 12 };

GgufBytes small() {
  GgufBytes bytes;
  bytes.string("general.architecture", "llama").number<uint32_t>("llama.block_count", kU32, 2);
  bytes.tensor("blk.0.attn_q.weight", kTypeQ4_K, {512, 3}, 864);
  bytes.tensor("blk.1.attn_q.weight", kTypeQ4_K, {512, 3}, 864);
  bytes.tensor("output_norm.weight", kTypeF32, {5}, 20);
  return bytes;
}

Result<GgufFile> opened(const std::string& bytes) {
  ScratchFolder folder;
  return GgufFile::open(folder.write("m.gguf", bytes));
}

void refuses(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  check_error(opened(bytes), parts);
}

TEST_CASE("metadata has its types, tensors their places") {
  GgufBytes bytes = small();
  const std::string words = GgufBytes::text("a") + GgufBytes::text("") + GgufBytes::text("b c");
  bytes.number<int8_t>("i8", kI8, -3).number<uint64_t>("large", kU64, UINT64_MAX);
  bytes.number<float>("f32", kF32, 0.5F).number<double>("f64", kF64, 0.1);
  bytes.number<uint8_t>("true", kBool, 1).array("words", kString, 3, words);
  bytes.array("numbers", kI16, 2, bytes_of_number<int16_t>(-2) + bytes_of_number<int16_t>(7));
  ScratchFolder folder;
  const auto file = GgufFile::open(folder.write("m.gguf", bytes.file()));
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(std::get<std::string>(*file->find("general.architecture")) == "llama");
  CHECK(std::get<int64_t>(*file->find("i8")) == -3);
  CHECK(std::get<uint64_t>(*file->find("large")) == UINT64_MAX);
  CHECK(std::get<double>(*file->find("f32")) == 0.5);
  CHECK(std::get<double>(*file->find("f64")) == 0.1);
  CHECK(std::get<bool>(*file->find("true")));
  const auto& strings = std::get<GgufStrings>(*file->find("words"));
  REQUIRE(strings.size() == 3);
  CHECK(strings[0] == "a");
  CHECK(strings[1].empty());
  CHECK(strings[2] == "b c");
  const auto& numbers = std::get<GgufNumbers>(*file->find("numbers"));
  CHECK(numbers.integer(0) == -2);
  CHECK(numbers.real(1) == 7);
  CHECK(file->find("nothing") == nullptr);
  REQUIRE(file->tensors().size() == 3);
  const GgufTensor& second = file->tensors()[1];
  CHECK(second.dims == std::vector<int64_t>{3, 512});
  CHECK(second.type == GgufType::Q4_K);
  std::vector<std::byte> data(second.bytes);
  REQUIRE(file->read(second, 0, data).has_value());
  CHECK(data == std::vector<std::byte>(864, std::byte{1}));
}

TEST_CASE("another alignment moves the tensors") {
  GgufBytes bytes(2, 128);
  bytes.number<uint32_t>("general.alignment", kU32, 128);
  bytes.tensor("a", kTypeF32, {1}, 4).tensor("b", kTypeF32, {1}, 4);
  ScratchFolder folder;
  const auto file = GgufFile::open(folder.write("m.gguf", bytes.file()));
  REQUIRE(file.has_value());
  CHECK(file->tensors()[1].begin % 128 == 0);
  CHECK(file->tensors()[1].begin == file->tensors()[0].begin + 128);
  std::vector<std::byte> data(4);
  REQUIRE(file->read(file->tensors()[1], 0, data).has_value());
  CHECK(data[0] == std::byte{1});
}

std::string part(int number, int count, std::string_view tensor, int tensors = 2) {
  GgufBytes bytes;
  bytes.number<uint16_t>("split.no", kU16, static_cast<uint16_t>(number));
  bytes.number<uint16_t>("split.count", kU16, static_cast<uint16_t>(count));
  bytes.number<int32_t>("split.tensors.count", kI32, tensors);
  return bytes.tensor(tensor, kTypeF32, {8}, 32).file();
}

TEST_CASE("any file of a split model names the whole") {
  ScratchFolder folder;
  folder.write("m-00001-of-00002.gguf", part(0, 2, "a"));
  const std::string second = folder.write("m-00002-of-00002.gguf", part(1, 2, "b"));
  const auto file = GgufFile::open(second);
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message()));
  CHECK(file->files().size() == 2);
  CHECK(file->tensors()[1].name == "b");
  CHECK(file->tensors()[1].file == 1);
  std::vector<std::byte> data(32);
  CHECK(file->read(file->tensors()[1], 0, data).has_value());

  folder.write("m-00002-of-00002.gguf", part(1, 2, "a"));
  check_error(GgufFile::open(second), {"the tensor a is stored twice"});
  folder.write("m-00002-of-00002.gguf", part(0, 2, "b"));
  check_error(GgufFile::open(second), {"split.no is 0 and split.count 2, expected 1 and 2"});
  folder.write("m-00002-of-00002.gguf", part(1, 2, "b"));
  folder.write("m-00001-of-00002.gguf", part(0, 2, "a", 3));
  check_error(GgufFile::open(second), {"split.tensors.count is 3", "2 tensors"});
  std::filesystem::remove(folder.path("m-00001-of-00002.gguf"));
  check_error(GgufFile::open(second), {"m-00001-of-00002.gguf"});
  check_error(GgufFile::open(folder.write("x.gguf", part(1, 2, "b"))),
              {"split.no is 1 and split.count 2, expected 0 and 1", "x.gguf"});
}

TEST_CASE("a split file may claim any number") {
  GgufBytes bytes;
  refuses(bytes.number<uint64_t>("split.no", kU64, INT64_MAX).file(),
          {"split.no is 9223372036854775807"});
}

TEST_CASE("empty arrays and strange keys are no danger") {
  GgufBytes bytes = small();
  ScratchFolder folder;
  const auto file = GgufFile::open(folder.write("m.gguf", bytes.array("none", kI16, 0, "").file()));
  REQUIRE(file.has_value());
  CHECK(std::get<GgufNumbers>(*file->find("none")).size() == 0);
  refuses(GgufBytes().key("a\x1b[31m", kString, bytes_of_number<uint64_t>(99)).file(),
          {"a\\x1b[31m has 99 bytes"});
}

TEST_CASE("files of other kinds and versions are refused") {
  refuses("", {"the file ends"});
  refuses("GGML" + std::string(60, '\0'), {"does not begin with GGUF"});
  refuses(GgufBytes(1).file(), {"version 1", "2 and 3"});
  refuses(GgufBytes(4).file(), {"version 4"});
  refuses(GgufBytes(3u << 24).file(), {"big-endian"});
}

TEST_CASE("counts and lengths are checked before memory is taken") {
  refuses(small().file(int64_t{1} << 62), {"4611686018427387904 tensors"});
  refuses(small().file(-1, int64_t{1} << 62), {"4611686018427387904 keys"});
  refuses(small().file(30), {"a tensor has no name"});
  refuses(small().file(1000), {"1000 tensors take more bytes than the"});
  GgufBytes long_string;
  refuses(long_string.key("k", kString, bytes_of_number<uint64_t>(1ull << 40)).file(),
          {"k has 1099511627776 bytes"});
  GgufBytes long_array;
  refuses(long_array.array("k", kU64, 1ull << 61, "12345678").file(),
          {"k has 2305843009213693952 elements of 8 bytes"});
  GgufBytes many_strings;
  refuses(many_strings.array("k", kString, 1ull << 32, "").file(), {"k has 4294967296 elements"});
  refuses("GGUF" + bytes_of_number<uint32_t>(3) + std::string(16, '\xff'), {"tensors"});
}

TEST_CASE("types of values are checked") {
  GgufBytes nested;
  refuses(nested.array("k", kArray, 1, std::string(12, '\0')).file(), {"k is an array of arrays"});
  refuses(GgufBytes().key("k", 13, "1").file(), {"k has the unknown type 13"});
  refuses(GgufBytes().array("k", 99, 1, "1").file(), {"k has the unknown type 99"});
  refuses(GgufBytes().number<uint8_t>("k", kBool, 2).file(), {"k is 2, which is no truth value"});
  refuses(GgufBytes().string("", "x").file(), {"a key is empty"});
  refuses(GgufBytes().string("k", "x").string("k", "y").file(), {"the key k is stored twice"});
}

TEST_CASE("alignments that are no powers of two are refused") {
  for (uint32_t alignment : {0u, 3u, 48u})
    refuses(GgufBytes().number("general.alignment", kU32, alignment).file(),
            {"general.alignment is", "power of two"});
  refuses(GgufBytes().string("general.alignment", "32").file(), {"general.alignment is \"32\""});
  GgufBytes large;
  large.number<uint32_t>("general.alignment", kU32, 1u << 30).tensor("a", kTypeF32, {1}, 4);
  refuses(large.file(), {"tensor a has 4 bytes from byte 1073741824 on"});
}

TEST_CASE("shapes of tensors are checked") {
  const auto with = [](uint32_t type, std::vector<uint64_t> dims, size_t bytes = 64,
                       int64_t offset = -1) {
    return GgufBytes().tensor("a", type, std::move(dims), bytes, offset).file();
  };
  refuses(with(kTypeF32, {}), {"tensor a has 0 axes"});
  refuses(with(kTypeF32, {1, 1, 1, 1, 1}), {"tensor a has 5 axes"});
  refuses(with(kTypeF32, {0}), {"an axis of 0 elements"});
  refuses(with(kTypeF32, {1ull << 63}), {"an axis of 9223372036854775808 elements"});
  refuses(with(kTypeQ4_0, {33}), {"rows of 33 elements, and Q4_0 has blocks of 32"});
  refuses(with(kTypeF32, {1ull << 32, 1ull << 32}), {"has more bytes than the file"});
  refuses(with(kTypeF32, {1ull << 62, 4}), {"has more bytes than the file"});
  refuses(with(kTypeF32, {1ull << 20, 1ull << 20, 1ull << 20, 1ull << 20}), {"more bytes"});
  refuses(with(4, {32}), {"tensor a has the unknown type 4"});
  refuses(with(kTypeF32, {16}, 64, 32), {"tensor a lies at byte 32 of the data, not at 0"});
  refuses(with(kTypeF32, {16}, 63), {"tensor a has 64 bytes", "the file has"});
  refuses(GgufBytes().tensor(std::string(64, 'n'), kTypeF32, {1}, 4).file(),
          {"the name of a tensor has 64 bytes"});
  refuses(GgufBytes().tensor("", kTypeF32, {1}, 4).file(), {"a tensor has no name"});
  refuses(GgufBytes().tensor("a", kTypeF32, {1}, 4).tensor("a", kTypeF32, {1}, 4).file(),
          {"the tensor a is stored twice"});
}

}  // namespace
}  // namespace sinter
