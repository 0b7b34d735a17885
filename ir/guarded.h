// Failures inside the compiler as errors, for a process that must go on: one that embeds the
// library, and threads whose exceptions nobody would catch.
#pragma once

#include <exception>
#include <new>

#include "ir/error.h"

namespace sinter {

/// While one lives, a broken invariant (SINTER_CHECK) in this thread throws BrokenInvariant and
/// does not end the process.
class InvariantsThrow {
 public:
  InvariantsThrow() { ++depth_; }
  ~InvariantsThrow() { --depth_; }
  InvariantsThrow(const InvariantsThrow&) = delete;

  static bool here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

struct BrokenInvariant {
  Error error;
};

/// Calls `work`, which returns a Result or a Status. Broken invariants, memory that runs out and
/// every other exception become its error.
template <typename Work>
auto guarded(Work&& work) noexcept -> decltype(work()) {
  const InvariantsThrow throws;
  try {
    return work();
  } catch (const BrokenInvariant& broken) {
    return tl::make_unexpected(broken.error);
  } catch (const std::bad_alloc&) {
    return fail("not enough memory", {}, {}, ExitCode::out_of_memory);
  } catch (const std::exception& error) {
    return fail(error.what(), {}, "this is a bug of the compiler; please report it",
                ExitCode::internal_error);
  }
}

}  // namespace sinter
