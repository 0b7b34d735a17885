#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "frontends/files/atomic_file.h"
#include "frontends/files/json.h"
#include "frontends/files/safetensors.h"

namespace sinter {

Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::pair(-size_bits(a->dtype), std::string_view(a->name)) <
           std::pair(-size_bits(b->dtype), std::string_view(b->name));
  });
  std::vector<std::string_view> names;
  std::string header = "{";
  uint64_t offset = 0;
  for (const NamedTensor* tensor : order) {
    if (!is_utf8(tensor->name) || tensor->name == "__metadata__")
      return fail(fmt::format("a tensor cannot be named \"{}\" in a safetensors file",
                              printable(tensor->name)),
                  path, "rename the value");
    names.push_back(tensor->name);
    SINTER_LET(bytes, tensor_bytes(tensor->dtype, tensor->dims));
    SINTER_CHECK(bytes == tensor->bytes.size(), "{}: {} bytes for shape [{}]", tensor->name,
                 tensor->bytes.size(), fmt::join(tensor->dims, ", "));
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    header.size() > 1 ? "," : "", json_quoted(tensor->name),
                    to_string(tensor->dtype), fmt::join(tensor->dims, ","), offset, offset + bytes);
    offset += bytes;
  }
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(fmt::format("two tensors are named \"{}\"", printable(*twice)), path,
                "rename one of them");
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');

  SINTER_LET(file, AtomicFile::create(path));
  const uint64_t header_bytes = header.size();
  SINTER_TRY(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  SINTER_TRY(file.write(std::as_bytes(std::span(header))));
  for (const NamedTensor* tensor : order) SINTER_TRY(file.write(tensor->bytes));
  return file.commit();
}

}  // namespace sinter
