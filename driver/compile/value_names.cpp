#include "driver/compile/value_names.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include "ir/error.h"

namespace sinter {

std::string value_name(const Module& module, const std::string& name) {
  if (!name.starts_with('%') || llvm::any_of(module.entries, [&](const Entry& entry) {
        return entry.graph.find(name).valid();
      }))
    return name;
  return name.substr(1);
}

std::string near_value_names(const Module& module, const std::string& name) {
  std::vector<std::pair<unsigned, std::string_view>> found;
  const auto limit = static_cast<unsigned>(name.size() / 3 + 1);
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops()) {
      unsigned distance = llvm::StringRef(op.name).edit_distance(name, true, limit);
      if (distance > limit && !name.empty() && op.name.find(name) != std::string::npos)
        distance = limit;  // a name that holds it is near enough
      if (distance <= limit) found.emplace_back(distance, op.name);
    }
  llvm::stable_sort(found, [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size() && names.size() < 3; ++i)
    if (std::string one = printable(found[i].second); !llvm::is_contained(names, one))
      names.push_back(std::move(one));
  if (names.empty()) return "`sinter explain` lists the values";
  return fmt::format("near it: {}", fmt::join(names, ", "));
}

}  // namespace sinter
