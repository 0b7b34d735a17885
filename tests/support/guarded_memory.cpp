#include "support/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace sinter::test {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = size_t{1} << 24;     // reserved; all but those in use are guards
constexpr size_t kMaxBytes = size_t{1} << 26;  // larger ones, which no small plan has, are plain

/// An allocation of `bytes` from `begin` on, in `pages` pages from `first` on.
struct Region {
  std::byte* begin = nullptr;
  std::byte* first = nullptr;
  size_t bytes = 0, pages = 0;
  std::byte pattern{0};
};

std::mutex mutex;
bool is_on = false;
std::byte pattern_now{0};
GuardedSide side_now = GuardedSide::ends_at_guard;
std::byte* reserved = nullptr;
Region* regions = nullptr;  // by the page in which one begins
size_t next_page = 1, live = 0;

void* reserve(size_t bytes, int protection) {
  void* memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return memory;
}

size_t page_of(const void* memory) {
  return static_cast<size_t>(static_cast<const std::byte*>(memory) - reserved) / kPage;
}

/// The guarded allocation that begins there; null: none.
Region* find(const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  return reserved != nullptr && at >= reserved && at < reserved + kPages * kPage
             ? &regions[page_of(memory)]
             : nullptr;
}

void* allocate_guarded(size_t bytes, size_t alignment) {
  const size_t pages = std::max<size_t>(1, (bytes + kPage - 1) / kPage);
  if (live == 0) next_page = 1;
  if (next_page + pages + 1 > kPages) return nullptr;
  std::byte* first = reserved + next_page * kPage;
  if (mprotect(first, pages * kPage, PROT_READ | PROT_WRITE) != 0) return nullptr;
  next_page += pages + 1;
  ++live;
  std::memset(first, static_cast<int>(pattern_now), pages * kPage);
  const bool at_end = side_now == GuardedSide::ends_at_guard;
  std::byte* begin = at_end ? first + (pages * kPage - bytes) / alignment * alignment : first;
  regions[page_of(begin)] = {begin, first, bytes, pages, pattern_now};
  return begin;
}

void free_guarded(const Region& region) {
  const auto is_pattern = [&](std::byte byte) { return byte == region.pattern; };
  std::byte* end = region.first + region.pages * kPage;
  if (!std::all_of(region.first, region.begin, is_pattern) ||
      !std::all_of(region.begin + region.bytes, end, is_pattern)) {
    constexpr char kText[] = "a byte beside an allocation was written\n";
    (void)!write(2, kText, sizeof kText - 1);
    std::abort();
  }
  madvise(region.first, region.pages * kPage, MADV_DONTNEED);
  mprotect(region.first, region.pages * kPage, PROT_NONE);
  --live;
}

/// A type's alignment divides its size.
size_t natural_alignment(size_t bytes) { return std::min<size_t>(16, bytes & (~bytes + 1)); }

void* allocate(size_t bytes, size_t alignment) {
  const std::lock_guard lock(mutex);
  if (is_on && bytes <= kMaxBytes)
    return allocate_guarded(
        bytes, alignment > 0 ? alignment : std::max<size_t>(1, natural_alignment(bytes)));
  if (alignment == 0) return std::malloc(std::max<size_t>(1, bytes));
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

[[maybe_unused]] void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

[[maybe_unused]] void release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex);
  if (const Region* region = find(memory)) return free_guarded(*region);
  std::free(memory);
}

}  // namespace

GuardedAllocations::GuardedAllocations(std::byte pattern, GuardedSide side) {
  const std::lock_guard lock(mutex);
  if (reserved == nullptr) {
    regions = static_cast<Region*>(reserve(kPages * sizeof(Region), PROT_READ | PROT_WRITE));
    reserved = static_cast<std::byte*>(reserve(kPages * kPage, PROT_NONE));
  }
  pattern_now = pattern, side_now = side;
  is_on = true;
}

GuardedAllocations::~GuardedAllocations() {
  const std::lock_guard lock(mutex);
  is_on = false;
}

void ReadOnly::protect(bool read_only) const {
  const std::lock_guard lock(mutex);
  const Region* region = memory_ ? find(memory_) : nullptr;
  if (region)
    mprotect(region->first, region->pages * kPage, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

}  // namespace sinter::test

#ifndef __SANITIZE_ADDRESS__
using sinter::test::allocate;
using sinter::test::allocate_or_throw;
using sinter::test::release;
void* operator new(size_t n) { return allocate_or_throw(n, 0); }
void* operator new[](size_t n) { return allocate_or_throw(n, 0); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void* operator new(size_t n, std::align_val_t a) { return allocate_or_throw(n, size_t(a)); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, size_t(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { release(p); }
#endif
