// CRC-32 as zip archives have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinter {

/// The checksum of some bytes and `bytes` after them, where `before` is that of the former; 0: of
/// none.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace sinter
