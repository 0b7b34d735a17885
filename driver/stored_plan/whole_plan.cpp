#include "driver/stored_plan/whole_plan.h"

#include <sys/stat.h>

namespace sinter {

FolderIdentity::FolderIdentity(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return;
  // A new folder may get the number of one that is gone, but not its time.
  numbers_ = {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino),
              info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

}  // namespace sinter
