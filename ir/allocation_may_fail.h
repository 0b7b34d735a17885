// Which failed allocations are reported by their caller.
#pragma once

namespace sinter {

/// While one lives, this thread handles std::bad_alloc itself. A program may end at once where
/// other allocations fail: containers of LLVM do not survive an exception in the middle of an
/// insertion.
class AllocationMayFail {
 public:
  AllocationMayFail() { ++depth_; }
  ~AllocationMayFail() { --depth_; }
  AllocationMayFail(const AllocationMayFail&) = delete;

  static bool here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace sinter
