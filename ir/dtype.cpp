#include "ir/dtype.h"

#include <algorithm>
#include <cmath>

namespace sinter {

namespace {

// Names that people bring from elsewhere: command lines, PyTorch.
struct OtherName {
  std::string_view name;
  DType dtype;
};
constexpr OtherName kOtherNames[] = {{"fp32", DType::f32},
                                     {"fp16", DType::f16},
                                     {"float32", DType::f32},
                                     {"float16", DType::f16},
                                     {"bfloat16", DType::bf16}};

}  // namespace

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeInfo& info : kDTypes)
    if (info.name == text) return info.dtype;
  for (const OtherName& other : kOtherNames)
    if (other.name == text) return other.dtype;
  return std::nullopt;
}

int32_t nearest_i32(double value) {
  if (value != value) return 0;
  return static_cast<int32_t>(std::clamp(std::rint(value), -0x1p31, 0x1p31 - 1));
}

int64_t nearest_i64(double value) {
  if (value != value) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  return static_cast<int64_t>(std::max(std::rint(value), -0x1p63));
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
