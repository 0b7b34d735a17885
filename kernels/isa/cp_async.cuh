// cp.async: copies of 16 bytes from global into shared memory that their thread waits for. The
// copies of a thread since its last commit are a group. The copies of other threads have arrived
// after a barrier.
#pragma once

#include "kernels/isa/address.cuh"

#if SINTER_HAS_ASYNC_COPY
namespace sinter {

/// Writes zeros if not `present`; `from` is an address of global memory in either case.
SINTER_DEVICE void cp_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cvta_to_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}
SINTER_DEVICE void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the thread's latest `groups` groups are incomplete.
template <int groups>
SINTER_DEVICE void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

}  // namespace sinter
#endif
