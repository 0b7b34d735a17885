// Counts what the process holds on the heap, C's allocations included.
#pragma once

#include <cstddef>

namespace sinter::test {

/// False in a build with sanitizers, which bring an allocator of their own.
bool allocations_are_counted();
/// From here on allocations are counted and the peak is measured.
void reset_peak();
/// The most bytes held since reset_peak() above what was held there.
size_t peak_bytes();
/// How many allocations there were since reset_peak().
size_t allocations();

}  // namespace sinter::test
