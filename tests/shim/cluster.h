// The blocks that run together: a cluster's blocks, or one block.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <memory>
#include <vector>

#include "shim/block.h"

namespace sinter {

/// Lives on as its blocks do. The functions that take a thread are called in its fiber; they end
/// the launch with an error where a device would hang, or where what it does is undefined.
class Cluster {
 public:
  /// Starts a cluster of `blocks` blocks; the caller begins each of them.
  void begin(unsigned blocks);
  unsigned size() const { return size_; }
  Block& block(unsigned rank) { return *blocks_[rank]; }

  /// The two halves of a barrier of all threads of all blocks. Only an arrival that `shows` has the
  /// others see what the thread gave before.
  void arrive(Thread& thread, bool shows, sinter_shim::Site site);
  void wait(Thread& thread, sinter_shim::Site site);
  /// Writes `value` where `own` lies in the shared memory of the block of that rank: at once in the
  /// thread's own block, in another when the thread arrives, so that a missing arrival is seen.
  void give(Thread& thread, float* own, int rank, float value, sinter_shim::Site site);
  /// Where `own`, `bytes` bytes of the shared memory of the thread's block, lies in the block of
  /// that rank.
  std::byte* in_block(Thread& thread, const void* own, size_t bytes, int rank,
                      sinter_shim::Site site);
  /// The kernel has returned.
  void leave(Thread& thread);

  /// A text that says what all threads wait for.
  std::string describe_stall() const;

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  unsigned size_ = 0;
  uint64_t phase_ = 0;  // number of completed phases of the cluster's barrier
  uint64_t arrived_ = 0;
};

}  // namespace sinter
