// A folder under construction beside the place that it will take.
#pragma once

#include <filesystem>

#include "ir/error.h"

namespace sinter {

/// TARGET.PID.N.tmp, PID the process and N a number of its own. Removed unless it was kept. It is
/// locked (flock) while this object lives, so that a process which cannot see this one's number, in
/// another container, takes it for no leftover.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> beside(const std::filesystem::path& target);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  /// Gives the folder its name, which is free or that of an empty folder.
  Status rename_to(const std::filesystem::path& target);
  void keep() { path_.clear(); }

 private:
  TemporaryFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes what killed processes left beside `target`: folders of exactly such a name that belong
/// to this user, whose process is gone and that nobody has locked. What cannot be removed stays.
void remove_leftovers(const std::filesystem::path& target);

/// An error where `folder` lies in no folder. `path` is what it names (weakly_canonical).
Status check_parent(const std::string& folder, const std::filesystem::path& path);
/// The folder itself where `folder` is a link to it, without a slash at the end.
std::filesystem::path real_path(const std::string& folder);

tl::unexpected<Error> cannot_write(const std::filesystem::path& path, const std::string& why);

}  // namespace sinter
