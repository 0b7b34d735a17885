// A block that runs: its threads, what each of them waits for, and its shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shim/guarded_memory.h"
#include "shim/shim_interface.h"
#include "shim/thread.h"

namespace sinter {

struct SharedVariable {
  const void* variable;  // null: the dynamic one
  GuardedMemory memory;
  sinter_shim::Site site;
};

/// The index of element `i` of a grid or block with these extents; x varies fastest.
sinter_shim::Index3 position(uint64_t i, sinter_shim::Index3 extents);

/// Lives on with its threads' stacks, for one block of a launch after the other.
class Block {
 public:
  /// Every thread will call body(argument).
  void begin(unsigned number, sinter_shim::Index3 index, sinter_shim::Index3 threads,
             int64_t dynamic_shared_bytes, void (*body)(void*), void* argument);

  /// Among the launch's blocks.
  unsigned number() const { return number_; }
  sinter_shim::Index3 index() const { return index_; }
  unsigned thread_count() const { return thread_count_; }
  Thread& thread(unsigned i) { return *threads_[i]; }
  /// Empty: none so far.
  const std::string& error() const { return error_; }
  void set_error(const Thread& thread, sinter_shim::Site site, std::string_view what);
  void set_error(std::string error) { error_ = std::move(error); }
  bool has_ended() const;

  /// Lets threads of the warp that begins at `first_thread` go whose exchange is complete; false:
  /// none.
  bool release_exchanges(unsigned first_thread);
  /// Lets threads go whose barrier or phase has ended; false: none.
  bool release();
  /// "threads 0..31 wait at the barrier a.cu:7, threads 32..63 have returned"
  std::string describe_stall() const;

  /// The storage of a variable (see Calls::shared_storage). Of `thread`, one of any block, is an
  /// error if there is no room.
  std::byte* shared_storage(const void* variable, int64_t bytes, sinter_shim::Site site,
                            Thread& thread);
  /// The variable that `bytes` bytes at `address` are of; null: none.
  const SharedVariable* variable_of(const void* address, size_t bytes) const;
  /// The error of a variable that was overrun; empty: none.
  std::string shared_damage() const;

 private:
  bool release_exchange(unsigned first_thread);
  bool release_phases();
  bool release_named_barriers();
  bool release_barrier();
  void exchange_values(unsigned first_thread, unsigned leader, unsigned present);
  /// Computes the instruction of a warp that all its lanes have come to.
  void play_instruction(const Thread& leader, unsigned first_thread, unsigned present);

  std::vector<std::unique_ptr<Thread>> threads_;
  unsigned number_ = 0, thread_count_ = 0;
  sinter_shim::Index3 index_;
  std::vector<SharedVariable> shared_;
  int64_t declared_shared_bytes_ = 0, dynamic_shared_bytes_ = 0;
  std::string error_;
};

}  // namespace sinter
