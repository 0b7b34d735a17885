// mbarrier, and the copies that a barrier counts.
#pragma once

#include "kernels/isa/cp_async.cuh"

#if SINTER_HAS_WGMMA || SINTER_HAS_BULK_COPY
namespace sinter {

// Bits 0 .. 19: arrivals that the phase lacks; 20 .. 39: arrivals of a phase; 40 .. 62: announced
// bytes that have not come, modulo 2^23; 63: the parity.
using Barrier = math::u64;

namespace mbarrier {
constexpr Barrier kCount = 0xfffff, kParity = 1ull << 63, kBytes = (kParity - 1) >> 40 << 40;

SINTER_DEVICE void end_phase_if_complete(Barrier& barrier) {
  if ((barrier & (kCount | kBytes)) == 0) barrier = (barrier ^ kParity) | (barrier >> 20 & kCount);
}
SINTER_DEVICE void add_bytes(Barrier& barrier, long long bytes) {
  const Barrier sum = (barrier & kBytes) + (static_cast<Barrier>(bytes) << 40);
  barrier = (barrier & ~kBytes) | (sum & kBytes);
}
SINTER_DEVICE Barrier& at(SharedAddress barrier) { return *reinterpret_cast<Barrier*>(barrier); }
}  // namespace mbarrier

// A copy whose bytes a barrier counts. What `run` does not read of its fields is not set.
struct CopyToBarrier {
  void (*run)(const CopyToBarrier&);
  SharedAddress barrier, to;
  const void* from;
  int bytes;           // that the barrier counts
  int coordinates[5];  // of a box of a tensor map
};

// The copies of the cluster's blocks that have not been made.
struct PendingCopiesToBarriers {
  static constexpr int kCapacity = 4096;
  CopyToBarrier copies[kCapacity];
  SharedAddress waited[1024];  // the barrier that a thread waits for, or 0
  int count;
  unsigned long long block;

  static PendingCopiesToBarriers& of_block(int rank = sinter_shim_calls->context->rank) {
    static PendingCopiesToBarriers all[sinter_shim::kMaxCluster];
    const sinter_shim::Context& context = *sinter_shim_calls->context;
    // The numbers of a cluster's blocks follow each other.
    const unsigned long long block =
        context.block_number + static_cast<unsigned long long>(rank - context.rank);
    PendingCopiesToBarriers& own = all[rank];
    if (own.block != block) {
      own.count = 0;
      memset(own.waited, 0, sizeof own.waited);
      own.block = block;
    }
    return own;
  }
  bool is_waited(SharedAddress barrier) const {
    for (unsigned thread = 0; thread < blockDim.x; ++thread)
      if (waited[thread] == barrier) return true;
    return false;
  }
  static void make(const CopyToBarrier& copy) {
    copy.run(copy);
    Barrier& barrier = mbarrier::at(copy.barrier);
    mbarrier::add_bytes(barrier, -copy.bytes);
    mbarrier::end_phase_if_complete(barrier);
  }
  // Makes the copies that `barrier` counts.
  void make_all(SharedAddress barrier) {
    int left = 0;
    for (int i = 0; i < count; ++i)
      if (copies[i].barrier == barrier)
        make(copies[i]);
      else
        copies[left++] = copies[i];
    count = left;
  }
};

// `rank`: of the block that it is copied into.
SINTER_DEVICE void begin_copy(const CopyToBarrier& copy,
                              int rank = sinter_shim_calls->context->rank) {
  PendingCopiesToBarriers& pending = PendingCopiesToBarriers::of_block(rank);
  if (pending.block % 2 == 0 || pending.is_waited(copy.barrier))
    return PendingCopiesToBarriers::make(copy);
  if (pending.count == PendingCopiesToBarriers::kCapacity) __builtin_trap();
  pending.copies[pending.count++] = copy;
}

SINTER_DEVICE void mbarrier_init(SharedAddress barrier, unsigned arrivals) {
  mbarrier::at(barrier) = static_cast<Barrier>(arrivals) << 20 | arrivals;
}
SINTER_DEVICE void fence_mbarrier_init() {}
SINTER_DEVICE void mbarrier_arrive(SharedAddress barrier) {
  mbarrier::at(barrier) -= 1;
  mbarrier::end_phase_if_complete(mbarrier::at(barrier));
}
/// This address of the block's shared memory in the block of that rank.
SINTER_DEVICE SharedAddress in_block(SharedAddress own, int bytes, int rank, SINTER_SHIM_SITE) {
  return reinterpret_cast<SharedAddress>(
      sinter_shim_calls->in_block(reinterpret_cast<const void*>(own),
                                  static_cast<unsigned long long>(bytes), rank, {file, line}));
}
SINTER_DEVICE void mbarrier_arrive_cluster(SharedAddress barrier, int rank, SINTER_SHIM_SITE) {
  mbarrier_arrive(in_block(barrier, sizeof(Barrier), rank, file, line));
}
SINTER_DEVICE void mbarrier_arrive_expect_tx(SharedAddress barrier, int bytes) {
  mbarrier::add_bytes(mbarrier::at(barrier), bytes);
  mbarrier_arrive(barrier);
}
SINTER_DEVICE void cp_async_mbarrier_arrive_noinc(SharedAddress barrier) {
  cp_async_commit_group();
  cp_async_wait_group<0>();
  mbarrier_arrive(barrier);
}
SINTER_DEVICE void mbarrier_try_wait_parity(SharedAddress barrier, unsigned parity,
                                            SINTER_SHIM_SITE) {
  PendingCopiesToBarriers& pending = PendingCopiesToBarriers::of_block();
  pending.make_all(barrier);
  SharedAddress& waited = pending.waited[threadIdx.x];
  waited = barrier;
  sinter_shim_calls->wait_for_phase(&mbarrier::at(barrier), parity, {file, line});
  waited = 0;
}

}  // namespace sinter
#endif
