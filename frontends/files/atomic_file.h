// Writes a file that is either there as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/error.h"

namespace sinter {

/// Bytes go to a file without a name in the folder of `path`; commit() syncs it and gives it its
/// name. Without a commit nothing remains, even if the process is killed. Where the file system has
/// no files without names, and for the moment in which a file is replaced, it is called
/// `path.PID.N.tmp`: what a kill leaves then, the next writer of `path` removes. An existing
/// regular file is replaced (through a symbolic link, the file that the link leads to), unless the
/// command reads it (read_files.h); anything else at `path` is refused.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Behind what was written so far.
  Status write(std::span<const std::byte> bytes);
  /// At `offset` of the file, in any order; write() goes on where it was.
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(descriptor) {}
  tl::unexpected<Error> failed(std::string_view act) const;
  Status give_name();
  Status rename_temporary();

  std::string path_;
  std::string temporary_;  // empty: the file has no name yet
  int fd_ = -1;
};

}  // namespace sinter
