// The border of the library: what goes wrong behind it becomes a sinter_error.
#pragma once

#include "api/sinter_c.h"
#include "ir/guarded.h"

struct sinter_error {
  sinter::Error error;
  std::string message;
};

namespace sinter {

/// A new error for the caller; an error of its own, which is never freed, if memory runs out.
sinter_error* to_c(const Error& error) noexcept;

/// Runs a function of the interface. `work` returns a Status.
template <typename Work>
sinter_error* border(Work&& work) noexcept {
  const Status done = guarded(work);
  return done ? nullptr : to_c(done.error());
}

/// The same for a function that makes a handle: `work` returns a Result<std::unique_ptr<Handle>>.
template <typename Handle, typename Work>
sinter_error* make_handle(Handle** result, Work&& work) noexcept {
  if (!result) return to_c({"the last parameter is null", {}, {}, ExitCode::usage});
  *result = nullptr;
  auto made = guarded(work);
  if (!made) return to_c(made.error());
  *result = made->release();
  return nullptr;
}

/// An error that names a parameter which must not be null.
Status require(const void* parameter, const char* name);

/// A copy for sinter_free.
Result<char*> copy_text(std::string_view text);
Result<int32_t*> copy_tokens(llvm::ArrayRef<int32_t> tokens);

/// Sets `*result` to a copy of a text.
template <typename Work>
sinter_error* give_text(char** result, Work&& work) noexcept {
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
