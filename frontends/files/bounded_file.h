// Reads files that somebody else wrote: sizes are known first, ranges are checked, nothing is
// mapped, so that a file which changes under us is an Error and never a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// An input counts for remember_inputs(); a file that the command may replace is its own.
enum class FileRole : uint8_t { input, own };

/// A regular file, open for reading. Owns its descriptor. Reads are safe from several threads.
class BoundedFile {
 public:
  /// Follows symbolic links; refuses folders, FIFOs, sockets and devices, without blocking on them.
  static Result<BoundedFile> open(const std::string& path, FileRole role = FileRole::input);

  BoundedFile(BoundedFile&& other) noexcept;
  BoundedFile& operator=(BoundedFile&& other) noexcept;
  ~BoundedFile();

  const std::string& path() const { return path_; }
  /// Bytes, as the file was when it was opened.
  uint64_t size() const { return size_; }

  /// Fills `out` from byte `offset` on. Fails if the range leaves the file, or if the file's size
  /// or modification time is no longer what it was at open().
  Status read(uint64_t offset, std::span<std::byte> out) const;

  /// The whole file; fails before allocating if it has more than `max_bytes`.
  Result<std::string> read_all(uint64_t max_bytes) const;

 private:
  BoundedFile(std::string path, int descriptor) : path_(std::move(path)), fd_(descriptor) {}

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t modified_seconds_ = 0;
  int64_t modified_nanoseconds_ = 0;
};

/// Something has this name: also a link that leads nowhere, and what cannot be looked at, so that
/// opening it says why.
bool path_exists(const std::filesystem::path& path);

/// open() and read_all().
Result<std::string> read_small_file(const std::string& path, uint64_t max_bytes,
                                    FileRole role = FileRole::input);

/// Fails if the file is not a model at all but what a broken download or a wrong tool leaves in its
/// place: nothing, a git-lfs pointer, a web page, a PyTorch archive, a GGUF file.
Status refuse_impostor(const BoundedFile& file);

}  // namespace sinter
