#include "driver/check_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "driver/shell_word.h"

namespace sinter {
namespace {

std::string with_path(const std::string& command, const std::string& path) {
  const std::string word = shell_word(path);
  std::string text;
  bool found = false;
  for (size_t at = 0; at < command.size();) {
    const size_t next = std::min(command.find("{}", at), command.size());
    text += command.substr(at, next - at);
    if (next < command.size()) text += word, found = true;
    at = next + 2;
  }
  return found ? text : text + " " + word;
}

/// In the child: only calls that are safe between fork and exec.
[[noreturn]] void run_shell(const char* text, bool shows_output) {
  setpgid(0, 0);  // so that all it starts can be killed with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(shows_output ? STDERR_FILENO : nothing, STDOUT_FILENO);
  if (!shows_output) dup2(nothing, STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", text, static_cast<char*>(nullptr));
  _exit(127);
}

}  // namespace

std::string CheckEnd::text(const CheckCommand& command) const {
  return timed_out ? fmt::format("no end after {} s", command.seconds)
                   : fmt::format("exit status {}", status);
}

Result<CheckEnd> run_check(const CheckCommand& command, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const std::string text = with_path(command.text, path);
  const auto end = Clock::now() + std::chrono::seconds(command.seconds);
  const pid_t child = fork();
  if (child < 0)
    return fail(fmt::format("no process for the check: {}", std::strerror(errno)), "--check", {},
                ExitCode::out_of_memory);
  if (child == 0) run_shell(text.c_str(), command.shows_output);
  CheckEnd ended;
  int status = 0;
  constexpr auto kLongestPause = std::chrono::milliseconds(20);
  for (auto pause = std::chrono::milliseconds(1);; pause = std::min(2 * pause, kLongestPause)) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0 && errno != EINTR)
      return fail(fmt::format("the check's end is unknown: {}", std::strerror(errno)), "--check");
    if (Clock::now() >= end) {
      ended.timed_out = true;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);  // where it has no group of its own yet
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      break;
    }
    std::this_thread::sleep_for(pause);
  }
  constexpr int kBySignal = 128;
  ended.status = WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

}  // namespace sinter
