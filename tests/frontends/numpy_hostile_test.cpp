// Every way in which a .npy or .npz can be wrong; each is one line that names file and values.
#include <fmt/format.h>

#include "frontends/files/tensor_file.h"
#include "frontends/numpy_bytes.h"
#include "frontends/small_files.h"

namespace sinter::numpy_hostile_test {
namespace {

class HostileNumpy {
 public:
  Result<TensorFile> npy(const std::string& bytes) const {
    return open_tensor_file(folder_.write("m.npy", bytes));
  }
  Result<TensorFile> dictionary(const std::string& text, size_t data_bytes = 8) const {
    return npy(npy_with(text, std::string(data_bytes, '\0')));
  }
  Result<TensorFile> npz(const std::string& bytes) const {
    return open_tensor_file(folder_.write("m.npz", bytes));
  }
  Result<TensorFile> parts(const std::vector<ZipPart>& parts, int count = -1) const {
    return npz(zip_bytes(parts, count));
  }

 private:
  ScratchFolder folder_;
};

const std::string kTwoFloats = npy_bytes("<f4", "(2,)", std::string(8, '\0'));

std::string npy_shape(const std::string& text) { return npy_dictionary("<f4", text); }
std::string npy_descr(const std::string& text) { return npy_dictionary(text, "(2,)"); }

/// `bytes` with a little-endian number of `size` bytes `back` bytes before the end.
std::string with_number_at(std::string bytes, size_t back, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    bytes[bytes.size() - back + i] = static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

}  // namespace

TEST_CASE("npy hostile: lengths and versions") {
  const HostileNumpy h;
  check_error(h.npy(""), {"m.npy", "empty"});
  check_error(h.npy("\x93NUMP"), {"m.npy", "\"\\x93NUMP\"", "expected \"\\x93NUMPY\""});
  check_error(h.npy(std::string("\x93NUMPY\x04\0\0\0", 10)), {"version 4", "1 to 3"});
  check_error(h.npy(std::string("\x93NUMPY\x02\0\0\0", 10)), {"ends after 10 bytes"});
  check_error(h.npy("\x93NUMPY" + std::string("\x02\0\xff\xff\xff\xff", 6)),
              {"length is 4294967295", "at most 65536"});
  check_error(h.npy(kTwoFloats.substr(0, 60)),
              {"header has 128 bytes", "60 are here", "truncated"});
}

TEST_CASE("npy hostile: the dictionary") {
  const HostileNumpy h;
  check_error(h.dictionary("[]"), {"m.npy", "header byte 0: expected \"{\", got \"[\""});
  check_error(h.dictionary("{}"), {"the header has no \"descr\""});
  check_error(h.dictionary("{'descr': '<f4', 'shape': (2,)}"), {"no \"fortran_order\""});
  check_error(h.dictionary("{'descr': '<f4', 'descr': '<f4'}"), {"has \"descr\" twice"});
  check_error(h.dictionary("{'other': 1}"), {"the key \"other\"", "expected descr"});
  check_error(h.dictionary("{'descr"), {"header byte 1: the text has no end"});
  check_error(h.dictionary("{'descr' '<f4'}"), {"header byte 9: expected \":\""});
  check_error(h.dictionary(npy_dictionary("<f4", "(2,)", "0")),
              {"expected True or False, got \"0\""});
  check_error(h.dictionary(npy_shape("2")), {"expected \"(\", got \"2\""});
  check_error(h.dictionary(npy_shape("(2,)") + "x"), {"expected the header's end, got \"x\""});
  check_error(h.dictionary("{'descr': [('a', '<f4')]}"), {"the elements have fields"});
  check_error(h.dictionary(std::string("{'\0\n\x1b': 1}", 10)), {"\\x00\\x0a\\x1b"});
}

TEST_CASE("npy hostile: types and orders that are not read") {
  const HostileNumpy h;
  check_error(h.dictionary(npy_descr(">f4")),
              {"big-endian (\">f4\")", "expected \"<f4\"", "array.astype(\"<f4\")"});
  check_error(h.dictionary(npy_dictionary("<f4", "(2, 3)", "True"), 24),
              {"Fortran order, expected C order", "numpy.ascontiguousarray"});
  check_error(h.dictionary(npy_descr("<U3")), {"type \"<U3\"", "convert the array"});
  check_error(h.dictionary(npy_descr("|V2"), 4), {"\"|V2\"", "bfloat16 has no type in .npy"});
  check_error(h.dictionary(npy_descr("|O")), {"type \"|O\""});
  check_error(h.dictionary(npy_descr("f4")), {"type \"f4\""});
  check_error(h.dictionary(npy_descr("")), {"type \"\""});
}

TEST_CASE("npy hostile: shapes that overflow or disagree with the file") {
  const HostileNumpy h;
  check_error(h.dictionary(npy_shape("(-1,)")), {"expected an extent, 0 or more, got \"-\""});
  check_error(h.dictionary(npy_shape("(9223372036854775808,)")), {"more than 63 bits"});
  check_error(h.dictionary(npy_shape("(4294967296, 4294967296)")), {"more than 2^63 bits"});
  check_error(h.dictionary(npy_shape("(4294967296, 4294967296, 0)"), 0), {"more than 2^63 bits"});
  std::string axes;
  for (int i = 0; i < 65; ++i) axes += "1, ";
  check_error(h.dictionary(npy_shape("(" + axes + ")"), 4), {"more than 64 axes"});
  check_error(h.dictionary(npy_shape("(3,)")),
              {"shape [3] of F32 needs 12 bytes, 8 are here: 4 too few, it is truncated"});
  check_error(h.dictionary(npy_shape("(1,)")), {"needs 4 bytes, 8 are here: 4 too many"});
  CHECK(h.dictionary(npy_shape("()"), 4).has_value());
}

TEST_CASE("npz hostile: members that are not read") {
  const HostileNumpy h;
  check_error(h.parts({{"x.npy", kTwoFloats, 8}}),
              {"m.npz", "\"x.npy\": the member is compressed (deflate)",
               "numpy.savez, not numpy.savez_compressed"});
  check_error(h.parts({{"x.npy", kTwoFloats, 14}}), {"compressed (method 14)"});
  check_error(h.parts({{"x.npy", kTwoFloats, 0, 1}}), {"\"x.npy\": the member is encrypted"});
  check_error(h.parts({{"archive/data.pkl", "x"}}),
              {"the member \"archive/data.pkl\", expected NAME.npy alone", "PyTorch"});
  check_error(h.parts({{"x.npy", "PK"}}), {"m.npz: x.npy: ", "expected \"\\x93NUMPY\""});
  check_error(h.parts({{"x.npy", npy_bytes(">i4", "(1,)", "abcd")}}),
              {"m.npz: x.npy: ", "big-endian"});
}

TEST_CASE("npz hostile: names twice, and names that are paths") {
  const HostileNumpy h;
  check_error(h.parts({{"x.npy", kTwoFloats}, {"x.npy", kTwoFloats}}), {"m.npz: /x", "twice"});
  for (const std::string name : {"../x.npy", "/etc/x.npy", "a\\x.npy"})
    check_error(h.parts({{name, kTwoFloats}}), {"the name is a path", "rename it"});
  check_error(h.parts({{".npy", kTwoFloats}}), {"a tensor cannot be called \"\""});
  check_error(h.parts({{"\x1b.npy", kTwoFloats}}), {"cannot be called \"\\x1b\""});
  check_error(h.parts({{"\xc3\xa9.npy", kTwoFloats}}), {"the member's name is not UTF-8"});
  check_error(h.parts({{"\xff.npy", kTwoFloats, 0, 1 << 11}}), {"cannot be called \"\\xff\""});
  check_error(h.parts({{"x.npy", kTwoFloats, 0, 0, "y.npy"}}),
              {"\"x.npy\" is called \"y.npy\" in its own header"});
}

TEST_CASE("npz hostile: directories that are absurd") {
  const HostileNumpy h;
  const std::string good = zip_bytes({{"x.npy", kTwoFloats}});
  check_error(h.npz("PK"), {"m.npz", "no directory at its end: it is truncated"});
  check_error(h.npz(""), {"m.npz", "empty"});
  check_error(h.npz(good.substr(0, good.size() - 1)), {"it is truncated"});
  check_error(h.parts({{"x.npy", kTwoFloats}}, 2), {"says 2 members, its 51 bytes hold at most 1"});
  check_error(h.parts({{"x.npy", kTwoFloats}, {"y.npy", kTwoFloats}}, 1),
              {"51 bytes of the zip directory stand after its 1 members"});
  check_error(h.npz(with_number_at(good, 10, 1000, 4)),
              {"the zip directory has 1000 bytes from byte"});
  check_error(h.npz(with_number_at(good, 6, UINT32_MAX, 4)), {"from byte 4294967295 on"});
  check_error(h.npz(with_number_at(good, 18, 1, 2)), {"one of several parts"});
  // The record's fields: offset, size, packed size, length of the name.
  const size_t record = 22 + 51;
  check_error(h.npz(with_number_at(good, record - 42, UINT32_MAX, 4)),
              {"\"x.npy\": the 64-bit sizes are missing"});
  check_error(h.npz(with_number_at(good, record - 42, 1u << 30, 4)),
              {"\"x.npy\" begins at byte 1073741824, the zip directory at byte 171"});
  check_error(h.npz(with_number_at(good, record - 42, 1, 4)), {"has no header at byte 1"});
  check_error(h.npz(with_number_at(good, record - 24, 137, 4)), {"has 136 bytes and 137 unpacked"});
  check_error(h.npz(with_number_at(with_number_at(good, record - 24, 137, 4), record - 20, 137, 4)),
              {"\"x.npy\" has 137 bytes, 136 are there before the zip directory"});
  check_error(h.npz(with_number_at(good, record - 28, 9, 2)), {"a member's record leaves"});
  // Two records of one member: an archive of a few bytes that stands for many.
  const std::string twice = zip_bytes({{"x.npy", kTwoFloats}, {"y.npy", kTwoFloats}});
  std::string overlapping = with_number_at(twice, 22 + 51 - 42, 0, 4);
  overlapping[overlapping.size() - 22 - 5] = 'x';
  check_error(h.npz(overlapping), {"\"x.npy\" begins at byte 35, inside \"x.npy\""});
}

TEST_CASE("npz hostile: damaged bytes of a tensor are found when it is read") {
  const HostileNumpy h;
  std::string bytes = zip_bytes({{"x.npy", kTwoFloats}});
  bytes[35 + 128] ^= 1;
  auto file = h.npz(bytes);
  REQUIRE(file.has_value());
  check_error(file->read_tensor("x"), {"m.npz", "\"x\" have the CRC-32", "the archive says"});
}

TEST_CASE("numpy hostile: what cannot be written") {
  const ScratchFolder folder;
  const std::vector<std::byte> two(2);
  const NamedTensor half{"h", FileDType::BF16, {1}, two}, path{"a/b", FileDType::F16, {1}, two},
      good{"x", FileDType::F16, {1}, two};
  check_error(write_tensor_file(folder.path("o.npy"), half),
              {"o.npy", "NumPy has no type for elements of BF16", "write safetensors"});
  check_error(write_tensor_file(folder.path("o.npz"), half),
              {"o.npz", "tensor \"h\": NumPy has no"});
  check_error(write_tensor_file(folder.path("o.npz"), path), {"o.npz", "\"a/b\"", "is a path"});
  check_error(write_tensor_file(folder.path("o.npz"), {good, good}),
              {"two tensors are named \"x\""});
  check_error(write_tensor_file(folder.path("o.npy"), {good, good}),
              {"o.npy", "a .npy has one tensor, 2 are given", "write .npz"});
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace sinter::numpy_hostile_test
