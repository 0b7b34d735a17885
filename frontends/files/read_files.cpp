#include "frontends/files/read_files.h"

#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "ir/never_destroyed.h"

namespace sinter {
namespace {

struct Inputs {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> files;
};

std::atomic<bool> remembers = false;

Inputs& inputs() {
  static auto& all = never_destroyed([] { return Inputs(); });
  return all;
}

}  // namespace

void remember_inputs() { remembers = true; }

void note_input(const struct stat& file) {
  if (!remembers) return;
  const std::lock_guard lock(inputs().mutex);
  inputs().files.insert({file.st_dev, file.st_ino});
}

bool is_input(const struct stat& file) {
  if (!remembers) return false;
  const std::lock_guard lock(inputs().mutex);
  return inputs().files.contains({file.st_dev, file.st_ino});
}

}  // namespace sinter
