#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/stage_lines.h"
#include "driver/temporary_folder.h"

namespace sinter {
namespace {

bool progress_shown = false;
bool reader_gone = false;
int write_error = 0;  // the first that writing to stdout gave; 0: none
std::string held;  // of a result for a terminal: the first bytes of a character that is not whole

/// How many bytes at the end of `text` begin a UTF-8 sequence whose rest is missing: 0 to 3.
size_t cut_off_bytes(std::string_view text) {
  for (size_t count = 1; count <= std::min<size_t>(3, text.size()); ++count) {
    const unsigned char byte = static_cast<unsigned char>(text[text.size() - count]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const size_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    return length > count ? count : 0;
  }
  return 0;
}

using Clock = std::chrono::steady_clock;

/// Lines of stderr are written, and what is known of them changes, while this is held:
/// PlainProgress has a thread of its own.
std::mutex messages;

/// Seconds between lines of progress without a terminal; 0: no lines.
double progress_interval = 5;

void write_plain(std::string_view text);

/// Says what goes on, while it takes long, where stderr is no terminal.
class PlainProgress {
 public:
  ~PlainProgress() {
    {
      const std::lock_guard lock(messages);
      ended_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void set_stage(std::string_view text) {
    const std::lock_guard lock(messages);
    lines_.set_stage(std::string(text));
    if (text.empty() || thread_.joinable() || interval_.count() == 0) return;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {  // no thread is to be had: nothing is said
    }
  }
  /// `messages` is held.
  void line_written() { lines_.line_written(Clock::now()); }

 private:
  void run() {
    try {
      std::unique_lock lock(messages);
      while (!wake_.wait_for(lock, interval_, [&] { return ended_; }))
        if (const auto line = lines_.due(Clock::now())) write_plain(*line);
    } catch (const std::exception&) {  // no memory for a line: no more lines
    }
  }

  const std::chrono::duration<double> interval_{progress_interval};
  StageLines lines_{interval_, Clock::now()};
  std::condition_variable wake_;
  std::thread thread_;
  bool ended_ = false;
};

/// None on a terminal, and with -q.
PlainProgress* plain_progress() {
  if (verbosity == Verbosity::quiet || ::isatty(STDERR_FILENO)) return nullptr;
  static PlainProgress plain;
  return &plain;
}

/// To stderr. There is nowhere to report a failure to: a stderr that is closed or full takes
/// nothing and changes neither what the program does nor its exit code.
void write_message(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void write_plain(std::string_view text) {
  write_message(fmt::format("sinter: {}\n", escape_controls(text)));
}

void clear_progress() {
  if (progress_shown) write_message("\r\033[K");
  progress_shown = false;
}

void print_message(std::string_view prefix_color, std::string_view text) {
  PlainProgress* const plain = plain_progress();
  const std::lock_guard lock(messages);
  if (plain) plain->line_written();
  clear_progress();
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = !prefix_color.empty() && ::isatty(STDERR_FILENO) && !(no_color && *no_color);
  write_message(fmt::format("{}sinter:{} {}\n", color ? prefix_color : "", color ? "\033[0m" : "",
                            escape_controls(text)));
}

/// Keeps why a write to stdout failed. After the first failure nothing more is written.
void keep_failure() {
  if (errno == EPIPE)
    reader_gone = true;
  else
    write_error = errno;
}

/// To stdout as it is.
void write_bytes(std::string_view text) {
  if (text.empty() || reader_gone || write_error) return;
  progress({});
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_failure();
}

void flush_stdout() {
  if (!reader_gone && !write_error && std::fflush(stdout) != 0) keep_failure();
}

/// The program's state when an interrupt arrives. Any thread may get the signal, also a library's.
enum class Life : int { running, held, ending };
std::atomic<Life> life = Life::running;
std::atomic<int> waiting = 0;  // the signal that came while interrupts were held; 0: none
static_assert(std::atomic<Life>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

/// Whether the next Ctrl-C is taken (InterruptTaken), and whether one was.
std::atomic<bool> takes_interrupt = false, took_interrupt = false;

void on_interrupt(int signal) {
  if (signal == SIGINT && takes_interrupt && !took_interrupt.exchange(true)) return;
  for (Life found = Life::running; !life.compare_exchange_weak(found, Life::ending);) {
    if (found == Life::ending) return;
    if (found == Life::held) {
      waiting = signal;
      if (life == Life::held) return;  // else it was released before it could see the signal
    }
    found = Life::running;
  }
  remove_temporary_folders();
  ::_exit(128 + signal);
}

/// Started where a signal is ignored (nohup, a script's background), the program ignores it too.
void end_at(int signal) {
  if (std::signal(signal, on_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace

void print_result(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO);
  if (!terminal) return write_bytes(text);
  held += text;
  const size_t whole = held.size() - cut_off_bytes(held);
  write_bytes(escape_controls(std::string_view(held).substr(0, whole)));
  held.erase(0, whole);
}

void print_now(std::string_view text) {
  print_result(text);
  flush_stdout();
}

Status flush_results() {
  write_bytes(escape_controls(std::exchange(held, {})));
  flush_stdout();
  if (write_error)
    return fail(fmt::format("cannot write: {}", errno_text(write_error)), "standard output",
                "check where it leads and the space there");
  return {};
}

void note(std::string_view text) {
  if (verbosity != Verbosity::quiet) print_message("", text);
}

void detail(std::string_view text) {
  if (verbosity == Verbosity::verbose) print_message("", text);
}

void print_error(const Error& error) { print_message("\033[31m", error.message()); }

void ask() {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO)) return;
  const std::lock_guard lock(messages);
  clear_progress();
  write_message("> ");
}

void progress(std::string_view text) {
  if (PlainProgress* plain = plain_progress()) return plain->set_stage(text);
  clear_progress();
  if (text.empty() || verbosity == Verbosity::quiet) return;
  write_message(fmt::format("{} ...", escape_controls(text)));
  progress_shown = true;
}

Status set_up_progress() {
  constexpr double kMinSeconds = 0.001, kMaxSeconds = 86400;
  const char* text = std::getenv("SINTER_PROGRESS_SECONDS");
  if (!text || !*text) return {};
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != 0 || !(seconds == 0 || (seconds >= kMinSeconds && seconds <= kMaxSeconds)))
    return fail(fmt::format("\"{}\" is no number of seconds: 0, or {} to {}", printable(text),
                            kMinSeconds, kMaxSeconds),
                "SINTER_PROGRESS_SECONDS", "give 0 for no lines, or unset it", ExitCode::usage);
  progress_interval = seconds;
  return {};
}

InterruptTaken::InterruptTaken() {
  took_interrupt = false;
  takes_interrupt = true;
}

InterruptTaken::~InterruptTaken() { takes_interrupt = false; }

bool InterruptTaken::taken() const { return took_interrupt; }

InterruptsHeld::InterruptsHeld() {
  for (Life found = Life::running; !life.compare_exchange_weak(found, Life::held);
       found = Life::running)
    if (found == Life::ending) ::pause();  // another thread ends the program
}

InterruptsHeld::~InterruptsHeld() {
  life = Life::running;
  if (waiting != 0) on_interrupt(waiting);
}

void set_up_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Opened for the other direction, it fails with EBADF when
    // it is used, as the closed one would.
    const int opened = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0) ::_exit(static_cast<int>(ExitCode::internal_error));
  }
}

void set_up_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  end_at(SIGINT);
  end_at(SIGTERM);
}

}  // namespace sinter
