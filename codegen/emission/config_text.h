// The text of a kernel's configuration, by the names of its members, and of calls.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinter {

/// A struct of types and compile-time constants, which a template of the kernel library takes.
/// Members stand in the order in which they are added, one a line.
class ConfigText {
 public:
  explicit ConfigText(std::string_view name = "Config") : name_(name) {}

  /// using NAME = DEFINITION;
  ConfigText& type(std::string_view name, std::string_view definition);
  /// static constexpr bool NAME, int NAME, or float NAME; an integer must fit an int.
  ConfigText& constant(std::string_view name, bool value);
  ConfigText& constant(std::string_view name, double value);
  ConfigText& constant(std::string_view name, std::integral auto value) {
    return integer(name, static_cast<int64_t>(value));
  }
  /// static constexpr long long NAME
  ConfigText& long_constant(std::string_view name, int64_t value);

  /// "struct Config {...};\n"
  std::string text() const;
  /// The lines between the braces.
  const std::string& members() const { return members_; }

 private:
  ConfigText& integer(std::string_view name, int64_t value);
  ConfigText& member(std::string_view type, std::string_view name, std::string_view value);

  std::string name_, members_;
};

/// "{a, b, c}"
std::string braced(llvm::ArrayRef<std::string> items);
/// "FUNCTION(a, b, c);\n"
std::string call_text(std::string_view function, llvm::ArrayRef<std::string> arguments);

}  // namespace sinter
