#include "driver/calls/tensor_view.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sinter {
namespace {

/// Strides in elements, also of a view that has none.
std::vector<int64_t> strides_of(const TensorView& view) {
  if (!view.strides.empty()) return view.strides;
  std::vector<int64_t> strides(view.dims.size());
  int64_t next = 1;
  for (size_t i = view.dims.size(); i-- > 0; next *= view.dims[i]) strides[i] = next;
  return strides;
}

/// Calls `run(element, count, stride)` for each run along the last axis, in row-major order:
/// `element` is the place of its first element in `view.data`, all in elements.
template <typename Run>
void for_each_run(const TensorView& view, Run run) {
  if (volume(view) == 0) return;
  if (view.dims.empty()) return run(int64_t{0}, int64_t{1}, int64_t{1});
  const std::vector<int64_t> strides = strides_of(view);
  const size_t last = view.dims.size() - 1;
  std::vector<int64_t> index(view.dims.size(), 0);
  for (int64_t at = 0;;) {
    run(at, view.dims[last], strides[last]);
    size_t axis = last;
    for (;;) {
      if (axis-- == 0) return;
      at += strides[axis];
      if (++index[axis] < view.dims[axis]) break;
      at -= index[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

std::string to_string(const TensorView& view) {
  return fmt::format("{}[{}]", to_string(view.dtype), fmt::join(view.dims, ", "));
}

Status check_extents(const TensorView& view, const std::string& argument) {
  if (!view.strides.empty() && view.strides.size() != view.dims.size())
    return fail(fmt::format("{} strides for {} extents", view.strides.size(), view.dims.size()),
                argument, "give one stride for each extent, or none", ExitCode::usage);
  int64_t elements = 1;
  bool overflows = false;
  for (int64_t extent : view.dims) {
    if (extent < 0)
      return fail(fmt::format("an extent is {}, must be at least 0", extent), argument,
                  "check the sizes", ExitCode::usage);
    if (extent != 0) overflows |= __builtin_mul_overflow(elements, extent, &elements);
  }
  if (overflows || elements > max_elements(view.dtype))
    return fail(fmt::format("{} has more than {} bytes", to_string(view), kMaxValueBytes), argument,
                "check the sizes", ExitCode::usage);
  // With a bound on each of them, no place of an element exceeds 63 bits.
  constexpr int64_t kMaxStride = int64_t{1} << 48;
  for (size_t i = 0; i < view.strides.size(); ++i) {
    int64_t reach = 0;
    if (view.strides[i] < -kMaxStride || view.strides[i] > kMaxStride ||
        __builtin_mul_overflow(view.strides[i], std::max<int64_t>(view.dims[i] - 1, 0), &reach) ||
        reach < -kMaxStride || reach > kMaxStride)
      return fail(fmt::format("stride {} of extent {} leaves the address space", view.strides[i],
                              view.dims[i]),
                  argument, "check the strides, which count elements", ExitCode::usage);
  }
  return {};
}

Status check_view(const TensorView& view, const std::string& argument) {
  SINTER_TRY(check_extents(view, argument));
  if (view.data == nullptr && volume(view) != 0)
    return fail(fmt::format("{} has no memory", to_string(view)), argument, "give its address",
                ExitCode::usage);
  return {};
}

bool is_dense(const TensorView& view) {
  if (view.strides.empty() || volume(view) == 0) return true;
  int64_t next = 1;
  for (size_t i = view.dims.size(); i-- > 0; next *= view.dims[i])
    if (view.dims[i] != 1 && view.strides[i] != next) return false;
  return true;
}

bool may_overlap_itself(const TensorView& view) {
  if (is_dense(view)) return false;
  std::vector<std::pair<int64_t, int64_t>> axes;  // distance of neighbours, extent
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (view.dims[i] > 1) axes.emplace_back(std::abs(view.strides[i]), view.dims[i]);
  llvm::sort(axes);
  int64_t reach = 0;  // of the axes with smaller strides, in elements
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

int64_t volume(const TensorView& view) {
  int64_t elements = 1;
  if (llvm::is_contained(view.dims, 0)) return 0;
  for (int64_t extent : view.dims) elements *= extent;
  return elements;
}

size_t bytes_of(const TensorView& view) {
  return static_cast<size_t>(storage_bytes(view.dtype, volume(view)));
}

void copy_from(const TensorView& from, std::span<std::byte> to) {
  SINTER_CHECK(to.size() == bytes_of(from), "{} bytes for {}", to.size(), to_string(from));
  const auto* data = static_cast<const std::byte*>(from.data);
  if (is_dense(from)) {
    if (!to.empty()) std::memcpy(to.data(), data, to.size());
    return;
  }
  const int64_t bytes = whole_bytes(from.dtype);
  std::byte* out = to.data();
  for_each_run(from, [&](int64_t at, int64_t count, int64_t stride) {
    if (stride == 1) std::memcpy(out, data + at * bytes, static_cast<size_t>(count * bytes));
    for (int64_t i = 0; stride != 1 && i < count; ++i)
      std::memcpy(out + i * bytes, data + (at + i * stride) * bytes, static_cast<size_t>(bytes));
    out += count * bytes;
  });
}

void copy_to(const TensorView& to, std::span<const std::byte> from) {
  SINTER_CHECK(from.size() == bytes_of(to), "{} bytes for {}", from.size(), to_string(to));
  auto* data = static_cast<std::byte*>(to.data);
  if (is_dense(to)) {
    if (!from.empty()) std::memcpy(data, from.data(), from.size());
    return;
  }
  const int64_t bytes = whole_bytes(to.dtype);
  const std::byte* in = from.data();
  for_each_run(to, [&](int64_t at, int64_t count, int64_t stride) {
    if (stride == 1) std::memcpy(data + at * bytes, in, static_cast<size_t>(count * bytes));
    for (int64_t i = 0; stride != 1 && i < count; ++i)
      std::memcpy(data + (at + i * stride) * bytes, in + i * bytes, static_cast<size_t>(bytes));
    in += count * bytes;
  });
}

}  // namespace sinter
