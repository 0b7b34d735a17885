#include "frontends/numpy_bytes.h"

#include <fmt/format.h>

#include <span>

#include "frontends/files/crc32.h"

namespace sinter {
namespace {

template <typename... T>
void append_numbers(std::string& bytes, T... values) {
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

uint32_t crc_of(const std::string& bytes) { return crc32(std::as_bytes(std::span(bytes))); }
uint32_t size_of(const std::string& bytes) { return static_cast<uint32_t>(bytes.size()); }
uint16_t length_of(const std::string& bytes) { return static_cast<uint16_t>(bytes.size()); }

}  // namespace

std::string npy_with(std::string_view dictionary, std::string_view data, char version) {
  std::string padded(dictionary);
  const size_t prelude = version == 1 ? 10 : 12;
  while ((prelude + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  if (version == 1)
    append_numbers(bytes, length_of(padded));
  else
    append_numbers(bytes, size_of(padded));
  return bytes + padded + std::string(data);
}

std::string npy_dictionary(std::string_view descr, std::string_view shape,
                           std::string_view fortran) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran,
                     shape);
}

std::string zip_bytes(const std::vector<ZipPart>& parts, int count) {
  std::string bytes, directory;
  for (const ZipPart& part : parts) {
    const uint32_t at = size_of(bytes), crc = crc_of(part.bytes), size = size_of(part.bytes);
    bytes += "PK\x03\x04";
    append_numbers(bytes, uint16_t{20}, part.flags, part.method, uint32_t{0}, crc, size, size,
                   length_of(part.local_name), uint16_t{0});
    bytes += part.local_name + part.bytes;
    directory += "PK\x01\x02";
    append_numbers(directory, uint16_t{20}, uint16_t{20}, part.flags, part.method, uint32_t{0}, crc,
                   size, size, length_of(part.name), uint16_t{0}, uint16_t{0}, uint16_t{0},
                   uint16_t{0}, uint32_t{0}, at);
    directory += part.name;
  }
  const auto said = static_cast<uint16_t>(count < 0 ? parts.size() : static_cast<size_t>(count));
  const uint32_t begin = size_of(bytes);
  bytes += directory + "PK\x05\x06";
  append_numbers(bytes, uint32_t{0}, said, said, size_of(directory), begin, uint16_t{0});
  return bytes;
}

}  // namespace sinter
