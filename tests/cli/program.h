// Runs the built `sinter` in a process of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/temporary_directory.h"

namespace sinter {

struct ProgramRun {
  int code = -1;  // 128 + signal for one that ended it
  std::string out, err;
};

/// `environment`: "NAME=value" beside the inherited ones. stdin is empty; neither output is a
/// terminal.
ProgramRun run_program(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = {});

/// A program that runs beside the test, in a process group of its own. What still runs when this
/// object goes is killed.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal);
  ProgramRun wait();

 private:
  TemporaryDirectory files_;
  pid_t process_ = -1;
};

/// The same with stdout on a terminal, 80 columns wide; `out` is what the terminal got.
ProgramRun run_on_terminal(const std::vector<std::string>& arguments);

/// A shell line in which "$SINTER" is the program; for pipes and signals.
ProgramRun run_shell(const std::string& line);

/// The options that `sinter COMMAND --help` names, each by its longest name; -h is left out.
/// COMMAND may be two words.
std::vector<std::string> options_of(const std::string& command);
/// Every command, "cache status" as two words.
std::vector<std::string> all_commands();

std::string read_whole(const std::string& path);
void write_whole(const std::string& path, const std::string& text);

/// Path and content of every file under a folder, sorted.
std::vector<std::pair<std::string, std::string>> folder_contents(const std::string& folder);

}  // namespace sinter
