// Dense tensors in host memory.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/types.h"

namespace sinter {

/// Owns its bytes; `dims` are concrete extents; row-major.
struct HostTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  int64_t volume() const;
  template <typename T>
  T* data() { return reinterpret_cast<T*>(bytes.data()); }
  template <typename T>
  const T* data() const { return reinterpret_cast<const T*>(bytes.data()); }
};

/// An uninitialized tensor; a failure if the byte count overflows or memory is refused.
Result<HostTensor> make_tensor(DType dtype, std::vector<int64_t> dims);

}  // namespace sinter
