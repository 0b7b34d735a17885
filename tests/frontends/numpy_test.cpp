// NumPy's .npy and .npz: what is written is read back, and what NumPy writes is read.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "frontends/files/npy.h"
#include "frontends/files/npz.h"
#include "frontends/files/tensor_file.h"
#include "frontends/numpy_bytes.h"
#include "frontends/small_files.h"

namespace sinter::numpy_test {
namespace {

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string data_of(const TensorFile& file, std::string_view name) {
  auto tensor = file.read_tensor(name);
  REQUIRE_MESSAGE(tensor.has_value(), tensor.error().message());
  return {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()};
}

TensorFile opened(const std::string& path) {
  auto file = open_tensor_file(path);
  REQUIRE_MESSAGE(file.has_value(), file.error().message());
  return std::move(*file);
}

NamedTensor named(const std::string& name, FileDType dtype, std::vector<int64_t> dims,
                  const std::string& bytes) {
  return {name, dtype, std::move(dims), std::as_bytes(std::span(bytes))};
}

const std::string kFloats = raw_bytes<float>({1, 2, 3, 4, 5, 6}),
                  kIds = raw_bytes<int64_t>({7, -1}), kTruths = std::string("\1\0\1", 3), kNone;

}  // namespace

TEST_CASE("numpy: an archive that is written is read back, the same bytes whatever the order") {
  const ScratchFolder folder;
  const NamedTensor x = named("x", FileDType::F32, {2, 3}, kFloats),
                    ids = named("entry.ids", FileDType::I64, {2}, kIds),
                    mask = named("mask\xc3\xa9", FileDType::BOOL, {3, 1}, kTruths),
                    none = named("none", FileDType::F16, {0, 5}, kNone),
                    one = named("one", FileDType::I32, {}, kFloats.substr(0, 4));
  REQUIRE(write_tensor_file(folder.path("a.npz"), {x, ids, mask, none, one}));
  REQUIRE(write_tensor_file(folder.path("b.npz"), {one, none, ids, mask, x}));
  CHECK(bytes_of(folder.path("a.npz")) == bytes_of(folder.path("b.npz")));
  const TensorFile file = opened(folder.path("a.npz"));
  CHECK(file.names() == std::vector<std::string>{"entry.ids", "mask\xc3\xa9", "none", "one", "x"});
  CHECK(data_of(file, "x") == kFloats);
  CHECK(data_of(file, "entry.ids") == kIds);
  CHECK(data_of(file, "mask\xc3\xa9") == kTruths);
  CHECK(data_of(file, "none").empty());
  CHECK(file.entry("x")->dims == std::vector<int64_t>{2, 3});
  CHECK(file.entry("one")->dims.empty());
  CHECK(file.entry("none")->dtype == FileDType::F16);
  REQUIRE(write_tensor_file(folder.path("none.npz"), {}));
  for (const std::string& empty : {bytes_of(folder.path("none.npz")), zip_bytes({})})
    CHECK(opened(folder.write("none", empty)).tensors().empty());
}

TEST_CASE("numpy: a .npy that is written is read back, its elements aligned to 64 bytes") {
  const ScratchFolder folder;
  const std::string path = folder.path("x.npy");
  REQUIRE(write_tensor_file(path, named("x", FileDType::F32, {2, 3}, kFloats)));
  CHECK(bytes_of(path) == npy_bytes("<f4", "(2, 3)", kFloats));
  CHECK(bytes_of(path).size() % 64 == kFloats.size());
  TensorFile file = opened(path);
  REQUIRE(file.is_unnamed());
  file.set_name("x");
  CHECK_FALSE(file.is_unnamed());
  CHECK(data_of(file, "x") == kFloats);
  REQUIRE(write_tensor_file(path, named("x", FileDType::I64, {2}, kIds)));
  CHECK(bytes_of(path) == npy_bytes("<i8", "(2,)", kIds));
}

TEST_CASE("numpy: elements are written in pieces, and nothing is there before the last one") {
  const ScratchFolder folder;
  const std::string path = folder.path("x.npy");
  auto writer = NpyWriter::create(path, FileDType::F32, {3, 2});
  REQUIRE(writer.has_value());
  for (size_t row = 0; row < 3; ++row) {
    CHECK_FALSE(std::filesystem::exists(path));
    REQUIRE(writer->write(std::as_bytes(std::span(kFloats)).subspan(8 * row, 8)));
  }
  REQUIRE(writer->commit());
  CHECK(bytes_of(path) == npy_bytes("<f4", "(3, 2)", kFloats));
}

TEST_CASE("numpy: every element type has the bytes that NumPy says") {
  const ScratchFolder folder;
  const std::string data(16, '\0');
  for (const auto& [descr, dtype] : {std::pair("<f4", FileDType::F32),
                                     {"<f2", FileDType::F16},
                                     {"<f8", FileDType::F64},
                                     {"<i4", FileDType::I32},
                                     {"<i8", FileDType::I64},
                                     {"|b1", FileDType::BOOL},
                                     {"|i1", FileDType::I8},
                                     {"|u1", FileDType::U8},
                                     {"<i2", FileDType::I16},
                                     {"<u2", FileDType::U16},
                                     {"<u4", FileDType::U32},
                                     {"<u8", FileDType::U64},
                                     {"<c8", FileDType::C64}}) {
    CAPTURE(descr);
    const size_t size = static_cast<size_t>(size_bits(dtype)) / 8;
    const std::string path =
        folder.write("x.npy", npy_bytes(descr, "(2,)", data.substr(0, 2 * size)));
    CHECK(opened(path).tensors()[0].dtype == dtype);
  }
}

TEST_CASE("numpy: other forms of the header that mean the same") {
  const ScratchFolder folder;
  const std::string plain = npy_dictionary("<f4", "(2, 3)");
  for (const std::string& bytes :
       {npy_with(plain, kFloats, 2), npy_with(plain, kFloats, 3),
        npy_with("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", kFloats),
        npy_with("{ 'descr' : '<f4' ,\n'fortran_order':False, 'shape':(2,3,),}", kFloats)})
    CHECK(data_of(opened(folder.write("x.npy", bytes)), "") == kFloats);
  // Where one axis alone has more than one element, both orders are the same.
  for (const char* shape : {"(6,)", "(1, 6, 1)", "(6, 1)"})
    CHECK(data_of(opened(folder.write("x.npy",
                                      npy_with(npy_dictionary("<f4", shape, "True"), kFloats))),
                  "") == kFloats);
}

TEST_CASE("numpy: archives of other programs, and a name that says nothing") {
  const ScratchFolder folder;
  const std::string bytes = zip_bytes(
      {{"y.npy", npy_bytes("<i8", "(2,)", kIds)}, {"x.npy", npy_bytes("<f4", "(6,)", kFloats)}});
  for (const char* name : {"in.npz", "in", "in.npy"}) {
    const TensorFile file = opened(folder.write(name, bytes));
    CHECK(data_of(file, "x") == kFloats);
    CHECK(data_of(file, "y") == kIds);
    std::vector<std::byte> narrow(8);
    REQUIRE(file.read("y", narrow));  // I64 as i32
    CHECK(std::memcmp(narrow.data(), raw_bytes<int32_t>({7, -1}).data(), 8) == 0);
  }
  CHECK(opened(folder.write("in", npy_bytes("<f4", "(6,)", kFloats))).is_unnamed());
}

TEST_CASE("numpy: a changed byte of an archive gives an error or the same tensors") {
  const ScratchFolder folder;
  const std::string path = folder.path("a.npz");
  REQUIRE(write_tensor_file(
      path, {named("x", FileDType::F32, {2, 3}, kFloats), named("ids", FileDType::I64, {2}, kIds),
             named("mask", FileDType::BOOL, {3}, kTruths)}));
  const std::string wide = bytes_of(path),
                    plain = zip_bytes({{"x.npy", npy_bytes("<f4", "(2, 3)", kFloats)},
                                       {"ids.npy", npy_bytes("<i8", "(2,)", kIds)},
                                       {"mask.npy", npy_bytes("|b1", "(3,)", kTruths)}});
  std::mt19937 random(1);
  size_t same = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = i % 2 ? wide : plain;
    if (i % 7 == 0)
      bytes.resize(random() % bytes.size());
    else
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    const auto file = open_tensor_file(folder.write("m.npz", bytes));
    bool read = file.has_value() && file->tensors().size() == 3;
    for (const auto& [name, data] :
         {std::pair("x", &kFloats), {"ids", &kIds}, {"mask", &kTruths}}) {
      if (!read) break;
      const auto tensor = file->read_tensor(name);
      read = tensor.has_value();
      if (!read) break;
      CHECK(std::string(reinterpret_cast<const char*>(tensor->bytes.data()),
                        tensor->bytes.size()) == *data);
    }
    if (!file.has_value()) check_message(file.error(), {"m.npz"});
    ++(read ? same : refused);
  }
  CHECK(same > 100);
  CHECK(refused > 1000);
}

TEST_CASE(
    "numpy: a changed byte of a .npy gives an error, or a tensor of the bytes that are there") {
  const ScratchFolder folder;
  const std::string whole = npy_bytes("<f4", "(2, 3)", kFloats);
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    if (i % 7 == 0)
      bytes.resize(random() % bytes.size());
    else
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    const auto file = open_tensor_file(folder.write("m.npy", bytes));
    if (!file.has_value()) {
      check_message(file.error(), {"m.npy"});
      continue;
    }
    const auto tensor = file->read_tensor("");
    if (tensor)
      CHECK(bytes.ends_with(
          std::string(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size())));
    else
      check_message(tensor.error(), {"m.npy"});
  }
}

}  // namespace sinter::numpy_test
