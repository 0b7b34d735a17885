// The operations that a thread has issued and not waited for, in groups: copies of cp.async,
// products of wgmma. They are done when the thread waits.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

template <typename Item, int capacity>
class PendingGroups {
 public:
  // This thread's groups in the running block. Never constructed: an unused page is not touched.
  static PendingGroups& of_thread() {
    static PendingGroups all[sinter_shim::kMaxCluster][1024];
    const sinter_shim::Context& context = *sinter_shim_calls->context;
    PendingGroups& own = all[context.rank][threadIdx.x];
    if (own.block_ != context.block_number) {
      own.count_ = own.groups_ = 0;
      own.block_ = context.block_number;
    }
    return own;
  }
  unsigned long long block() const { return block_; }

  void add(const Item& item) {
    if (count_ == capacity) __builtin_trap();
    items_[count_++] = item;
  }
  void end_group() {
    if (groups_ == capacity) __builtin_trap();
    ends_[groups_++] = count_;
  }
  // Does the items of all groups but the last `left`.
  template <typename Do>
  void wait(int left, Do do_item) {
    const int done = groups_ > left ? groups_ - left : 0;
    const int end = done > 0 ? ends_[done - 1] : 0;
    for (int i = 0; i < end; ++i) do_item(items_[i]);
    for (int i = end; i < count_; ++i) items_[i - end] = items_[i];
    for (int g = done; g < groups_; ++g) ends_[g - done] = ends_[g] - end;
    count_ -= end;
    groups_ -= done;
  }

 private:
  Item items_[capacity];
  int ends_[capacity];
  int count_, groups_;
  unsigned long long block_;  // the block that issued them
};

}  // namespace sinter
