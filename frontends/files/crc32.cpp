#include "frontends/files/crc32.h"

#include <array>
#include <cstring>

namespace sinter {
namespace {

constexpr uint32_t crc_polynomial = 0xEDB88320;
constexpr size_t crc_bytes_at_once = 8;

/// crc_tables[k][b]: the remainder of byte b with k zero bytes after it.
constexpr auto crc_tables = [] {
  std::array<std::array<uint32_t, 256>, crc_bytes_at_once> made{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? crc_polynomial : 0);
    made[0][byte] = value;
  }
  for (size_t k = 1; k < crc_bytes_at_once; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      made[k][byte] = made[k - 1][byte] >> 8 ^ made[0][made[k - 1][byte] & 0xFF];
  return made;
}();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (; bytes.size() >= crc_bytes_at_once; bytes = bytes.subspan(crc_bytes_at_once)) {
    uint64_t word;  // its first byte is the lowest one
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < crc_bytes_at_once; ++i)
      crc ^= crc_tables[crc_bytes_at_once - 1 - i][word >> (8 * i) & 0xFF];
  }
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ crc_tables[0][(crc ^ static_cast<uint32_t>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace sinter
