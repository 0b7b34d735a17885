#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>

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
                                                    llvm::ArrayRef<TensorEntry> tensors,
                                                    const Metadata& metadata) {
  SINTER_TRY(check_names(path, tensors));
  std::vector<Place> places;
  std::string header;
  if (!metadata.empty()) {
    std::string members;
    for (const auto& [key, value] : metadata)
      members +=
          fmt::format("{}{}:{}", members.empty() ? "" : ",", json_quoted(key), json_quoted(value));
    header = fmt::format("\"__metadata__\":{{{}}}", members);
  }
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors) {
    SINTER_LET(bytes, tensor_bytes(tensor.dtype, tensor.dims));
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    header.empty() ? "" : ",", json_quoted(tensor.name), to_string(tensor.dtype),
                    fmt::join(tensor.dims, ","), offset, offset + bytes);
    places.push_back({offset, bytes});
    offset += bytes;
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  SINTER_LET(file, AtomicFile::create(path));
  const uint64_t header_bytes = header.size();
  SINTER_TRY(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  SINTER_TRY(file.write(std::as_bytes(std::span(header))));
  for (Place& place : places) place.begin += sizeof header_bytes + header_bytes;
  return SafetensorsWriter(std::move(file), std::move(places));
}

Status SafetensorsWriter::write(size_t index, std::span<const std::byte> bytes) {
  SINTER_CHECK(index < places_.size() && bytes.size() == places_[index].bytes,
               "tensor {} of {} has {} bytes", index, places_.size(), bytes.size());
  SINTER_CHECK(!places_[index].written, "tensor {} is written twice", index);
  places_[index].written = true;
  return file_.write_at(places_[index].begin, bytes);
}

Status SafetensorsWriter::commit() {
  SINTER_CHECK(llvm::all_of(places_, [](const Place& place) { return place.written; }),
               "a tensor was not written");
  return file_.commit();
}

void sort_entries(std::vector<TensorEntry>& entries) {
  llvm::sort(entries, [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(-size_bits(a.dtype), std::string_view(a.name)) <
           std::pair(-size_bits(b.dtype), std::string_view(b.name));
  });
}

Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors) {
  std::vector<TensorEntry> entries;
  std::map<std::string_view, std::span<const std::byte>> bytes;
  for (const NamedTensor& tensor : tensors) {
    entries.push_back({tensor.name, tensor.dtype, tensor.dims});
    bytes[tensor.name] = tensor.bytes;
  }
  sort_entries(entries);
  SINTER_LET(writer, SafetensorsWriter::create(path, entries));
  for (size_t i = 0; i < entries.size(); ++i)
    SINTER_TRY(writer.write(i, bytes.find(entries[i].name)->second));
  return writer.commit();
}

}  // namespace sinter
