#include "cli/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

ProgramRun spawn(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment) {
  const TemporaryDirectory files;
  const std::string out = files.path() + "/out", err = files.path() + "/err";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto redirect = [](const char* path, int flags, int descriptor) {
      const int opened = ::open(path, flags, 0600);
      if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(127);
    };
    redirect("/dev/null", O_RDONLY, 0);
    redirect(out.c_str(), O_WRONLY | O_CREAT, 1);
    redirect(err.c_str(), O_WRONLY | O_CREAT, 2);
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const std::string& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_whole(out),
          read_whole(err)};
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
  std::vector<std::string> command = {SINTER_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return spawn(command, environment);
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
    const size_t list = help.find("Subcommands:\n");
    if (list == std::string::npos) return std::vector<std::string>();
    return matches(help.substr(list, help.find("\n\n", list) - list), "\n  ([a-z]+)");
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
