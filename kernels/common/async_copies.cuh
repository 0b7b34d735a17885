// Copies of 16 bytes into shared memory that their thread waits for (cp.async).
//
// A thread's copies since the last commit are a group. It waits until at most so many of its latest
// groups are not there. The copies of other threads are there after a barrier.
//
// The CPU of the tests makes a copy when its thread waits for it, so that a missing wait is seen.
#pragma once

#include "kernels/common/pending_groups.cuh"
#include "kernels/common/shared_address.cuh"

namespace sinter {

#ifdef __CUDACC_RTC__
#if SINTER_HAS_ASYNC_COPY
// Zeros if not `present`; `from` is an address of memory in any case.
SINTER_DEVICE void copy_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}
SINTER_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups>
SINTER_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
#endif
#else
struct PendingCopy {
  void* to;
  const void* from;  // null: zeros
};
using PendingCopies = PendingGroups<PendingCopy, 512>;

SINTER_DEVICE void copy_async(void* to, const void* from, bool present) {
  PendingCopies::of_thread().add({to, present ? from : nullptr});
}
SINTER_DEVICE void commit_copies() { PendingCopies::of_thread().end_group(); }
template <int groups>
SINTER_DEVICE void wait_for_copies() {
  PendingCopies::of_thread().wait(groups, [](const PendingCopy& copy) {
    if (copy.from != nullptr)
      memcpy(copy.to, copy.from, 16);
    else
      memset(copy.to, 0, 16);
  });
}
#endif

}  // namespace sinter
