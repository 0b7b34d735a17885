#include "frontends/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace sinter {

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.find('\0') != std::string::npos) return fail("the path holds a zero byte", path);
  std::string target = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return fail("cannot write: this is no regular file", path, "give another path");
    std::error_code error;
    target = std::filesystem::canonical(path, error).string();
    if (error) return fail(fmt::format("cannot write: {}", error.message()), path);
  }
  constexpr int attempts = 1000;  // names left behind by processes that had this one's number
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string temporary = fmt::format("{}.{}.{}.tmp", target, ::getpid(), attempt);
    int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return AtomicFile(target, std::move(temporary), descriptor);
    if (errno != EEXIST) break;
  }
  return fail(fmt::format("cannot write: {}", std::generic_category().message(errno)), path,
              "check that the folder exists and may be written to");
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

tl::unexpected<Error> AtomicFile::failed(std::string_view act) const {
  return fail(fmt::format("cannot {}: {}", act, std::generic_category().message(errno)), path_,
              "check the space on the disk and the folder's permissions");
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr size_t largest_write = size_t{1} << 30;
  while (!bytes.empty()) {
    ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), largest_write));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return failed("sync the file");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename the finished file");
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
