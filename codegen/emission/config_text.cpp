#include "codegen/emission/config_text.h"

#include "codegen/emission/emit_scalar.h"
#include "ir/error.h"

namespace sinter {

ConfigText& ConfigText::type(std::string_view name, std::string_view definition) {
  members_ += fmt::format("  using {} = {};\n", name, definition);
  return *this;
}

ConfigText& ConfigText::constant(std::string_view name, bool value) {
  return member("bool", name, value ? "true" : "false");
}

ConfigText& ConfigText::constant(std::string_view name, double value) {
  return member("float", name, literal_code(value, DType::f32));
}

ConfigText& ConfigText::integer(std::string_view name, int64_t value) {
  SINTER_CHECK(value == static_cast<int32_t>(value), "{} is {}", name, value);
  return member("int", name, std::to_string(value));
}

ConfigText& ConfigText::long_constant(std::string_view name, int64_t value) {
  return member("long long", name, std::to_string(value));
}

std::string ConfigText::text() const {
  return fmt::format("struct {} {{\n{}}};\n", name_, members_);
}

ConfigText& ConfigText::member(std::string_view type, std::string_view name,
                               std::string_view value) {
  members_ += fmt::format("  static constexpr {} {} = {};\n", type, name, value);
  return *this;
}

std::string braced(llvm::ArrayRef<std::string> items) {
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

std::string call_text(std::string_view function, llvm::ArrayRef<std::string> arguments) {
  return fmt::format("{}({});\n", function, fmt::join(arguments, ", "));
}

}  // namespace sinter
