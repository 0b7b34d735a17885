// Errors that cross folder borders, and the check macro for compiler bugs.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sinter {

/// Exit codes of the `sinter` program; every Error carries the one it leads to.
enum class ExitCode : int {
  done = 0,
  internal_error = 1,
  usage = 2,
  check_failed = 3,
  bad_input = 4,
  device = 5,
  out_of_memory = 6,
  cancelled = 7,  // by a callback of a program that embeds the library
};

/// An error: what went wrong, where, and what to do next. `what` starts in lower case and shows
/// both values of a mismatch; `where` is a file, JSON pointer or line:column (may be empty); `hint`
/// is the next step (may be empty).
struct Error {
  std::string what;
  std::string where;
  std::string hint;
  ExitCode code = ExitCode::bad_input;

  /// One line: "where: what; hint", escaped as by escape_controls.
  std::string message() const;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> fail(std::string what, std::string where = {}, std::string hint = {},
                                  ExitCode code = ExitCode::bad_input) {
  return tl::make_unexpected(Error{std::move(what), std::move(where), std::move(hint), code});
}

/// `text` with everything escaped that a terminal would obey or hide: control characters but
/// newline and tab (U+0000 to U+001F, U+007F to U+009F), separators of lines and paragraphs,
/// controls of the direction of text (U+202A to U+202E, U+2066 to U+2069 and the marks U+061C,
/// U+200E, U+200F), and bytes that are not UTF-8. Each byte of them is written \xHH.
std::string escape_controls(std::string_view text);

/// A name as a part of a message or a table: like escape_controls, and newlines, tabs, quotes and
/// backslashes are escaped too; cut to `limit` bytes.
std::string printable(std::string_view text, size_t limit = 200);

/// What the system says of an error number.
std::string errno_text(int error = errno);

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace sinter

/// A broken invariant of the compiler itself: prints and exits with code 1, or throws where
/// ir/guarded.h says so. Never for user input.
/// An expression, so that compilers know without optimization too that SINTER_CHECK(false, ...)
/// does not return.
#define SINTER_CHECK(condition, ...) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::sinter::check_failed(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)))

/// Returns the error of a Result-valued expression from the current function.
#define SINTER_TRY(expression)                                    \
  do {                                                            \
    if (auto&& sinter_try_ = (expression); !sinter_try_)          \
      return tl::make_unexpected(std::move(sinter_try_.error())); \
  } while (0)

/// Declares `name` as the value of a Result-valued expression, or returns its error.
#define SINTER_LET(name, expression)                                                  \
  auto name##_result_ = (expression);                                                 \
  if (!name##_result_) return tl::make_unexpected(std::move(name##_result_.error())); \
  auto& name = *name##_result_
