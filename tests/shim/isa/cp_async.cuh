// cp.async: a copy is made when its thread waits for it.
#pragma once

#include "kernels/isa/address.cuh"
#include "kernels/isa/pending_groups.cuh"

namespace sinter {

struct PendingCopy {
  void* to;
  const void* from;  // null: zeros
};
using PendingCopies = PendingGroups<PendingCopy, 512>;

SINTER_DEVICE void cp_async(void* to, const void* from, bool present) {
  PendingCopies::of_thread().add({to, present ? from : nullptr});
}
SINTER_DEVICE void cp_async_commit_group() { PendingCopies::of_thread().end_group(); }
template <int groups>
SINTER_DEVICE void cp_async_wait_group() {
  PendingCopies::of_thread().wait(groups, [](const PendingCopy& copy) {
    if (copy.from != nullptr)
      memcpy(copy.to, copy.from, 16);
    else
      memset(copy.to, 0, 16);
  });
}

}  // namespace sinter
