#include "frontends/quantized/scheme.h"

#include <fmt/format.h>

namespace sinter {

std::string to_string(const WeightScheme& scheme) {
  std::string text = fmt::format("{}{}", scheme.is_float ? "FP" : "INT", scheme.bits);
  switch (scheme.strategy) {
    case ScaleStrategy::tensor:
      text += ", a scale a tensor";
      break;
    case ScaleStrategy::channel:
      text += ", a scale a row";
      break;
    case ScaleStrategy::group:
      text += fmt::format(", groups of {}", scheme.group);
      break;
    case ScaleStrategy::block:
      text += fmt::format(", blocks of {0}x{0}", kScaleBlock);
      break;
  }
  if (scheme.exponents) text += ", scales powers of 2";
  if (!scheme.symmetric) text += ", zero points";
  if (scheme.act_order) text += ", inputs in groups by activation";
  return text;
}

Result<const WeightScheme*> Quantization::scheme_of(std::string_view module) const {
  const ModuleClass of_module = class_of(module);
  SINTER_LET(out, ignored.contains(module, of_module));
  if (out) return nullptr;
  for (const Group& group : groups) {
    SINTER_LET(in, group.targets.contains(module, of_module));
    if (in) return &group.scheme;
  }
  return nullptr;
}

std::string Quantization::description() const {
  std::string text = method;
  for (size_t i = 0; i < groups.size(); ++i)
    text += fmt::format("{} {}", i == 0 ? ":" : ";", to_string(groups[i].scheme));
  return text;
}

}  // namespace sinter
