#include "frontends/files/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontends/files/atomic_file.h"
#include "frontends/files/crc32.h"
#include "frontends/files/json.h"
#include "frontends/files/npy.h"
#include "frontends/files/zip.h"

namespace sinter {
namespace {

constexpr std::string_view npy_ending = ".npy";
constexpr size_t max_name_bytes = 60'000;  // a record of the archive says its length in 16 bits

/// Fails, without a place, if a tensor of an archive cannot have the name.
Status check_npz_name(std::string_view name) {
  const bool is_path = name.find_first_of("/\\") != std::string_view::npos;
  const bool has_control = std::any_of(name.begin(), name.end(),
                                       [](char c) { return static_cast<unsigned char>(c) < 32; });
  if (!name.empty() && name.size() <= max_name_bytes && is_utf8(name) && !is_path && !has_control)
    return {};
  return fail(fmt::format("a tensor cannot be called \"{}\" in a .npz{}", printable(name),
                          is_path ? ": the name is a path" : ""),
              {}, "rename it, or use safetensors");
}

Result<FileTensor> read_npz_member(const BoundedFile& file, const ZipMember& member) {
  std::string_view name = member.name;
  if (!name.ends_with(npy_ending))
    return fail(fmt::format("the zip archive has the member \"{}\", expected NAME.npy alone",
                            printable(name)),
                file.path(), "write it with numpy.savez; of a PyTorch file make safetensors");
  name.remove_suffix(npy_ending.size());
  if (Status valid = check_npz_name(name); !valid) {
    valid.error().where = file.path();
    return tl::make_unexpected(std::move(valid.error()));
  }
  SINTER_LET(read, read_npy(file, member.begin, member.end,
                            fmt::format("{}: {}", file.path(), printable(member.name))));
  read.tensor.name = name;
  read.tensor.crc = {read.crc, member.crc};
  return std::move(read.tensor);
}

uint32_t member_crc(std::string_view header, std::span<const std::byte> bytes) {
  return crc32(bytes, crc32(std::as_bytes(std::span(header))));
}

/// By name, each once.
Result<std::vector<const NamedTensor*>> members_in_order(llvm::ArrayRef<NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    SINTER_TRY(check_npz_name(tensor.name));
    if (!names.insert(tensor.name).second)
      return fail(fmt::format("two tensors are named \"{}\"", printable(tensor.name)), {},
                  "rename one of them");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const NamedTensor* a, const NamedTensor* b) { return a->name < b->name; });
  return order;
}

/// The bytes before each tensor's elements, and the archive's end.
struct NpzLayout {
  std::vector<std::string> before;
  std::string end;
};
Result<NpzLayout> npz_layout(llvm::ArrayRef<const NamedTensor*> order) {
  NpzLayout layout;
  std::vector<ZipMember> members;
  uint64_t at = 0;
  for (const NamedTensor* tensor : order) {
    auto header = npy_header(tensor->dtype, tensor->dims);
    if (!header)
      return fail(fmt::format("tensor \"{}\": {}", printable(tensor->name), header.error().what),
                  {}, header.error().hint);
    ZipMember member{tensor->name + std::string(npy_ending), member_crc(*header, tensor->bytes), 0,
                     0};
    const uint64_t size = header->size() + tensor->bytes.size();
    std::string local = zip_local_header(member.name, member.crc, size);
    member.begin = at + local.size();
    member.end = at = member.begin + size;
    layout.before.push_back(std::move(local) + *header);
    members.push_back(std::move(member));
  }
  layout.end = zip_directory(members, at);
  return layout;
}

}  // namespace

Result<TensorFile> open_npz(BoundedFile file) {
  if (file.size() == 0) return fail("the file is empty", file.path(), "write it again");
  SINTER_LET(members, read_zip_directory(file));
  std::vector<FileTensor> tensors;
  for (const ZipMember& member : members) {
    SINTER_LET(tensor, read_npz_member(file, member));
    tensors.push_back(std::move(tensor));
  }
  SINTER_TRY(sort_by_name(tensors, file.path(), "write the archive again with numpy.savez"));
  return TensorFile(std::move(file), std::move(tensors), 0);
}

Status write_npz(const std::string& path, llvm::ArrayRef<NamedTensor> tensors) {
  const auto in_place = [&](Error error) {
    error.where = path;
    return tl::make_unexpected(std::move(error));
  };
  auto order = members_in_order(tensors);
  if (!order) return in_place(std::move(order.error()));
  auto layout = npz_layout(*order);
  if (!layout) return in_place(std::move(layout.error()));
  SINTER_LET(file, AtomicFile::create(path));
  for (size_t i = 0; i < order->size(); ++i) {
    SINTER_TRY(file.write(std::as_bytes(std::span(layout->before[i]))));
    SINTER_TRY(file.write((*order)[i]->bytes));
  }
  SINTER_TRY(file.write(std::as_bytes(std::span(layout->end))));
  return file.commit();
}

}  // namespace sinter
