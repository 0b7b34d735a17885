// Copies of 16 bytes into shared memory that their thread waits for (cp.async).
//
// A thread's copies since the last commit are a group. It waits until at most so many of its latest
// groups are not there. The copies of other threads are there after a barrier.
//
// The CPU of the tests makes a copy when its thread waits for it, so that a missing wait is seen.
#pragma once

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
struct AsyncCopies {
  struct Copy {
    void* to;
    const void* from;  // null: zeros
  };
  static constexpr int kMost = 512;
  Copy copies[kMost];
  int ends[kMost];  // of the groups that are committed
  int count = 0, groups = 0;
  unsigned long long block = 0;  // that made them
};
SINTER_DEVICE AsyncCopies& copies_of_thread() {
  static AsyncCopies all[1024];
  AsyncCopies& own = all[threadIdx.x];
  if (own.block != sinter_shim_calls->context->block_number) {
    own.count = own.groups = 0;
    own.block = sinter_shim_calls->context->block_number;
  }
  return own;
}
SINTER_DEVICE void copy_async(void* to, const void* from, bool present) {
  AsyncCopies& own = copies_of_thread();
  if (own.count == AsyncCopies::kMost) __builtin_trap();
  own.copies[own.count++] = {to, present ? from : nullptr};
}
SINTER_DEVICE void commit_copies() {
  AsyncCopies& own = copies_of_thread();
  if (own.groups == AsyncCopies::kMost) __builtin_trap();
  own.ends[own.groups++] = own.count;
}
template <int groups>
SINTER_DEVICE void wait_for_copies() {
  AsyncCopies& own = copies_of_thread();
  const int done = own.groups > groups ? own.groups - groups : 0;
  if (done == 0) return;
  const int end = own.ends[done - 1];
  for (int i = 0; i < end; ++i) {
    if (own.copies[i].from != nullptr)
      memcpy(own.copies[i].to, own.copies[i].from, 16);
    else
      memset(own.copies[i].to, 0, 16);
  }
  for (int i = end; i < own.count; ++i) own.copies[i - end] = own.copies[i];
  for (int g = done; g < own.groups; ++g) own.ends[g - done] = own.ends[g] - end;
  own.count -= end;
  own.groups -= done;
}
#endif

}  // namespace sinter
