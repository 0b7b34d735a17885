// Lists in JSON files that Sinter wrote and reads again.
#pragma once

#include "frontends/files/json.h"

namespace sinter {

/// The elements of an array, each as `read(view)` gives it. Errors: no array; as `read`.
template <typename T, typename Read>
Result<std::vector<T>> json_list(const JsonView& list, Read read) {
  SINTER_LET(array, list.array());
  std::vector<T> items;
  for (size_t i = 0; i < array->size(); ++i) {
    SINTER_LET(item, read(list[i]));
    items.push_back(std::move(item));
  }
  return items;
}

inline Result<std::vector<std::string>> json_strings(const JsonView& list) {
  return json_list<std::string>(list, [](const JsonView& one) { return one.string(); });
}
/// Counts: 0 and above.
inline Result<std::vector<int64_t>> json_counts(const JsonView& list) {
  return json_list<int64_t>(list, [](const JsonView& one) { return one.integer(0); });
}

/// The largest file of reports that is read, in bytes.
inline constexpr uint64_t kLargestReport = 256u << 20;
/// The longest time that a report states, in seconds.
inline constexpr double kLongestTime = 1e6;

}  // namespace sinter
