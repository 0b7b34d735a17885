#include "runtime/cuda/tensor_map.h"

#include <bit>

namespace sinter {
namespace {

// Values of the driver's C interface.
constexpr int kInt32 = 3, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9;  // CUtensorMapDataType
constexpr int kPromote256Bytes = 3;                                   // CUtensorMapL2promotion
constexpr int kNoInterleave = 0, kFillWithZeros = 0;

int type_of(DType dtype) {
  if (dtype == DType::i32) return kInt32;
  if (dtype == DType::f16) return kFloat16;
  return dtype == DType::bf16 ? kBfloat16 : kFloat32;
}

/// CUtensorMapSwizzle: 0 none, 1 of 32 bytes, 2 of 64, 3 of 128.
int swizzle_of(int64_t bytes) {
  return bytes == 0 ? 0 : std::countr_zero(static_cast<uint64_t>(bytes)) - 4;
}

}  // namespace

Result<EncodedTensorMap> encode(const TensorMap& map, DType dtype, CudaAddress address,
                                llvm::ArrayRef<int64_t> symbol_values, const CudaDevice& device) {
  const auto numbers = numbers_of(map, symbol_values);
  if (!numbers) return fail("a size of a tensor map exceeds 63 bits");
  const auto bytes = static_cast<uint64_t>(whole_bytes(dtype));
  uint64_t dims[kMaxTensorMapDims], strides[kMaxTensorMapDims];
  uint32_t box[kMaxTensorMapDims], element_strides[kMaxTensorMapDims];
  for (size_t d = 0; d < map.dims.size(); ++d) {
    dims[d] = static_cast<uint64_t>(numbers->dims[d]);
    if (d > 0) strides[d - 1] = static_cast<uint64_t>(numbers->strides[d - 1]) * bytes;
    box[d] = static_cast<uint32_t>(map.box[d]);
    element_strides[d] = 1;
  }
  // The driver refuses a tensor without elements; no kernel copies a box of it.
  if (llvm::is_contained(numbers->dims, 0)) return EncodedTensorMap{};
  const CudaAddress first = address + static_cast<uint64_t>(numbers->offset) * bytes;
  EncodedTensorMap encoded;
  const int code = device.api().tensor_map_encode_tiled(
      encoded.bytes, type_of(dtype), static_cast<unsigned>(map.dims.size()),
      std::bit_cast<void*>(first), dims, strides, box, element_strides, kNoInterleave,
      swizzle_of(map.swizzle), kPromote256Bytes, kFillWithZeros);
  SINTER_TRY(device.check(code, "cuTensorMapEncodeTiled"));
  return encoded;
}

}  // namespace sinter
