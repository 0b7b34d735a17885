// A folder under construction beside the place that it will take, and where a command may put one.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <atomic>
#include <filesystem>

#include "ir/error.h"

namespace sinter {

/// TARGET.PID.N.tmp (frontends/files/temporary_name.h), locked while this object lives. Removed
/// unless it was put in place. What a process left that was killed (SIGKILL), the next folder
/// beside `target` removes.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> beside(const std::filesystem::path& target);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  /// Renames the folder to `target`, which is free or names an empty folder.
  Status rename_to(const std::filesystem::path& target);
  /// The same where another folder may have the name: that one is removed. At every moment one of
  /// the two has it.
  Status put_at(const std::filesystem::path& target);

 private:
  TemporaryFolder(std::filesystem::path path, int lock);
  Result<bool> put_in_two_steps(const std::filesystem::path& target);
  void keep();
  void stay_at_end();

  std::filesystem::path path_;
  int lock_ = -1;
  std::atomic<char*>* at_end_;  // its place in the list of remove_temporary_folders()
};

/// Removes the folders that are under construction. For a program that ends at once, by a signal's
/// handler or without memory: nothing here allocates.
void remove_temporary_folders();

/// May a command put its folder at `folder`? There is nothing of this name in a folder that exists,
/// an empty folder, or one that the command may replace: `check_content`, which is asked about the
/// folder itself (real_path), finds nothing foreign, and the command reads none of its files.
Status check_output_folder(const std::string& folder,
                           llvm::function_ref<Status(const std::filesystem::path&)> check_content);

/// The folder itself where `folder` is a link to it, without a slash at the end.
std::filesystem::path real_path(const std::string& folder);

tl::unexpected<Error> cannot_write(const std::filesystem::path& path, const std::string& why);

}  // namespace sinter
