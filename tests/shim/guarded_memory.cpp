#include "shim/guarded_memory.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "ir/error.h"

namespace sinter {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = 256;  // on each side; a multiple of the alignment

/// Marks a region for AddressSanitizer, where its library is in the process: linked to it, or
/// loaded before it for sanitized kernel text.
void mark(const char* function, const std::byte* address, size_t bytes) {
  using Mark = void (*)(const volatile void*, size_t);
  if (void* found = dlsym(RTLD_DEFAULT, function)) reinterpret_cast<Mark>(found)(address, bytes);
}
void poison(const std::byte* address, size_t bytes) {
  mark("__asan_poison_memory_region", address, bytes);
}
void unpoison(const std::byte* address, size_t bytes) {
  mark("__asan_unpoison_memory_region", address, bytes);
}

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, unsigned char fill) : bytes_(bytes) {
  void* memory = nullptr;
  SINTER_CHECK(posix_memalign(&memory, kAlignment, bytes + 2 * kGuardBytes) == 0,
               "no memory for {} bytes", bytes);
  data_ = static_cast<std::byte*>(memory) + kGuardBytes;
  std::memset(data_ - kGuardBytes, kNanPoison, kGuardBytes);
  std::memset(data_, fill, bytes);
  std::memset(data_ + bytes, kNanPoison, kGuardBytes);
  poison(data_ - kGuardBytes, kGuardBytes);
  poison(data_ + bytes, kGuardBytes);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

GuardedMemory::~GuardedMemory() {
  if (!data_) return;
  unpoison(data_ - kGuardBytes, bytes_ + 2 * kGuardBytes);
  std::free(data_ - kGuardBytes);
}

std::string GuardedMemory::damage() const {
  unpoison(data_ - kGuardBytes, kGuardBytes);
  unpoison(data_ + bytes_, kGuardBytes);
  std::string found;
  for (size_t i = 1; i <= kGuardBytes && found.empty(); ++i)
    if (*(data_ - i) != std::byte{kNanPoison}) found = fmt::format("byte {} before its start", i);
  for (size_t i = 0; i < kGuardBytes && found.empty(); ++i)
    if (data_[bytes_ + i] != std::byte{kNanPoison}) found = fmt::format("byte {} after its end", i);
  poison(data_ - kGuardBytes, kGuardBytes);
  poison(data_ + bytes_, kGuardBytes);
  return found;
}

}  // namespace sinter
