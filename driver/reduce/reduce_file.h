// `sinter reduce`: the smallest module for which a command still succeeds.
#pragma once

#include "driver/check_command.h"
#include "driver/reduce/reduce.h"

namespace sinter {

struct ReduceRequest {
  std::string path;    // a module
  std::string output;  // always holds the smallest module so far
  CheckCommand check;  // exit status 0: the module still fails
  int64_t tries = -1;
  /// Told of the work: how many checks were made, and the best module's size.
  std::function<void(int64_t checks, const ModuleSize& best)> progress;
};

struct ReduceReport {
  ModuleSize before, after;
  int64_t checks = 0, timed_out = 0;
  std::string text;  // of the smallest module
};

/// Errors: the module cannot be read; the command does not succeed on the module itself
/// (ExitCode::usage); the output cannot be written.
Result<ReduceReport> reduce_file(const ReduceRequest& request);

}  // namespace sinter
