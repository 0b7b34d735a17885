#include "frontends/files/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "frontends/files/crc32.h"
#include "frontends/files/json.h"
#include "frontends/files/npy.h"
#include "frontends/files/npz.h"
#include "frontends/files/safetensors.h"
#include "frontends/files/zip.h"
#include "ir/truth_values.h"

namespace sinter {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read without swapping");

constexpr size_t narrowed_at_once = 1 << 13;  // elements

struct FileDTypeInfo {
  std::string_view name;
  int64_t bits;
};
constexpr std::array file_dtypes{
#define X(name, bits) FileDTypeInfo{#name, bits},
    SINTER_FILE_DTYPES(X)
#undef X
};

/// I64 elements as i32. `what` names one in messages: what(3) is "element 3 ...".
template <typename What>
Status narrow(std::span<const std::byte> wide, std::byte* out, uint64_t first,
              const std::string& path, What&& what) {
  constexpr int64_t least = std::numeric_limits<int32_t>::min(),
                    most = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < wide.size() / sizeof(int64_t); ++i) {
    int64_t value;
    std::memcpy(&value, wide.data() + i * sizeof value, sizeof value);
    if (value < least || value > most)
      return fail(fmt::format("{} is {}, expected a value from {} to {}", what(first + i), value,
                              least, most),
                  path, "correct the tensor");
    const auto narrowed = static_cast<int32_t>(value);
    std::memcpy(out + i * sizeof narrowed, &narrowed, sizeof narrowed);
  }
  return {};
}

/// "F32, F16, ... or BOOL": what the compiler reads.
std::string readable_dtypes() {
  std::string text;
  for (const DTypeInfo& info : kDTypes)
    text += (text.empty()                     ? ""
             : &info == std::end(kDTypes) - 1 ? " or "
                                              : ", ") +
            std::string(info.safetensors);
  return text;
}

}  // namespace

std::string_view to_string(FileDType dtype) { return file_dtypes[static_cast<size_t>(dtype)].name; }

int64_t size_bits(FileDType dtype) { return file_dtypes[static_cast<size_t>(dtype)].bits; }

std::optional<FileDType> parse_file_dtype(std::string_view text) {
  for (size_t i = 0; i < file_dtypes.size(); ++i)
    if (file_dtypes[i].name == text) return static_cast<FileDType>(i);
  return std::nullopt;
}

std::optional<DType> to_dtype(FileDType dtype) {
  switch (dtype) {
#define SINTER_DTYPE(name, bits, type_class, memory, registers, safetensors, ...) \
  case FileDType::safetensors:                                                    \
    return DType::name;
#include "ir/dtypes.def"
    default:
      return std::nullopt;
  }
}

FileDType to_file_dtype(DType dtype) {
  switch (dtype) {
#define SINTER_DTYPE(name, bits, type_class, memory, registers, safetensors, ...) \
  case DType::name:                                                               \
    return FileDType::safetensors;
#include "ir/dtypes.def"
  }
  SINTER_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

const FileTensor* TensorFile::entry(std::string_view name) const {
  auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const FileTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

Status TensorFile::read_entry(const FileTensor& tensor, std::span<std::byte> out) const {
  SINTER_TRY(file_.read(data_start_ + tensor.begin, out));
  if (tensor.crc) SINTER_TRY(check_crc(tensor, crc32(out, tensor.crc->before)));
  if (tensor.dtype != FileDType::BOOL) return {};
  if (const auto bad = find_no_truth(out))
    return fail(fmt::format("element {} of the BOOL tensor \"{}\" is {}, expected 0 or 1", *bad,
                            printable(tensor.name), static_cast<unsigned>(out[*bad])),
                path(), "download the file again");
  return {};
}

Status TensorFile::check_crc(const FileTensor& tensor, uint32_t found) const {
  if (found == tensor.crc->whole) return {};
  return fail(fmt::format("the bytes of \"{}\" have the CRC-32 {:08x}, the archive says {:08x}",
                          printable(tensor.name), found, tensor.crc->whole),
              path(), "the file is damaged; write it again");
}

void TensorFile::set_name(std::string name) { tensors_.front().name = std::move(name); }

Result<LoadedTensor> TensorFile::read_tensor(std::string_view name) const {
  const FileTensor* tensor = entry(name);
  if (!tensor) return tl::make_unexpected(missing(name));
  LoadedTensor loaded{tensor->dtype, tensor->dims,
                      std::vector<std::byte>(tensor->end - tensor->begin)};
  SINTER_TRY(read_entry(*tensor, loaded.bytes));
  return loaded;
}

Status TensorFile::read_raw(std::string_view name, std::span<std::byte> out) const {
  const FileTensor* tensor = entry(name);
  if (!tensor) return tl::make_unexpected(missing(name));
  SINTER_CHECK(out.size() == tensor->end - tensor->begin, "{} bytes for {}", out.size(),
               tensor->end - tensor->begin);
  return read_entry(*tensor, out);
}

std::optional<TensorType> TensorFile::find(std::string_view name) const {
  const FileTensor* tensor = entry(name);
  if (!tensor) return std::nullopt;
  auto dtype = to_dtype(tensor->dtype);
  if (!dtype) return std::nullopt;
  return TensorType{*dtype, Dims(tensor->dims.begin(), tensor->dims.end())};
}

Status TensorFile::read_narrowed(const FileTensor& tensor, std::span<std::byte> out) const {
  SINTER_CHECK(2 * out.size() == tensor.end - tensor.begin, "{} bytes for {}", out.size(),
               tensor.end - tensor.begin);
  std::vector<std::byte> wide(sizeof(int64_t) *
                              std::min(narrowed_at_once, out.size() / sizeof(int32_t)));
  uint32_t crc = tensor.crc ? tensor.crc->before : 0;
  for (size_t done = 0; done < out.size();) {
    const auto piece = std::span(wide).first(std::min(wide.size(), 2 * (out.size() - done)));
    SINTER_TRY(file_.read(data_start_ + tensor.begin + 2 * done, piece));
    if (tensor.crc) crc = crc32(piece, crc);
    SINTER_TRY(
        narrow(piece, out.data() + done, done / sizeof(int32_t), path(), [&](uint64_t element) {
          return fmt::format("element {} of the I64 tensor \"{}\"", element,
                             printable(tensor.name));
        }));
    done += piece.size() / 2;
  }
  return tensor.crc ? check_crc(tensor, crc) : Status();
}

Status TensorFile::read(std::string_view name, std::span<std::byte> out) const {
  if (!find(name)) return tl::make_unexpected(missing(name));
  const FileTensor& tensor = *entry(name);
  if (tensor.dtype == FileDType::I64 && 2 * out.size() == tensor.end - tensor.begin && !out.empty())
    return read_narrowed(tensor, out);
  SINTER_CHECK(out.size() == tensor.end - tensor.begin, "{} bytes for {}", out.size(),
               tensor.end - tensor.begin);
  return read_entry(tensor, out);
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (const FileTensor& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

Error TensorFile::missing(std::string_view name) const {
  if (const FileTensor* tensor = entry(name))
    return Error{fmt::format("tensor \"{}\" has elements of type {}, expected {}", printable(name),
                             to_string(tensor->dtype), readable_dtypes()),
                 path(), "convert the weights to one of these types"};
  return Error{fmt::format("no tensor named \"{}\" among {}", printable(name), tensors_.size()),
               path(), missing_hint(tensors_.empty() ? nullptr : &tensors_.front().name)};
}

std::string missing_hint(const std::string* first) {
  if (!first) return "there are no tensors: download or export the weights again";
  return fmt::format(
      "the first one is \"{}\"; if the names are of another model, give its weights, else they are "
      "incomplete: download or export them again",
      printable(*first));
}

Result<std::vector<int32_t>> to_i32(const LoadedTensor& tensor) {
  if (tensor.dtype == FileDType::I32) {
    std::vector<int32_t> values(tensor.bytes.size() / sizeof(int32_t));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  if (tensor.dtype != FileDType::I64)
    return fail(
        fmt::format("expected elements of type I64 or I32, got {}", to_string(tensor.dtype)), {},
        "convert the tensor");
  std::vector<int32_t> values(tensor.bytes.size() / sizeof(int64_t));
  SINTER_TRY(narrow(tensor.bytes, reinterpret_cast<std::byte*>(values.data()), 0, {},
                    [](uint64_t element) { return fmt::format("element {}", element); }));
  return values;
}

Result<TensorFile> open_tensor_file(const std::string& path) {
  SINTER_LET(file, BoundedFile::open(path));
  std::string start(std::min<uint64_t>(file.size(), npy_magic.size()), '\0');
  SINTER_TRY(file.read(0, std::as_writable_bytes(std::span(start))));
  if (path.ends_with(".npz") || starts_zip(start)) return open_npz(std::move(file));
  if (path.ends_with(".npy") || start == npy_magic) return open_npy(std::move(file));
  return open_safetensors(std::move(file));
}

Status write_tensor_file(const std::string& path, llvm::ArrayRef<NamedTensor> tensors) {
  if (path.ends_with(".npz")) return write_npz(path, tensors);
  if (!path.ends_with(".npy")) return write_safetensors(path, tensors);
  if (tensors.size() != 1)
    return fail(fmt::format("a .npy has one tensor, {} are given", tensors.size()), path,
                "write .npz");
  SINTER_LET(writer, NpyWriter::create(path, tensors[0].dtype, tensors[0].dims));
  SINTER_TRY(writer.write(tensors[0].bytes));
  return writer.commit();
}

Status sort_by_name(std::vector<FileTensor>& tensors, const std::string& path,
                    const std::string& hint) {
  std::sort(tensors.begin(), tensors.end(),
            [](const FileTensor& a, const FileTensor& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i - 1].name == tensors[i].name)
      return fail("this tensor stands in the file twice",
                  fmt::format("{}: {}", path, printable(json_pointer_step(tensors[i].name))), hint);
  return {};
}

}  // namespace sinter
