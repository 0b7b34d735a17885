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
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  template <typename T>
  llvm::ArrayRef<T> elements() const {
    return {data<T>(), static_cast<size_t>(volume())};
  }
};

/// An uninitialized tensor; a failure if the byte count overflows or memory is refused.
Result<HostTensor> make_tensor(DType dtype, std::vector<int64_t> dims);

/// A tensor of rank 1; T is what the host holds an element of `dtype` in.
template <typename T>
HostTensor vector_tensor(DType dtype, llvm::ArrayRef<T> values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {dtype,
          {static_cast<int64_t>(values.size())},
          std::vector<std::byte>(bytes, bytes + values.size() * sizeof(T))};
}
inline HostTensor i32_tensor(llvm::ArrayRef<int32_t> values) {
  return vector_tensor(DType::i32, values);
}

/// The tensors' addresses, as what runs on them takes them; the tensors must outlive the result.
inline std::vector<const HostTensor*> addresses_of(llvm::ArrayRef<HostTensor> tensors) {
  std::vector<const HostTensor*> addresses;
  addresses.reserve(tensors.size());
  for (const HostTensor& tensor : tensors) addresses.push_back(&tensor);
  return addresses;
}

}  // namespace sinter
