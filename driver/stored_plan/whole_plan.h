// A plan's folder that other processes replace while it is read.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace sinter {

/// Which folder stands at a path.
class FolderIdentity {
 public:
  explicit FolderIdentity(const std::string& path);
  bool operator==(const FolderIdentity&) const = default;

 private:
  std::array<int64_t, 4> numbers_ = {};  // of its file system; zeros: there is none
};

/// Calls `read`, which reads several files of `folder`, and returns its result. Where another
/// folder stands there afterwards (compile -o) it may have read files of two plans, and is called
/// again.
template <typename Read>
auto read_whole_plan(const std::string& folder, Read&& read) -> decltype(read()) {
  constexpr int kMaxCalls = 100;
  for (int call = 1;; ++call) {
    const FolderIdentity before(folder);
    auto result = read();
    if (call == kMaxCalls || FolderIdentity(folder) == before) return result;
  }
}

}  // namespace sinter
