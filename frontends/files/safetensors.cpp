#include "frontends/files/safetensors.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace sinter {
namespace {

constexpr uint64_t max_header_bytes = 100'000'000;  // the format's own limit

}  // namespace

Result<TensorFile> open_safetensors(const std::string& path) {
  SINTER_LET(file, BoundedFile::open(path));
  return open_safetensors(std::move(file));
}

Result<TensorFile> open_safetensors(BoundedFile file) {
  const std::string path = file.path();
  std::array<std::byte, 9> start{};  // header length and the header's first byte
  if (file.size() >= start.size()) SINTER_TRY(file.read(0, start));
  if (start[8] != std::byte{'{'}) SINTER_TRY(refuse_impostor(file));
  if (file.size() < 8)
    return fail(
        fmt::format("a safetensors file has at least 8 bytes, this one has {}", file.size()), path,
        "download the file again");
  SINTER_TRY(file.read(0, std::span(start).first(8)));
  uint64_t header_bytes;
  std::memcpy(&header_bytes, start.data(), sizeof header_bytes);
  if (header_bytes > max_header_bytes)
    return fail(fmt::format("the header's length is {}, at most {} is possible", header_bytes,
                            max_header_bytes),
                path, "check that this is a safetensors file");
  if (header_bytes > file.size() - 8)
    return fail(fmt::format("the header's length is {}, but only {} bytes follow: the file is "
                            "truncated",
                            header_bytes, file.size() - 8),
                path, "download the file again");
  if (header_bytes == 0)
    return fail("the header's length is 0, expected at least 2", path, "download the file again");
  if (start[8] != std::byte{'{'})
    return fail(fmt::format("the header begins with byte 0x{:02x}, expected an object (0x7b)",
                            static_cast<unsigned>(start[8])),
                path, "check that this is a safetensors file");
  std::string header(header_bytes, '\0');
  SINTER_TRY(file.read(8, std::as_writable_bytes(std::span(header))));
  const uint64_t data_start = 8 + header_bytes;
  SINTER_LET(tensors, parse_safetensors_header(header, file.size() - data_start, path));
  return TensorFile(std::move(file), std::move(tensors), data_start);
}

}  // namespace sinter
