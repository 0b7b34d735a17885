// A command of the user that judges a candidate.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

struct CheckCommand {
  /// A shell's command. `{}` stands for the candidate's path; where it has none, the path is the
  /// last argument.
  std::string text;
  int64_t seconds = 60;       // after which the command and what it started are killed
  bool shows_output = false;  // on stderr; else its output is dropped
};

/// How a check ended.
struct CheckEnd {
  int status = 0;  // of exit; 128 and the signal's number for a process that a signal ended
  bool timed_out = false;

  bool succeeded() const { return !timed_out && status == 0; }
  /// "exit status 3", "no end after 60 s".
  std::string text(const CheckCommand& command) const;
};

/// Runs the command on a path and waits for its end. Its standard input is empty. It ends with this
/// process. Errors: no process could be started.
Result<CheckEnd> run_check(const CheckCommand& command, const std::string& path);

}  // namespace sinter
