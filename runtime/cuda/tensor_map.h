// Tensor maps as the driver encodes them for a kernel.
#pragma once

#include "ir/dtype.h"
#include "plan/tensor_map.h"
#include "runtime/cuda/driver.h"

namespace sinter {

/// CUtensorMap: the value of a kernel's parameter.
struct alignas(kTensorMapArgumentAlignment) EncodedTensorMap {
  std::byte bytes[kTensorMapBytes];
};

/// `address`: of the input's first element. The map of a tensor without elements is all zeros.
Result<EncodedTensorMap> encode(const TensorMap& map, DType dtype, CudaAddress address,
                                llvm::ArrayRef<int64_t> symbol_values, const CudaDevice& device);

}  // namespace sinter
