#include "frontends/gguf/gguf_metadata.h"

#include <charconv>
#include <cmath>

namespace sinter {

tl::unexpected<Error> GgufMetadata::refuse(std::string_view key, std::string_view what) const {
  const GgufValue* value = find(key);
  return fail(
      fmt::format("{}{} is {}, {}", prefix_, key, value ? to_string(*value) : "missing", what),
      file_.files().front(), "convert the model again");
}

Result<int64_t> GgufMetadata::integer(std::string_view key) const {
  if (!find(key)) return refuse(key, "expected a number");
  return integer_or(key, 0);
}

Result<int64_t> GgufMetadata::integer_or(std::string_view key, int64_t fallback) const {
  const GgufValue* value = find(key);
  if (!value) return fallback;
  if (const auto* whole = std::get_if<int64_t>(value)) return *whole;
  const auto* list = std::get_if<GgufNumbers>(value);
  if (!list || list->size() == 0 || list->type() == GgufValueType::f32 ||
      list->type() == GgufValueType::f64)
    return refuse(key, "expected a number");
  for (size_t i = 1; i < list->size(); ++i)
    if (list->integer(i) != list->integer(0))
      return refuse(key, "which differ: layers of different sizes are not supported");
  return list->integer(0);
}

Result<double> GgufMetadata::number_or(std::string_view key, double fallback) const {
  const GgufValue* value = find(key);
  if (!value) return fallback;
  if (const auto* real = std::get_if<double>(value)) return shortest_double(*real);
  if (const auto* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  return refuse(key, "expected a number");
}

Result<std::string> GgufMetadata::text_or(std::string_view key, std::string fallback) const {
  const GgufValue* value = find(key);
  if (!value) return fallback;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return refuse(key, "expected a text");
}

double shortest_double(double value) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(value) || static_cast<double>(narrow) != value) return value;
  const std::string digits = fmt::format("{}", narrow);
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace sinter
