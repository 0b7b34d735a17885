#include "frontends/files/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "frontends/files/read_files.h"

namespace sinter {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

tl::unexpected<Error> cannot_open(const std::string& path, int error) {
  struct stat link;
  if (error == ENOENT && ::lstat(path.c_str(), &link) == 0)
    return fail("this symbolic link leads to a file that does not exist", path,
                "download the model again");
  if (error == ENXIO) return fail("expected a regular file, got a socket or a device", path);
  return fail(fmt::format("cannot open: {}", errno_text(error)), path, "check the path");
}

/// How the files begin that stand where a model should be.
struct Impostor {
  std::string_view start;  // lower case
  std::string_view what;
  std::string_view hint;
};
constexpr std::array<Impostor, 6> impostors{{
    {"version https://git-lfs", "this is a git-lfs pointer, not the file it stands for",
     "run `git lfs pull` in the model's folder"},
    {"<!doctype", "this is a web page, not a model file", "download the model again"},
    {"<html", "this is a web page, not a model file", "download the model again"},
    {"<?xml", "this is an XML page, not a model file", "download the model again"},
    {"pk\x03\x04", "this is a zip archive, as PyTorch and NumPy write them, which is not read",
     "convert it to safetensors"},
    {"gguf", "this is a GGUF file, which is inspected, but not run",
     "use the model's safetensors files"},
}};

}  // namespace

Result<BoundedFile> BoundedFile::open(const std::string& path, FileRole role) {
  if (path.find('\0') != std::string::npos) return fail("the path holds a zero byte", path);
  // O_NONBLOCK: opening a FIFO without a writer returns at once and is then refused by its kind.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return cannot_open(path, errno);
  BoundedFile file(path, descriptor);
  struct stat info;
  if (::fstat(descriptor, &info) != 0)
    return fail(fmt::format("cannot look at the file: {}", errno_text(errno)), path);
  if (!S_ISREG(info.st_mode))
    return fail(fmt::format("expected a regular file, got {}", kind_of(info.st_mode)), path,
                "check the path");
  if (role == FileRole::input) note_input(info);
  file.size_ = static_cast<uint64_t>(info.st_size);
  file.modified_seconds_ = info.st_mtim.tv_sec;
  file.modified_nanoseconds_ = info.st_mtim.tv_nsec;
  return file;
}

BoundedFile::BoundedFile(BoundedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      modified_seconds_(other.modified_seconds_),
      modified_nanoseconds_(other.modified_nanoseconds_) {}

BoundedFile& BoundedFile::operator=(BoundedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(modified_seconds_, other.modified_seconds_);
  std::swap(modified_nanoseconds_, other.modified_nanoseconds_);
  return *this;
}

BoundedFile::~BoundedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status BoundedFile::read(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset)
    return fail(fmt::format("bytes {} to {}+{} are wanted, but the file has {} bytes", offset,
                            offset, out.size(), size_),
                path_, "the file is truncated; download it again");
  constexpr size_t largest_read = size_t{1} << 30;  // the kernel's own limit is just below 2^31
  for (size_t done = 0; done < out.size();) {
    ssize_t count = ::pread(fd_, out.data() + done, std::min(out.size() - done, largest_read),
                            static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fail(fmt::format("cannot read byte {}: {}", offset + done, errno_text(errno)), path_);
    if (count == 0) break;  // shorter than it was: the look at the size below says so
    done += static_cast<size_t>(count);
  }
  struct stat info;
  if (::fstat(fd_, &info) != 0)
    return fail(fmt::format("cannot look at the file: {}", errno_text(errno)), path_);
  if (static_cast<uint64_t>(info.st_size) != size_)
    return fail(fmt::format("the file had {} bytes and now has {}", size_, info.st_size), path_,
                "do not change a model while it is read");
  if (info.st_mtim.tv_sec != modified_seconds_ || info.st_mtim.tv_nsec != modified_nanoseconds_)
    return fail("the file was written to while it was read", path_,
                "do not change a model while it is read");
  return {};
}

Result<std::string> BoundedFile::read_all(uint64_t max_bytes) const {
  if (size_ > max_bytes)
    return fail(fmt::format("the file has {} bytes, at most {} are read", size_, max_bytes), path_,
                "check that this is the right file");
  std::string text(size_, '\0');
  SINTER_TRY(read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

Result<std::string> read_small_file(const std::string& path, uint64_t max_bytes, FileRole role) {
  SINTER_LET(file, BoundedFile::open(path, role));
  return file.read_all(max_bytes);
}

Status refuse_impostor(const BoundedFile& file) {
  if (file.size() == 0) return fail("the file is empty", file.path(), "download the model again");
  std::string start(std::min<uint64_t>(file.size(), 64), '\0');
  SINTER_TRY(file.read(0, std::as_writable_bytes(std::span(start))));
  for (char& c : start) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  start.erase(0, std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  for (const Impostor& impostor : impostors)
    if (start.starts_with(impostor.start))
      return fail(std::string(impostor.what), file.path(), std::string(impostor.hint));
  return {};
}

}  // namespace sinter
