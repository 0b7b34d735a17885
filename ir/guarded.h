// Failures inside the compiler as errors, for a process that must go on: one that embeds the
// library, and threads whose exceptions nobody would catch.
#pragma once

#include <exception>
#include <new>

#include "ir/catch_all.h"
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

/// The error of an exception that is none of the others; "out of memory" where its text finds none.
tl::unexpected<Error> unexpected_exception(const char* what) noexcept;

/// Calls `work`, which returns a Result or a Status. Broken invariants, memory that runs out and
/// every other exception become its error. No text of the error for memory is allocated. It is not
/// noexcept: a thread that is ended in `work` unwinds its stack through it.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  const InvariantsThrow throws;
  try {
    return work();
  } catch (BrokenInvariant& broken) {
    return tl::make_unexpected(std::move(broken.error));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", {}, {}, ExitCode::out_of_memory);
  } catch (const std::exception& error) {
    return unexpected_exception(error.what());
  }
  SINTER_CATCH_ALL { return unexpected_exception("an exception of an unknown type"); }
}

}  // namespace sinter
