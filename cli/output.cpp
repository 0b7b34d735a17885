#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace sinter {
namespace {

constexpr int kInterrupted = 130;

bool progress_shown = false;
bool reader_gone = false;
int write_error = 0;

void clear_progress() {
  if (progress_shown) std::fputs("\r\033[K", stderr);
  progress_shown = false;
}

void print_message(std::string_view prefix_color, std::string_view text) {
  clear_progress();
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = !prefix_color.empty() && ::isatty(STDERR_FILENO) && !(no_color && *no_color);
  fmt::print(stderr, "{}sinter:{} {}\n", color ? prefix_color : "", color ? "\033[0m" : "", text);
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void print_result(std::string_view text) {
  if (text.empty() || reader_gone || write_error) return;
  clear_progress();
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  if (errno == EPIPE)
    reader_gone = true;
  else
    write_error = errno;
}

void print_now(std::string_view text) {
  print_result(text);
  if (!reader_gone) std::fflush(stdout);
}

Status flush_results() {
  if (!reader_gone && !write_error && std::fflush(stdout) != 0 && errno != EPIPE)
    write_error = errno;
  if (write_error)
    return fail(fmt::format("cannot write: {}", std::generic_category().message(write_error)),
                "standard output", "check the space on the disk");
  return {};
}

void note(std::string_view text) {
  if (verbosity != Verbosity::quiet) print_message("", text);
}

void detail(std::string_view text) {
  if (verbosity == Verbosity::verbose) print_message("", text);
}

void print_error(const Error& error) { print_message("\033[31m", error.message()); }

void progress(std::string_view text) {
  if (verbosity == Verbosity::quiet || !::isatty(STDERR_FILENO)) return;
  clear_progress();
  fmt::print(stderr, "{} ...", text);
  std::fflush(stderr);
  progress_shown = true;
}

InterruptsHeld::InterruptsHeld() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

InterruptsHeld::~InterruptsHeld() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void set_up_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  // Started where interrupts are ignored (nohup, a script's background), it ignores them too.
  if (std::signal(SIGINT, [](int) { ::_exit(kInterrupted); }) == SIG_IGN)
    std::signal(SIGINT, SIG_IGN);
}

}  // namespace sinter
