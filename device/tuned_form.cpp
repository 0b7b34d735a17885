#include "device/tuned_form.h"

#include <fmt/format.h>

namespace sinter {

std::string to_string(const TunedForm& form) {
  std::string text;
  for (const auto& [name, number] : form.numbers)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number);
  return text;
}

}  // namespace sinter
