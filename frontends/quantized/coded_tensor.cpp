#include "frontends/quantized/coded_tensor.h"

#include <algorithm>

namespace sinter {

int64_t CodedTensor::group() const {
  switch (scheme.strategy) {
    case ScaleStrategy::group:
      return std::min(scheme.group, kLargestCodeGroup);
    case ScaleStrategy::block:
      return kScaleBlock;
    case ScaleStrategy::tensor:
    case ScaleStrategy::channel:
      break;
  }
  return 0;
}

int64_t CodedTensor::groups() const {
  const int64_t size = group();
  return size == 0 ? 1 : (in + size - 1) / size;
}

std::string CodedTensor::format() const {
  const std::string code = scheme.is_float
                               ? scheme.bits == 4 ? "e2m1" : "e4m3"
                               : fmt::format("{}int{}", unsigned_codes() ? "u" : "", scheme.bits);
  const std::string rows = group() == 0 ? "row" : fmt::format("g{}", group());
  return fmt::format("{} {} {}{}", code, rows, to_string(scale), has_zeros() ? " zeros" : "");
}

}  // namespace sinter
