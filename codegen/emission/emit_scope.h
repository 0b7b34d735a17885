// Kernel text under construction: nested scopes, each knowing the values that it already holds.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/emission/emit_index.h"

namespace sinter {

/// `text` two spaces further in; preprocessor lines stay at the margin.
std::string indented(std::string_view text);

/// The code of an element of a value.
struct ValueCode {
  std::string text;
  std::string array =
      {};  // `text` is element e of this array of a chunk's elements; empty: of none

  static ValueCode in_array(const std::string& array) { return {array + "[e]", array}; }
};

/// The code of a row number that may name no row: whether it names one, and a row that is there if
/// any is.
struct CheckedRow {
  std::string inside, row;
};

/// A block of code, and what is known in it and in scopes inside. The text of an inner scope is
/// added to its parent's when it is complete; so what moves out to a parent stands before it.
struct CodeScope {
  CodeScope* parent = nullptr;
  Level level = Level::row;  // how often the block runs
  /// A branch on a condition of this level: only what changes less often may move out, since it is
  /// valid to compute whichever way the branch goes.
  std::optional<Level> condition = {};
  std::string text = {};
  std::map<std::string, ValueCode> values = {};  // by key
  /// Loop variables that stand for a row, by the code of its number.
  std::map<std::string, uint32_t> row_axes = {};
  std::map<std::string, CheckedRow> checked_rows = {};  // by the code of number and limit

  /// The outermost scope in which a value of `level` may stand.
  CodeScope& place(Level level_of_value);
  /// The entry for the key in `known`, one of the maps above, here or in a scope outside.
  template <typename Known>
  const Known* find(std::map<std::string, Known> CodeScope::*known, const std::string& key) const {
    for (const CodeScope* scope = this; scope; scope = scope->parent)
      if (const auto at = (scope->*known).find(key); at != (scope->*known).end())
        return &at->second;
    return nullptr;
  }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  }
};

}  // namespace sinter
