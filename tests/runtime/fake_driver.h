// The tests' control of the driver in fake_driver.cpp, which is a library of its own, loaded at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/fake_library.h"

namespace sinter {

/// A kernel that a test gives: `run` gets the blocks of the launch and the values of the first
/// `parameters` parameters, 8 bytes each.
struct FakeKernel {
  size_t parameters = 0;
  void (*run)(const FakeKernel& kernel, unsigned blocks, const uint64_t* parameters) = nullptr;
  double milliseconds = 0;  // by which events after it are later
  /// Machine code that cuLibraryLoadData takes for this kernel, which must outlive the library.
  std::string code() const {
    return "kernel at " + std::to_string(reinterpret_cast<uintptr_t>(this));
  }
};

struct FakeLaunch {
  unsigned grid[3], block[3];
  unsigned shared_bytes, cluster;
  bool overlaps;  // may begin before what is ahead of it in the stream ends
};

/// A call of the driver, and the context that was current.
struct FakeCall {
  const char* name;
  void* context;
};

/// A copy within the device.
struct FakeCopy {
  uint64_t to, from;
  size_t bytes;
  size_t launches;  // made before it, of those that take_launches() gives
};

/// The driver's own entry points for tests.
class FakeDriver : public FakeLibrary {
 public:
  /// The library is "libcuda.so.1" from then on.
  using FakeLibrary::FakeLibrary;

  /// Handles that are there.
  size_t handles() const { return ask<size_t()>("sinter_fake_handles")(); }
  /// Most bytes of one piece of pinned memory since the last call.
  size_t max_pinned() const { return ask<size_t()>("sinter_fake_max_pinned")(); }
  /// The call number `index` from now (0: the next) of the function `name`, or with "" of all that
  /// make a handle, with "any" of all that may fail, gives `code`. Of an illegal address (700)
  /// every later call gives the same. Until the next fail(); with code 0 nothing fails.
  void fail(const char* name, size_t index, int code) const {
    ask<void(const char*, size_t, int)>("sinter_fake_fail")(name, index, code);
  }
  /// How often fail()'s function was called since.
  size_t calls() const { return ask<size_t()>("sinter_fake_calls")(); }
  /// Launches since the last call, including launches by replayed graphs.
  std::vector<FakeLaunch> take_launches() const { return take<FakeLaunch>("sinter_fake_launches"); }
  /// Copies within the device since the last call, including copies by replayed graphs.
  std::vector<FakeCopy> take_copies() const { return take<FakeCopy>("sinter_fake_copies"); }

  /// All calls since the last call.
  std::vector<FakeCall> take_calls() const { return take<FakeCall>("sinter_fake_log"); }
  /// A context of the device that is not its primary one.
  void* make_context(int device) const { return ask<void*(int)>("sinter_fake_context")(device); }

 private:
  template <typename Item>
  std::vector<Item> take(const char* name) const {
    const auto function = ask<size_t(Item*)>(name);
    std::vector<Item> items(function(nullptr));
    function(items.data());
    return items;
  }
};

}  // namespace sinter
