#include "frontends/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "frontends/files/read_files.h"
#include "frontends/files/temporary_name.h"

namespace sinter {

namespace {

constexpr size_t kLargestWrite = size_t{1} << 30;

/// Where a file without a name can be given one: its link in /proc.
std::string link_to(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

int open_without_name(const std::string& target) {
  const std::string folder = std::filesystem::path(target).parent_path().string();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor < 0) return -1;
  struct stat info;
  if (::stat(link_to(descriptor).c_str(), &info) == 0) return descriptor;
  ::close(descriptor);  // no /proc here
  return -1;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.find('\0') != std::string::npos) return fail("the path holds a zero byte", path);
  std::string target = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return fail("cannot write: this is no regular file", path, "give another path");
    if (is_input(info))
      return fail("cannot write: the command reads this file", path, "give another path",
                  ExitCode::usage);
    std::error_code error;
    target = std::filesystem::canonical(path, error).string();
    if (error) return fail(fmt::format("cannot write: {}", error.message()), path);
  }
  if (const int descriptor = open_without_name(target); descriptor >= 0)
    return AtomicFile(target, {}, descriptor);
  int descriptor = -1;
  std::string temporary = take_temporary_name(target, S_IFREG, [&](const std::string& name) {
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) lock_temporary(descriptor);
    return descriptor >= 0;
  });
  if (descriptor >= 0) return AtomicFile(target, std::move(temporary), descriptor);
  return fail(fmt::format("cannot write: {}", errno_text()), path,
              "check that the folder exists and may be written to");
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

tl::unexpected<Error> AtomicFile::failed(std::string_view act) const {
  return fail(fmt::format("cannot {}: {}", act, errno_text()), path_,
              "check the space on the disk and the folder's permissions");
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite),
                                   static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status AtomicFile::give_name() {
  const std::string link = link_to(fd_);
  if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  if (errno != EEXIST) return failed("name the finished file");
  // A link replaces no file; a rename does.
  lock_temporary(fd_);
  temporary_ = take_temporary_name(path_, S_IFREG, [&](const std::string& name) {
    return ::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  });
  if (temporary_.empty()) return failed("name the finished file");
  return rename_temporary();
}

Status AtomicFile::rename_temporary() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename the finished file");
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return failed("sync the file");
  SINTER_TRY(temporary_.empty() ? give_name() : rename_temporary());
  ::close(std::exchange(fd_, -1));
  // The name is on disk only once the folder is. The file is whole either way, so that a file
  // system which cannot sync folders is no failure.
  std::string folder = std::filesystem::path(path_).parent_path().string();
  int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
  return {};
}

}  // namespace sinter
