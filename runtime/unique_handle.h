// Handles of C libraries with one owner.
#pragma once

#include <utility>

namespace sinter {

/// A handle and what gives it back: `Release` is called with the handle when its owner goes, unless
/// there is none (Handle{}). Move-only; moves exchange.
template <typename Handle, typename Release>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  /// No handle yet: receive() says where a library puts the one that it makes.
  explicit UniqueHandle(Release release) : release_(std::move(release)) {}
  UniqueHandle(UniqueHandle&& other) noexcept { swap(other); }
  UniqueHandle& operator=(UniqueHandle&& other) noexcept { return swap(other), *this; }
  ~UniqueHandle() {
    if (handle_ != Handle{}) release_(handle_);
  }

  Handle get() const { return handle_; }
  Handle* receive() { return &handle_; }
  const Release& release() const { return release_; }

 private:
  void swap(UniqueHandle& other) {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
  }
  Handle handle_{};
  Release release_{};
};

}  // namespace sinter
