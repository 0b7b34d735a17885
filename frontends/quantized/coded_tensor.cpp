#include "frontends/quantized/coded_tensor.h"

#include <algorithm>

namespace sinter {

bool CodedTensor::set_extents(llvm::ArrayRef<int64_t> extents) {
  const auto is_extent = [](int64_t n) { return n >= 1 && n <= kLargestExtent; };
  if (!llvm::all_of(extents, is_extent)) return false;
  const bool stacked = extents.size() == 3;
  matrices = stacked ? extents[0] : 0;
  out = extents[0] * (stacked ? extents[1] : 1);
  in = extents.back();
  return is_extent(out);
}

int64_t CodedTensor::group() const {
  if (blocks) return blocks->group;
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
  if (blocks) return to_string(*blocks);
  const std::string code = scheme.is_float
                               ? scheme.bits == 4 ? "e2m1" : "e4m3"
                               : fmt::format("{}int{}", unsigned_codes() ? "u" : "", scheme.bits);
  const std::string rows = group() == 0 ? "row" : fmt::format("g{}", group());
  return fmt::format("{} {} {}{}", code, rows, to_string(scale), has_zeros() ? " zeros" : "");
}

}  // namespace sinter
