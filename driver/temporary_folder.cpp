#include "driver/temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "frontends/files/read_files.h"
#include "frontends/files/temporary_name.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

/// The folders that remove_temporary_folders() removes. Who takes a path from its place owns it.
std::array<std::atomic<char*>, 64> removed_at_end{};
static_assert(std::atomic<char*>::is_always_lock_free);

std::atomic<char*>* remove_at_end(const std::string& path) {
  char* own = ::strdup(path.c_str());
  for (std::atomic<char*>& place : removed_at_end)
    if (char* none = nullptr; own && place.compare_exchange_strong(none, own)) return &place;
  std::free(own);
  return nullptr;  // the next folder beside the same target removes it
}

/// By calls that a signal's handler may make.
void remove_tree(int around, const char* name) {
  if (::unlinkat(around, name, AT_REMOVEDIR) == 0) return;
  if (errno == ENOTDIR) {
    ::unlinkat(around, name, 0);
    return;
  }
  const int folder = ::openat(around, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) std::array<char, 4096> entries;
  for (ssize_t bytes = 1; bytes > 0;) {
    bytes = ::syscall(SYS_getdents64, folder, entries.data(), entries.size());
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
        remove_tree(folder, entry->d_name);
    }
  }
  ::close(folder);
  ::unlinkat(around, name, AT_REMOVEDIR);
}

bool target_is_not_empty() { return errno == ENOTEMPTY || errno == EEXIST; }

/// An error where `folder` lies in no folder. `path` is its real path.
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

/// A file in the folder that the command reads, relative to the folder; empty: there is none.
std::string input_in(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info;
    if (::stat(it->path().c_str(), &info) == 0 && is_input(info))
      return it->path().lexically_relative(folder).string();
  }
  return {};
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::beside(const fs::path& target) {
  const std::string path =
      take_temporary_name(target.string(), S_IFDIR,
                          [](const std::string& name) { return ::mkdir(name.c_str(), 0777) == 0; });
  if (path.empty()) return cannot_write(target, errno_text());
  const int lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock >= 0) lock_temporary(lock);
  return TemporaryFolder(path, lock);
}

TemporaryFolder::TemporaryFolder(std::filesystem::path path, int lock)
    : path_(std::move(path)), lock_(lock), at_end_(remove_at_end(path_.string())) {}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      at_end_(std::exchange(other.at_end_, nullptr)) {}

void TemporaryFolder::stay_at_end() {
  if (at_end_) std::free(std::exchange(at_end_, nullptr)->exchange(nullptr));
}

void TemporaryFolder::keep() {
  stay_at_end();
  path_.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  // rmdir removes an empty folder without a descriptor: there may be none left.
  if (!path_.empty() && ::rmdir(path_.c_str()) != 0) fs::remove_all(path_, ignored);
  stay_at_end();  // a signal that comes before removes the rest
  if (lock_ >= 0) ::close(lock_);
}

Status TemporaryFolder::rename_to(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0) return cannot_write(target, errno_text());
  keep();
  return {};
}

/// For a file system that cannot exchange two folders: for a moment what is at `target` has another
/// name. Returns whether this folder is there; another process may have been faster.
Result<bool> TemporaryFolder::put_in_two_steps(const fs::path& target) {
  SINTER_LET(old, TemporaryFolder::beside(target));
  old.stay_at_end();  // it will hold the only whole one
  if (::rename(target.c_str(), old.path().c_str()) != 0 && errno != ENOENT)
    return cannot_write(target, errno_text());
  if (::rename(path_.c_str(), target.c_str()) == 0) return true;
  if (target_is_not_empty()) return false;
  const std::string why = errno_text();
  // Where the folder cannot go back, it stays under its other name.
  static_cast<void>(::rename(old.path().c_str(), target.c_str()));
  old.keep();
  return cannot_write(target, why);
}

Status TemporaryFolder::put_at(const fs::path& target) {
  // Other processes may put theirs there at the same time.
  constexpr int kMaxTries = 1000;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    // An absent or empty target is replaced by a plain rename, another by exchanging the two.
    bool done = ::rename(path_.c_str(), target.c_str()) == 0;
    if (!done && !target_is_not_empty()) return cannot_write(target, errno_text());
    if (!done) {
      if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
        return {};
      if (errno == ENOENT) continue;
      SINTER_LET(put, put_in_two_steps(target));
      done = put;
    }
    if (!done) continue;
    keep();
    return {};
  }
  return cannot_write(target, "other processes replace the folder again and again");
}

void remove_temporary_folders() {
  constexpr int kTries = 3;  // other threads may still write
  for (std::atomic<char*>& place : removed_at_end)
    if (const char* path = place.exchange(nullptr))
      for (int i = 0; i < kTries; ++i) remove_tree(AT_FDCWD, path);
}

Status check_output_folder(const std::string& folder,
                           llvm::function_ref<Status(const fs::path&)> check_content) {
  const fs::path path = real_path(folder);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return check_parent(folder, path);
  if (status.type() != fs::file_type::directory)
    return fail("this is no folder", printable(folder, 4096),
                "give another folder, or move this one away");
  if (fs::is_empty(path, error)) return {};
  SINTER_TRY(check_content(path));
  if (const std::string input = input_in(path); !input.empty())
    return fail(fmt::format("the folder holds {}, which the command reads", printable(input)),
                printable(folder, 4096), "give another folder", ExitCode::usage);
  return {};
}

fs::path real_path(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(folder, error);
  if (error) path = folder;
  return path.has_filename() ? path : path.parent_path();
}

tl::unexpected<Error> cannot_write(const fs::path& path, const std::string& why) {
  return fail(fmt::format("cannot write: {}", why), path.string(),
              "check the space on the disk and the folder's permissions");
}

}  // namespace sinter
