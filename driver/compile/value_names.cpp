#include "driver/compile/value_names.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSet.h>

#include "ir/error.h"

namespace sinter {

std::optional<size_t> find_named(llvm::ArrayRef<llvm::StringRef> computed, llvm::StringRef name) {
  for (const llvm::StringRef wanted : {name, name.ltrim('%')})
    if (const auto at = llvm::find(computed, wanted); at != computed.end())
      return static_cast<size_t>(at - computed.begin());
  const std::string module = name.ltrim('%').str() + '.';
  for (size_t i = computed.size(); i > 0; --i)
    if (computed[i - 1].starts_with(module)) return i - 1;
  return std::nullopt;
}

ValueId named_value(const Graph& graph, const std::string& name) {
  std::vector<llvm::StringRef> computed;
  for (const Op& op : graph.ops()) {
    if (op.operands.empty() && (op.name == name || '%' + op.name == name))
      return graph.find(op.name);
    computed.push_back(op.operands.empty() ? llvm::StringRef() : llvm::StringRef(op.name));
  }
  const auto at = find_named(computed, name);
  return at ? ValueId{static_cast<uint32_t>(*at)} : ValueId{};
}

namespace {

/// The names of the values, and of the modules that made them, each once.
std::vector<llvm::StringRef> known_names(const Module& module) {
  std::vector<llvm::StringRef> names;
  llvm::StringSet<> seen;
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      for (llvm::StringRef name = op.name; !name.empty(); name = name.rsplit('.').first) {
        if (!seen.insert(name).second) break;
        names.push_back(name);
        if (!name.contains('.')) break;
      }
  return names;
}

}  // namespace

std::string near_value_names(const Module& module, const std::string& given) {
  const llvm::StringRef name = llvm::StringRef(given).ltrim('%');
  std::vector<std::pair<unsigned, llvm::StringRef>> found;
  const auto limit = static_cast<unsigned>(name.size() / 3 + 1);
  for (const llvm::StringRef known : known_names(module)) {
    unsigned distance = known.edit_distance(name, true, limit);
    if (distance > limit && !name.empty() && known.contains(name))
      distance = limit;  // a name that holds it is near enough
    if (distance <= limit) found.emplace_back(distance, known);
  }
  llvm::stable_sort(found, [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size() && names.size() < 3; ++i)
    names.push_back(printable(found[i].second));
  if (names.empty()) return "`sinter explain` lists the values";
  return fmt::format("near it: {}", fmt::join(names, ", "));
}

}  // namespace sinter
