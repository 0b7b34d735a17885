// Kernel text under construction: nested scopes, each knowing the values that it already holds.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/emission/emit_index.h"

namespace sinter {

/// `text` two spaces further in; preprocessor lines stay at the margin.
std::string indented(std::string_view text);

/// A block of code. `names` maps keys of values to expressions that are valid here and in scopes
/// inside. The text of an inner scope is added to its parent's when it is complete; so what moves
/// out to a parent stands before it.
struct CodeScope {
  CodeScope* parent = nullptr;
  Level level = Level::row;  // how often the block runs
  /// A branch on a condition of this level: only what changes less often may move out, since it is
  /// valid to compute whichever way the branch goes.
  std::optional<Level> condition;
  std::string text;
  std::map<std::string, std::string> names;

  /// The outermost scope in which a value of `level` may stand.
  CodeScope& place(Level level_of_value);
  const std::string* find(const std::string& key) const;

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  }
};

}  // namespace sinter
