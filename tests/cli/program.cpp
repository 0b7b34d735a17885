#include "cli/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <utility>

#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

/// Starts a command with stdin on /dev/null and its output in files "out" and "err" of `files`,
/// unless `terminal` is a descriptor for stdout.
pid_t start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
            const std::string& files, int terminal = -1) {
  const std::string out = files + "/out", err = files + "/err";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  const auto redirect = [](const char* path, int flags, int descriptor) {
    const int opened = ::open(path, flags, 0600);
    if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(127);
  };
  redirect("/dev/null", O_RDONLY, 0);
  if (terminal < 0)
    redirect(out.c_str(), O_WRONLY | O_CREAT, 1);
  else
    ::dup2(terminal, 1);
  redirect(err.c_str(), O_WRONLY | O_CREAT, 2);
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::setenv("SINTER_PROGRESS_SECONDS", "0", 0);  // else a slow machine prints more lines
  for (const std::string& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

int exit_code(pid_t process) {
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProgramRun spawn(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment) {
  const TemporaryDirectory files;
  const int code = exit_code(start(command, environment, files.path()));
  return {code, read_whole(files.path() + "/out"), read_whole(files.path() + "/err")};
}

std::vector<std::string> with_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {SINTER_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// The first group of every match.
std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found.push_back((*it)[1]);
  return found;
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
  return spawn(with_program(arguments), environment);
}

RunningProgram::RunningProgram(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment)
    : process_(start(with_program(arguments), environment, files_.path())) {}

RunningProgram::~RunningProgram() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void RunningProgram::send(int signal) { ::kill(process_, signal); }

ProgramRun RunningProgram::wait() {
  const int code = exit_code(std::exchange(process_, -1));
  return {code, read_whole(files_.path() + "/out"), read_whole(files_.path() + "/err")};
}

ProgramRun run_on_terminal(const std::vector<std::string>& arguments) {
  const TemporaryDirectory files;
  int near = -1, far = -1;
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::openpty(&near, &far, nullptr, nullptr, &size) == 0);
  const pid_t process = start(with_program(arguments), {}, files.path(), far);
  ::close(far);
  std::string out;
  char buffer[4096];
  for (ssize_t got; (got = ::read(near, buffer, sizeof buffer)) > 0;)  // EIO: no writer is left
    out.append(buffer, static_cast<size_t>(got));
  ::close(near);
  return {exit_code(process), out, read_whole(files.path() + "/err")};
}

ProgramRun run_shell(const std::string& line) {
  return spawn({"/bin/bash", "-c", line}, {"SINTER=" SINTER_PROGRAM});
}

std::vector<std::string> options_of(const std::string& command) {
  const std::string help = run_shell("\"$SINTER\" " + command + " --help").out;
  std::vector<std::string> options;
  for (const std::string& names : matches(help, "\n  (-[-a-z]+(?:,-[-a-z]+)*)"))
    if (names != "-h,--help") options.push_back(names.substr(names.rfind(',') + 1));
  return options;
}

std::vector<std::string> all_commands() {
  const auto below = [](const std::string& command) {
    const std::string help = run_shell("\"$SINTER\" " + command + " --help").out;
    return matches(help, "\n  ([a-z]+)  ");  // options begin with a hyphen
  };
  std::vector<std::string> commands;
  for (const std::string& command : below("")) {
    const std::vector<std::string> parts = below(command);
    if (parts.empty()) commands.push_back(command);
    for (const std::string& part : parts) commands.push_back(command + " " + part);
  }
  return commands;
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_whole(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::pair<std::string, std::string>> folder_contents(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      result.emplace_back(entry.path().lexically_relative(folder).string(),
                          read_whole(entry.path().string()));
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace sinter
