// Calls of the caller's functions: progress, tokens, allocators, evaluations.
#pragma once

#include <exception>

#include "ir/catch_all.h"
#include "ir/error.h"

namespace sinter {

/// Counts a call of a function of the caller's while it lives, also where the thread is ended in
/// that call (pthread_exit unwinds the stack).
class CallbackInProgress {
 public:
  CallbackInProgress();
  ~CallbackInProgress();
  CallbackInProgress(const CallbackInProgress&) = delete;

  /// Whether sinter_allow_callbacks permits the call.
  bool allowed() const;
};

/// Calls a function of the caller's. It is an error that names `callback` if the function throws or
/// if sinter_allow_callbacks has forbidden calls.
template <typename Call>
auto call_back(const char* callback, Call&& call) -> Result<decltype(call())> {
  const auto threw = [&](const char* what) {
    return fail(fmt::format("the {} threw {}", callback, what), {}, {}, ExitCode::cancelled);
  };
  const CallbackInProgress in_progress;
  if (!in_progress.allowed())
    return fail(fmt::format("the {} is not called: callbacks are forbidden", callback), {},
                "allow them with sinter_allow_callbacks", ExitCode::cancelled);
  try {
    return call();
  } catch (const std::exception& error) {
    return threw(error.what());
  }
  SINTER_CATCH_ALL { return threw("an exception"); }
}

}  // namespace sinter
