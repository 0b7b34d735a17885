#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "frontends/files/json.h"
#include "frontends/files/safetensors.h"

namespace sinter {
namespace {

/// The names can stand in a header, each once.
Status check_names(const std::string& path, llvm::ArrayRef<TensorEntry> tensors) {
  std::vector<std::string_view> names;
  for (const TensorEntry& tensor : tensors) {
    if (!is_utf8(tensor.name) || tensor.name == "__metadata__")
      return fail(fmt::format("a tensor cannot be named \"{}\" in a safetensors file",
                              printable(tensor.name)),
                  path, "rename the value");
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(fmt::format("two tensors are named \"{}\"", printable(*twice)), path,
                "rename one of them");
  return {};
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    llvm::ArrayRef<TensorEntry> tensors) {
  SINTER_TRY(check_names(path, tensors));
  std::vector<uint64_t> sizes;
  std::string header = "{";
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors) {
    SINTER_LET(bytes, tensor_bytes(tensor.dtype, tensor.dims));
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    header.size() > 1 ? "," : "", json_quoted(tensor.name), to_string(tensor.dtype),
                    fmt::join(tensor.dims, ","), offset, offset + bytes);
    offset += bytes;
    sizes.push_back(bytes);
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  SINTER_LET(file, AtomicFile::create(path));
  const uint64_t header_bytes = header.size();
  SINTER_TRY(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  SINTER_TRY(file.write(std::as_bytes(std::span(header))));
  return SafetensorsWriter(std::move(file), std::move(sizes));
}

Status SafetensorsWriter::write(std::span<const std::byte> bytes) {
  SINTER_CHECK(next_ < sizes_.size() && bytes.size() == sizes_[next_],
               "tensor {} of {} has {} bytes", next_, sizes_.size(), bytes.size());
  ++next_;
  return file_.write(bytes);
}

Status SafetensorsWriter::commit() {
  SINTER_CHECK(next_ == sizes_.size(), "{} of {} tensors were written", next_, sizes_.size());
  return file_.commit();
}

Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::pair(-size_bits(a->dtype), std::string_view(a->name)) <
           std::pair(-size_bits(b->dtype), std::string_view(b->name));
  });
  std::vector<TensorEntry> entries;
  for (const NamedTensor* tensor : order)
    entries.push_back({tensor->name, tensor->dtype, tensor->dims});
  SINTER_LET(writer, SafetensorsWriter::create(path, entries));
  for (const NamedTensor* tensor : order) SINTER_TRY(writer.write(tensor->bytes));
  return writer.commit();
}

}  // namespace sinter
