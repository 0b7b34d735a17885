// Tensors in the caller's memory, and copies between them and dense tensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/types.h"

namespace sinter {

/// Borrows its memory.
struct TensorView {
  void* data = nullptr;  // host memory, or device memory on a GPU
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in elements, may be 0 or negative; empty: dense, row-major

  friend bool operator==(const TensorView&, const TensorView&) = default;
};

/// "f16[4, 64]"
std::string to_string(const TensorView& view);

/// An error, with `argument` for its place, unless the extents are valid and there is a stride for
/// each of them or none.
Status check_extents(const TensorView& view, const std::string& argument);
/// The same, and there is memory where there are elements.
Status check_view(const TensorView& view, const std::string& argument);
/// Whether all elements of a valid view lie side by side in row-major order.
bool is_dense(const TensorView& view);
/// Whether two elements of a valid view may share an address; false only if certainly none do.
bool may_overlap_itself(const TensorView& view);
/// The number of elements of a valid view, and their bytes.
int64_t volume(const TensorView& view);
size_t bytes_of(const TensorView& view);

/// Copies between host memory and the elements in row-major order; `bytes_of` bytes.
void copy_from(const TensorView& from, std::span<std::byte> to);
void copy_to(const TensorView& to, std::span<const std::byte> from);

}  // namespace sinter
