#include "shim/guarded_memory.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "ir/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(address, bytes) (void)0
#define __asan_unpoison_memory_region(address, bytes) (void)0
#endif

namespace sinter {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = 256;  // on each side; a multiple of the alignment

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, unsigned char poison) : bytes_(bytes) {
  void* memory = nullptr;
  SINTER_CHECK(posix_memalign(&memory, kAlignment, bytes + 2 * kGuardBytes) == 0,
               "no memory for {} bytes", bytes);
  data_ = static_cast<std::byte*>(memory) + kGuardBytes;
  std::memset(data_ - kGuardBytes, kNanPoison, kGuardBytes);
  std::memset(data_, poison, bytes);
  std::memset(data_ + bytes, kNanPoison, kGuardBytes);
  __asan_poison_memory_region(data_ - kGuardBytes, kGuardBytes);
  __asan_poison_memory_region(data_ + bytes, kGuardBytes);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

GuardedMemory::~GuardedMemory() {
  if (!data_) return;
  __asan_unpoison_memory_region(data_ - kGuardBytes, bytes_ + 2 * kGuardBytes);
  std::free(data_ - kGuardBytes);
}

std::string GuardedMemory::damage() const {
  __asan_unpoison_memory_region(data_ - kGuardBytes, kGuardBytes);
  __asan_unpoison_memory_region(data_ + bytes_, kGuardBytes);
  std::string found;
  for (size_t i = 1; i <= kGuardBytes && found.empty(); ++i)
    if (*(data_ - i) != std::byte{kNanPoison}) found = fmt::format("byte {} before its start", i);
  for (size_t i = 0; i < kGuardBytes && found.empty(); ++i)
    if (data_[bytes_ + i] != std::byte{kNanPoison}) found = fmt::format("byte {} after its end", i);
  __asan_poison_memory_region(data_ - kGuardBytes, kGuardBytes);
  __asan_poison_memory_region(data_ + bytes_, kGuardBytes);
  return found;
}

}  // namespace sinter
