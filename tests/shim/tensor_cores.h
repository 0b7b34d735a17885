// Instructions of tensor cores and their copies, computed here: in kernel text, which is compiled
// with sanitizers and without optimization, they would take most of a test's time.
#pragma once

#include "shim/shim_interface.h"

namespace sinter {

inline constexpr const char* kOutsideMemory = "an operand lies outside of memory";

// Each returns false where it does, as AddressSanitizer knows it (address_marks.h).

/// mma.m16n8k16 and ldmatrix.x4 of a warp.
bool multiply_warp(const sinter_shim::WarpProduct* const (&lanes)[32]);
bool load_matrices(const sinter_shim::MatrixLoad* const (&lanes)[32]);

/// A thread's part of wgmma.m64nNk16 of operands in shared memory.
bool multiply_in_warpgroup(const sinter_shim::WarpgroupProduct& product, unsigned thread);
/// The part of a warp where the first operand is in registers.
bool multiply_warp_of_group(const sinter_shim::WarpgroupProduct* const (&lanes)[32]);

/// See Calls::copy_box.
bool copy_box(const sinter_shim::TensorMap& map, const int* coordinates, void* to);

}  // namespace sinter
