#include "ir/dtype.h"

#include <algorithm>
#include <cmath>

namespace sinter {

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeInfo& info : kDTypes)
    if (info.name == text) return info.dtype;
  return std::nullopt;
}

int32_t nearest_i32(double value) {
  if (value != value) return 0;
  return static_cast<int32_t>(std::clamp(std::rint(value), -0x1p31, 0x1p31 - 1));
}

int64_t whole_bytes(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  SINTER_CHECK(info.bits % 8 == 0, "an element of {} has no address of its own", info.name);
  return info.bits / 8;
}

int64_t storage_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::optional<int64_t> bytes = packed_bytes(info.bits, elements);
  SINTER_CHECK(bytes, "{} elements of {} end inside a byte; the last extent must divide", elements,
               info.name);
  return *bytes;
}

}  // namespace sinter
