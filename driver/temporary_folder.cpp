#include "driver/temporary_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "driver/integers.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = ".tmp";

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
  const auto process = parse_integer<int32_t>(name.substr(0, dot), "", {.least = 1});
  const auto number = parse_integer<int32_t>(name.substr(dot + 1), "", {.least = 0});
  if (!process || !number) return std::nullopt;
  return *process;
}

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void remove_leftover(const fs::path& path) {
  const int folder = open_folder(path);
  if (folder < 0) return;
  struct stat info;
  std::error_code ignored;
  if (::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() &&
      ::flock(folder, LOCK_EX | LOCK_NB) == 0)
    fs::remove_all(path, ignored);
  ::close(folder);
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::beside(const fs::path& target) {
  constexpr int attempts = 1000;  // names left behind by processes that had this one's number
  for (int attempt = 0; attempt < attempts; ++attempt) {
    fs::path path = target;
    path += fmt::format(".{}.{}{}", ::getpid(), attempt, kEnd);
    if (::mkdir(path.c_str(), 0777) == 0) {
      const int lock = open_folder(path);
      // A file system without locks is no failure: the process's number protects the folder.
      if (lock >= 0) ::flock(lock, LOCK_EX | LOCK_NB);
      return TemporaryFolder(std::move(path), lock);
    }
    if (errno != EEXIST) break;
  }
  return cannot_write(target, std::generic_category().message(errno));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

Status TemporaryFolder::rename_to(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0)
    return cannot_write(target, std::generic_category().message(errno));
  keep();
  return {};
}

Status check_parent(const std::string& folder, const fs::path& path) {
  std::error_code error;
  const fs::path around = path.parent_path();
  if (around.empty() || fs::is_directory(around, error)) return {};
  const std::string name = printable(around.string(), 4096);
  if (fs::exists(around, error))
    return fail(fmt::format("'{}' is no folder", name), printable(folder, 4096),
                "give another folder");
  return fail(fmt::format("there is no folder '{}'", name), printable(folder, 4096),
              "make it first, or give another folder");
}

fs::path real_path(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(folder, error);
  if (error) path = folder;
  return path.has_filename() ? path : path.parent_path();
}

void remove_leftovers(const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string name = target.filename().string();
  std::error_code error;
  std::vector<fs::path> left;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto process = process_of(it->path().filename().string(), name);
    if (process && ::kill(*process, 0) != 0 && errno == ESRCH) left.push_back(it->path());
  }
  for (const fs::path& path : left) remove_leftover(path);
}

tl::unexpected<Error> cannot_write(const fs::path& path, const std::string& why) {
  return fail(fmt::format("cannot write: {}", why), path.string(),
              "check the space on the disk and the folder's permissions");
}

}  // namespace sinter
