// Memory of operator new between pages that nobody may touch.
#pragma once

#include <cstddef>

namespace sinter::test {

/// Where an allocation lies between its two guard pages.
enum class GuardedSide { ends_at_guard, begins_at_guard };

/// While one lives, each allocation of operator new has pages of its own, all bytes `pattern`, and
/// touches the guard page of that side. What is written on the other side, up to the next page, is
/// found when the memory is freed, and ends the process. One at a time. In a build with sanitizers,
/// which bring an allocator of their own, it does nothing.
class GuardedAllocations {
 public:
  GuardedAllocations(std::byte pattern, GuardedSide side);
  ~GuardedAllocations();
  GuardedAllocations(const GuardedAllocations&) = delete;
};

/// No byte of a guarded allocation may be written while one lives; of other memory, nothing.
class ReadOnly {
 public:
  explicit ReadOnly(const void* memory) : memory_(memory) { protect(true); }
  ~ReadOnly() { protect(false); }
  ReadOnly(ReadOnly&& other) noexcept : memory_(other.memory_) { other.memory_ = nullptr; }

 private:
  void protect(bool read_only) const;
  const void* memory_;
};

}  // namespace sinter::test
