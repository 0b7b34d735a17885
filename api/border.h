// The border of the library: what goes wrong behind it becomes a sinter_error. Its functions are
// not noexcept: a thread that is ended in a callback unwinds its stack through them.
#pragma once

#include <pthread.h>

#include <atomic>

#include "api/sinter_c.h"
#include "ir/guarded.h"

struct sinter_error {
  sinter::Error error;
  std::string message;
};

namespace sinter {

/// A new error for the caller; an error of its own, which is never freed, if memory runs out.
sinter_error* to_c(const Error& error) noexcept;

/// While one lives, pthread_cancel does not end this thread: it would unwind destructors.
class NoCancellation {
 public:
  NoCancellation() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Runs a function of the interface. `work` returns a Status.
template <typename Work>
sinter_error* border(Work&& work) {
  const NoCancellation no_cancellation;
  const Status done = guarded(work);
  return done ? nullptr : to_c(done.error());
}

/// The same for a function that makes a handle: `work` returns a Result<std::unique_ptr<Handle>>.
template <typename Handle, typename Work>
sinter_error* make_handle(Handle** result, Work&& work) {
  if (!result) return to_c({"the last parameter is null", {}, {}, ExitCode::usage});
  *result = nullptr;
  const NoCancellation no_cancellation;
  auto made = guarded(work);
  if (!made) return to_c(made.error());
  *result = made->release();
  return nullptr;
}

/// Frees a handle; null is none.
template <typename Handle>
void free_handle(Handle* handle) {
  const NoCancellation no_cancellation;
  delete handle;
}

/// An error that names a parameter which must not be null.
Status require(const void* parameter, const char* name);

/// Runs `work`, which returns a Result, on a handle that one thread uses at a time: an error if the
/// handle is in use, by another thread or by the function whose callback made this call.
template <typename Work>
auto in_turn(std::atomic<bool>& in_use, Work&& work) -> decltype(work()) {
  if (in_use.exchange(true, std::memory_order_acquire))
    return fail("the handle is in use, by another thread or by the function that called back", {},
                "give each thread a handle of its own", ExitCode::usage);
  struct Release {
    std::atomic<bool>& in_use;
    ~Release() { in_use.store(false, std::memory_order_release); }
  } release{in_use};
  return work();
}

/// A function of the interface that has the handle's turn.
template <typename Work>
sinter_error* border_in_turn(std::atomic<bool>& in_use, Work&& work) {
  return border([&]() -> Status { return in_turn(in_use, work); });
}

/// A copy for sinter_free.
Result<char*> copy_text(std::string_view text);
Result<int32_t*> copy_tokens(llvm::ArrayRef<int32_t> tokens);

/// Sets `*result` to a copy of a text.
template <typename Work>
sinter_error* give_text(char** result, Work&& work) {
  if (!result) return to_c({"the last parameter is null", {}, {}, ExitCode::usage});
  *result = nullptr;
  return border([&]() -> Status {
    SINTER_LET(text, work());
    SINTER_LET(copy, copy_text(text));
    *result = copy;
    return {};
  });
}

}  // namespace sinter
