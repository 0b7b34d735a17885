// Parts that the tests of `verify --self` share.
#pragma once

#include "driver/small_models.h"
#include "driver/verify/self.h"

namespace sinter {

inline SelfOptions self_on_cpu(std::optional<DType> dtype = {}) {
  SelfOptions options;
  options.backend = cpu();
  options.open.dtype = dtype;
  return options;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sinter
