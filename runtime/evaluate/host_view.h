// Strided views of host memory, and reading them in row-major order as another arithmetic type.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "ir/types.h"

namespace sinter {

/// How an element lies in memory: a DType, or f64, in which precise evaluation keeps floats.
enum class Storage : uint8_t {
#define SINTER_DTYPE(name, ...) name,
#include "ir/dtypes.def"
  f64,
};

Storage storage_of(DType dtype);
/// Bytes of an element, whose place in a view is a number of them.
int64_t whole_bytes(Storage storage);

using Extents = llvm::SmallVector<int64_t, 4>;

/// Element (i, j, ..) stands i * strides[0] + j * strides[1] + .. elements after `data`. `owner`
/// keeps the memory alive; null: someone else does.
struct HostView {
  Storage storage = Storage::f32;
  const std::byte* data = nullptr;
  Extents dims, strides;
  std::shared_ptr<const std::byte[]> owner;

  int64_t volume() const;
  bool is_dense() const;  // row-major without gaps
};

/// Strides of a dense tensor, in elements.
Extents dense_strides(llvm::ArrayRef<int64_t> dims);
/// The view repeated to `dims`, NumPy style.
HostView broadcast_view(const HostView& view, llvm::ArrayRef<int64_t> dims);
/// Axis i of the result is axis axes[i] of the view.
HostView transpose_view(const HostView& view, llvm::ArrayRef<int64_t> axes);

/// Elements at data, data + stride, .. as T: float of a float type, double of that or f64, int32_t
/// of i32, int64_t of i64, uint8_t of i1.
template <typename T>
void load_run(Storage storage, const std::byte* data, int64_t stride, int64_t count, T* out);
/// The reverse: rounds once to `storage`.
template <typename T>
void store_run(const T* values, int64_t count, Storage storage, std::byte* out, int64_t stride = 1);

/// Reads a view's elements in row-major order, a piece at a time.
class HostReader {
 public:
  explicit HostReader(const HostView& view);

  /// The next `count` elements as T; in place if they are that already, else in `scratch`, which
  /// has room for them.
  template <typename T>
  const T* next(int64_t count, T* scratch);
  /// Whether `next` needs no scratch.
  template <typename T>
  bool in_place() const;
  /// The next `count` elements, densely, as they are; or rounded once, if `storage` is another
  /// float type.
  void copy_next(int64_t count, Storage storage, std::byte* out);

 private:
  /// Calls run(first element, stride, count) for pieces of the innermost axis.
  template <typename Run>
  void advance(int64_t count, Run&& run);

  Storage storage_;
  int64_t element_bytes_;
  const std::byte* data_;   // of the current innermost run
  Extents dims_, strides_;  // of at least one axis; neighbours that fit are one
  Extents index_;
};

/// All elements, densely: in place if they are that already, else in `scratch`.
template <typename T>
const T* dense_elements(const HostView& view, std::vector<T>& scratch) {
  HostReader reader(view);
  const int64_t count = view.volume();
  if (!reader.in_place<T>()) scratch.resize(static_cast<size_t>(count));
  return reader.next(count, scratch.data());
}

}  // namespace sinter
