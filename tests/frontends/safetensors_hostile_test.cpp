// Every way in which a safetensors file can be wrong; each is one line that names file and values.
#include <fmt/format.h>

#include "frontends/files/safetensors.h"
#include "frontends/small_files.h"

namespace sinter::safetensors_hostile_test {
namespace {

class Hostile {
 public:
  Result<TensorFile> open(std::string_view bytes) const {
    return open_safetensors(folder_.write("m.safetensors", bytes));
  }
  Result<TensorFile> header(std::string_view header, size_t data_bytes) const {
    return open(safetensors_bytes(header, data_bytes));
  }
  Result<TensorFile> entries(std::initializer_list<std::string> list, size_t data) const {
    return header(fmt::format("{{{}}}", fmt::join(list, ",")), data);
  }

 private:
  ScratchFolder folder_;
};

std::string with_length(uint64_t length, std::string_view rest) {
  std::string bytes = safetensors_bytes("", 0);
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + std::string(rest);
}

}  // namespace

TEST_CASE("safetensors hostile: header lengths") {
  Hostile h;
  check_error(h.open(with_length(0, "{}")), {"m.safetensors", "length is 0"});
  check_error(h.open(with_length(UINT64_MAX, "{}")),
              {"m.safetensors", "18446744073709551615", "100000000"});
  check_error(h.open(with_length(UINT64_MAX - 7, "{}")), {"18446744073709551608"});
  check_error(h.open(with_length(100'000'001, "{}")), {"100000001", "100000000"});
  check_error(h.open(with_length(3, "{}")), {"length is 3", "only 2 bytes", "truncated"});
  check_error(h.open("1234567"), {"at least 8 bytes", "has 7"});
}

TEST_CASE("safetensors hostile: the header is not an object in UTF-8") {
  Hostile h;
  check_error(h.header("[]", 0), {"m.safetensors", "0x5b", "0x7b"});
  check_error(h.header("\"x\"", 0), {"0x22"});
  check_error(h.header("{\"\xff\xfe\": 1}", 0), {"m.safetensors:1:", "UTF-8"});
  check_error(h.header("{} {}", 0), {"m.safetensors:1:4"});
  check_error(h.header("{", 0), {"m.safetensors:1:2"});
  check_error(h.header("{\"a\": 1}", 0), {"/a", "expected an object, got 1"});
  check_error(h.header("{\"a\": []}", 0), {"/a", "expected an object, got an array"});
  check_error(h.header("{\"__metadata__\": {\"a\": 1}}", 0),
              {"/__metadata__/a", "a string, got 1"});
  check_error(h.header("{\"__metadata__\": {}, \"__metadata__\": {}}", 0), {"twice"});
  check_error(h.header("{\"a\": " + std::string(50000, '[') + "}", 0), {"/a", "an array"});
}

TEST_CASE("safetensors hostile: what stands in its place") {
  Hostile h;
  check_error(h.open(""), {"m.safetensors", "empty"});
  check_error(h.open("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 5\n"),
              {"m.safetensors", "git-lfs pointer", "git lfs pull"});
  check_error(h.open("<!DOCTYPE html>\n<html><body>Not found</body></html>"),
              {"m.safetensors", "web page"});
  check_error(h.open("PK\x03\x04 the rest of an archive"), {"PyTorch"});
}

TEST_CASE("safetensors hostile: entries with wrong members") {
  Hostile h;
  check_error(h.header(R"({"a":{"shape":[],"data_offsets":[0,4]}})", 4),
              {"/a", "dtype is missing"});
  check_error(h.header(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), {"shape is missing"});
  check_error(h.header(R"({"a":{"dtype":"F32","shape":[]}})", 4), {"data_offsets is missing"});
  check_error(h.header(R"({"a":{"dtype":"F32","dtype":"F32"}})", 4), {"/a/dtype", "twice"});
  check_error(h.header(R"({"a":{"scale":2}})", 4), {"/a/scale", "another key"});
  check_error(h.header(R"({"a":{"dtype":7}})", 4), {"/a/dtype", "an element type, got 7"});
  check_error(h.header(R"({"a":{"shape":"[1]"}})", 4),
              {"/a/shape", "array of integers, got \"[1]\""});
  check_error(h.header(R"({"a":{"shape":{}}})", 4), {"/a/shape", "got an object"});
  check_error(h.entries({entry("a", "F33", "[1]", "0", "4")}, 4), {"/a/dtype", "\"F33\""});
  check_error(h.entries({entry("a", "F32", "[1.5]", "0", "4")}, 4), {"/a/shape/0", "got 1.5"});
  check_error(h.entries({entry("a", "F32", "[-1]", "0", "4")}, 4), {"/a/shape/0", "got -1"});
  check_error(h.entries({entry("a", "F32", "[[1]]", "0", "4")}, 4), {"/a/shape/0", "an array"});
  check_error(h.entries({entry("a", "F32", "[9223372036854775808]", "0", "4")}, 4),
              {"/a/shape/0", "9223372036854775808"});
  check_error(h.header(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0]}})", 4),
              {"/a", "expected 2 numbers, got 1"});
  check_error(h.header(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,8]}})", 4),
              {"/a/data_offsets/2", "exactly 2"});
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  check_error(h.entries({entry("a", "F32", ones + "]", "0", "4")}, 4),
              {"/a/shape/64", "at most 64"});
}

TEST_CASE("safetensors hostile: sizes that overflow or disagree") {
  Hostile h;
  check_error(h.entries({entry("a", "F32", "[4294967296,4294967296]", "0", "0")}, 0),
              {"/a", "[4294967296, 4294967296]", "2^63"});
  check_error(h.entries({entry("a", "F32", "[4611686018427387904]", "0", "0")}, 0), {"/a", "2^63"});
  check_error(h.entries({entry("a", "F32", "[0,4611686018427387904,4]", "0", "0")}, 0), {"2^63"});
  check_error(h.entries({entry("a", "F32", "[2]", "0", "4")}, 4),
              {"/a", "span 4 bytes", "[2] of F32 needs 8"});
  check_error(h.entries({entry("a", "F32", "[]", "8", "4")}, 8), {"/a", "begin at 8", "end 4"});
  check_error(h.entries({entry("a", "F4", "[1]", "0", "1")}, 1), {"/a", "4 bits"});
}

TEST_CASE("safetensors hostile: overlaps, holes, bytes too many and too few") {
  Hostile h;
  const std::string a = entry("a", "F32", "[2]", "0", "8");
  check_error(h.entries({a, entry("b", "F32", "[2]", "4", "12")}, 12),
              {"m.safetensors", "\"b\" begins at data byte 4", "\"a\"", "ends at 8"});
  check_error(h.entries({a, entry("b", "F32", "[2]", "0", "8")}, 8), {"\"b\"", "\"a\""});
  check_error(h.entries({a, entry("b", "F32", "[0]", "4", "4")}, 8), {"\"b\"", "\"a\""});
  check_error(h.entries({a, entry("b", "F32", "[1]", "12", "16")}, 16),
              {"m.safetensors", "bytes 8 to 12", "\"b\""});
  check_error(h.entries({entry("b", "F32", "[1]", "4", "8")}, 8), {"bytes 0 to 4"});
  check_error(h.entries({a}, 9), {"m.safetensors", "need 8", "has 9", "1 too many"});
  check_error(h.entries({a}, 7), {"need 8", "has 7", "1 too few"});
  check_error(h.header("{}", 1), {"need 0", "has 1"});
  CHECK(h.entries({a}, 8));
}

TEST_CASE("safetensors hostile: a tensor twice") {
  Hostile h;
  check_error(
      h.entries({entry("x", "F32", "[1]", "0", "4"), entry("x", "F32", "[1]", "4", "8")}, 8),
      {"m.safetensors: /x", "twice"});
  check_error(
      h.entries({entry("x", "F32", "[1]", "0", "4"), entry("\\u0078", "F32", "[0]", "4", "4")}, 4),
      {"/x", "twice"});
}

TEST_CASE("safetensors hostile: names are escaped and cut in messages") {
  Hostile h;
  const std::string name(1 << 20, 'n');
  check_error(h.entries({entry(name, "F33", "[]", "0", "4")}, 4), {"m.safetensors", "\"F33\""});
  check_error(h.entries({entry("a\\n*/#include", "F32", "[1]", "4", "8")}, 8),
              {"a\\x0a*/#include"});
}

TEST_CASE(
    "safetensors hostile: every truncation is refused, no flipped bit of the header crashes") {
  Hostile h;
  const std::string bytes = safetensors_bytes("{\"__metadata__\":{\"format\":\"pt\"}," +
                                                  entry("l0.w", "F32", "[2,3]", "0", "24") + "," +
                                                  entry("l0.b", "BF16", "[3]", "24", "30") + "," +
                                                  entry("flag", "BOOL", "[]", "30", "31") + "}",
                                              31);
  const auto read_all = [](const Result<TensorFile>& file) {
    if (!file) {
      check_message(file.error(), {"m.safetensors"});
      return;
    }
    for (const FileTensor& tensor : file->tensors()) (void)file->read_tensor(tensor.name);
  };
  REQUIRE(h.open(bytes));
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    check_error(h.open(std::string_view(bytes).substr(0, length)), {"m.safetensors"});
  }
  for (size_t bit = 0; bit < 8 * std::min<size_t>(bytes.size(), 208); ++bit) {
    CAPTURE(bit);
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    read_all(h.open(flipped));
  }
}

}  // namespace sinter::safetensors_hostile_test
