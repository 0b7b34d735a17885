// Where words go: results to stdout, everything else to stderr.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

enum class Verbosity { quiet, normal, verbose };
inline Verbosity verbosity = Verbosity::normal;

/// To stdout. When the reader has gone away, what it did not want is dropped and the program goes
/// on; other failures of writing are reported by flush_results.
void print_result(std::string_view text);
/// The same, shown at once: for text that grows.
void print_now(std::string_view text);
/// The last thing a command does.
Status flush_results();

/// "sinter: TEXT" to stderr, unless -q.
void note(std::string_view text);
/// The same with -v alone.
void detail(std::string_view text);
void print_error(const Error& error);

/// A line on stderr that the next output replaces; on a terminal only, and not with -q.
void progress(std::string_view text);

/// While it lives, Ctrl-C waits: for the moments when a folder changes its name.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
};

/// Ctrl-C ends the program with exit code 130; a closed pipe ends nothing.
void set_up_signals();

}  // namespace sinter
