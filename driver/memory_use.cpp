#include "driver/memory_use.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <locale>
#include <string>

namespace sinter {
namespace {

constexpr int64_t kKibibyte = 1024;

/// The number in a file that holds one; nothing for a missing file or a word such as "max".
std::optional<int64_t> number_in(const char* path) {
  std::ifstream file(path);
  file.imbue(std::locale::classic());
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The available memory of the whole machine.
std::optional<int64_t> machine_memory() {
  std::ifstream file("/proc/meminfo");
  file.imbue(std::locale::classic());
  int64_t kibibytes = 0;
  for (std::string key, unit; file >> key >> kibibytes; std::getline(file, unit))
    if (key == "MemAvailable:") return kibibytes * kKibibyte;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> available_memory() {
  const std::optional<int64_t> machine = machine_memory();
  const std::optional<int64_t> limit = number_in("/sys/fs/cgroup/memory.max");
  const std::optional<int64_t> used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return machine;
  return std::min(machine.value_or(*limit), std::max<int64_t>(*limit - *used, 0));
}

int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * kKibibyte;
}

}  // namespace sinter
