// The memory that this process may still take, and the most that it took.
#pragma once

#include <cstdint>
#include <optional>

namespace sinter {

/// Bytes that can be allocated without swapping, within the limit of a container;
/// nothing where the system does not tell.
std::optional<int64_t> available_memory();

/// The most bytes of this process that were in main memory at once.
int64_t peak_memory();

}  // namespace sinter
