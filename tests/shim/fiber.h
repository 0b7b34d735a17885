// Stacks that take turns on one CPU thread.
#pragma once

#include <cstddef>

namespace sinter {

/// A stack of its own with a saved position. Switches tell AddressSanitizer which stack is used.
class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Starts anew: the next `resume` calls body(argument), which must end by `leave`.
  void prepare(void (*body)(void*), void* argument);
  /// Runs the fiber until it yields or leaves. Called from outside any fiber.
  void resume();
  /// Back to `resume`'s caller; returns at the next resume. Called inside the fiber.
  void yield();
  /// As yield, never to return.
  [[noreturn]] void leave();

 private:
  static void start(void* fiber);

  std::byte* stack_ = nullptr;  // lowest usable address, above a page that faults
  size_t shift_ = 0;            // bytes free at the stack's top
  void* position_ = nullptr;    // of the suspended fiber
  void* outside_ = nullptr;     // of the suspended resumer
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool unfinished_ = false;  // the body has begun and not returned
  // AddressSanitizer's view of the resumer's stack.
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
};

}  // namespace sinter
