#include "shim/guarded_memory.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "ir/error.h"
#include "shim/address_marks.h"

namespace sinter {
namespace {

constexpr size_t kAlignment = 1024;   // swizzled tiles of shared memory ask for it
constexpr size_t kGuardBytes = 1024;  // on each side; a multiple of the alignment

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
