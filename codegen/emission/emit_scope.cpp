#include "codegen/emission/emit_scope.h"

#include <algorithm>

namespace sinter {

std::string indented(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    if (text[0] != '#' && text[0] != '\n') result += "  ";
    result += text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  return result;
}

CodeScope& CodeScope::place(Level level_of_value) {
  CodeScope* scope = this;
  while (scope->level > level_of_value && (!scope->condition || level_of_value < *scope->condition))
    scope = scope->parent;
  return *scope;
}

}  // namespace sinter
