// Where words go: results to stdout, everything else to stderr. No other source writes to either.
// Names and texts come from files that nobody checked. What a terminal would obey or hide in them
// (escape_controls) is escaped in every message, and in results when stdout is a terminal; files
// and pipes get a result's exact bytes.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

enum class Verbosity { quiet, normal, verbose };
inline Verbosity verbosity = Verbosity::normal;

/// To stdout. When the reader has gone away, what it did not want is dropped and the program goes
/// on; any other failure of writing is kept, and flush_results reports it.
void print_result(std::string_view text);
/// The same, shown at once: for text that grows.
void print_now(std::string_view text);
/// The last thing a command does. Fails with exit code 4 when a part of the result was not written.
Status flush_results();

/// "sinter: TEXT" to stderr, unless -q.
void note(std::string_view text);
/// The same with -v alone.
void detail(std::string_view text);
void print_error(const Error& error);

/// Asks for a line of standard input, if a person is at the terminal that it comes from.
void ask();

/// The work that goes on from now on, not with -q; empty: none, as after a result. On a terminal it
/// is a line of stderr that the next output replaces. Elsewhere it is a line every five seconds, or
/// as SINTER_PROGRESS_SECONDS says: work that is done sooner prints nothing.
void progress(std::string_view text);
/// Reads SINTER_PROGRESS_SECONDS: 0, or 0.001 to 86400. Before the first word to stderr.
Status set_up_progress();

/// While it lives, Ctrl-C and SIGTERM wait: for the moments when a folder is written and named. One
/// at a time.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
};

/// While it lives, the first Ctrl-C ends nothing: it is `taken`. The second one ends the program.
/// One at a time.
class InterruptTaken {
 public:
  InterruptTaken();
  ~InterruptTaken();
  InterruptTaken(const InterruptTaken&) = delete;
  InterruptTaken& operator=(const InterruptTaken&) = delete;
  bool taken() const;
};

/// Before any file is opened: one of the descriptors 0 to 2 that is closed is put on /dev/null, so
/// that no file takes its number and receives what is printed. Using it fails still.
void set_up_streams();

/// Ctrl-C ends the program with exit code 130, SIGTERM with 143. A closed pipe and a file that
/// reaches the limit of its size (ulimit -f) end nothing: the write fails, and what was begun is
/// cleaned up.
void set_up_signals();

}  // namespace sinter
