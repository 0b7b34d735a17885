// Memory whose surroundings tell of accesses outside it.
#pragma once

#include <cstddef>
#include <string>

namespace sinter {

/// Patterns of bytes that no program wrote.
inline constexpr unsigned char kNanPoison = 0xFF;  // NaN in every float type: spreads when read
inline constexpr unsigned char kFinitePoison =
    0xA5;  // a small number: differs from results, NaN too

/// Exactly `bytes` bytes, aligned to 256 as device memory is, filled with `poison` and enclosed by
/// guards. AddressSanitizer stops at any access to a guard; without it, `damage` sees writes.
class GuardedMemory {
 public:
  GuardedMemory(size_t bytes, unsigned char poison);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// The nearest guard byte that was written, "byte 0 after its end"; empty: none.
  std::string damage() const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sinter
