// CRC-32 as zip archives have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinter {

/// The checksum of earlier bytes followed by `bytes`. `before`: the checksum of the earlier bytes;
/// 0: there are none.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace sinter
