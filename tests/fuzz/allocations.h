// Counts what the process holds on the heap, C's allocations included.
#pragma once

#include <cstddef>

namespace sinter::fuzz {

/// False in a build with sanitizers, which bring an allocator of their own.
bool allocations_are_counted();
/// From here on the peak is measured.
void reset_peak();
/// The most bytes held since reset_peak() above what was held there.
size_t peak_bytes();

}  // namespace sinter::fuzz
