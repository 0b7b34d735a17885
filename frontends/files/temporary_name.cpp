#include "frontends/files/temporary_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <vector>

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = ".tmp";
constexpr int kAttempts = 1000;  // names left behind by processes that had this one's number

/// A number as this process would write it.
std::optional<int> number(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || fmt::format("{}", value) != text) return std::nullopt;
  return value;
}

/// PID of "TARGET.PID.N.tmp".
std::optional<pid_t> process_of(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.ends_with(kEnd)) return std::nullopt;
  if (name.size() < target.size() + kEnd.size()) return std::nullopt;
  name.remove_prefix(target.size());
  name.remove_suffix(kEnd.size());
  if (!name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  const size_t dot = name.find('.');
  if (dot == name.npos) return std::nullopt;
  const auto process = number(name.substr(0, dot)), own = number(name.substr(dot + 1));
  if (!process || !own || *process < 1 || *own < 0) return std::nullopt;
  return *process;
}

void remove_leftover(const fs::path& path, mode_t kind) {
  const int found = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (found < 0) return;
  struct stat info;
  std::error_code ignored;
  if (::fstat(found, &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & S_IFMT) == kind &&
      ::flock(found, LOCK_EX | LOCK_NB) == 0)
    fs::remove_all(path, ignored);
  ::close(found);
}

void remove_leftovers(const std::string& target, mode_t kind) {
  const fs::path path = target;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string name = path.filename().string();
  std::error_code error;
  std::vector<fs::path> left;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto process = process_of(it->path().filename().string(), name);
    if (process && ::kill(*process, 0) != 0 && errno == ESRCH) left.push_back(it->path());
  }
  for (const fs::path& one : left) remove_leftover(one, kind);
}

}  // namespace

std::string take_temporary_name(const std::string& target, mode_t kind,
                                llvm::function_ref<bool(const std::string&)> take) {
  remove_leftovers(target, kind);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = fmt::format("{}.{}.{}{}", target, ::getpid(), attempt, kEnd);
    if (take(name)) return name;
    if (errno != EEXIST) break;
  }
  return {};
}

void lock_temporary(int descriptor) { ::flock(descriptor, LOCK_EX | LOCK_NB); }

}  // namespace sinter
