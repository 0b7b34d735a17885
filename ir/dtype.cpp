#include "ir/dtype.h"

namespace sinter {

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeInfo& info : kDTypes)
    if (info.name == text) return info.dtype;
  return std::nullopt;
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
