#include "runtime/evaluate/host_view.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ir/scalar_math.h"

namespace sinter {
namespace {

using math::u16;

struct F16 {
  u16 bits;
};
struct Bf16 {
  u16 bits;
};

/// Calls run with a value of the memory type of `storage`.
template <typename Run>
void with_memory_type(Storage storage, Run&& run) {
  switch (storage) {
    case Storage::f32:
      return run(float{});
    case Storage::f16:
      return run(F16{});
    case Storage::bf16:
      return run(Bf16{});
    case Storage::i32:
      return run(int32_t{});
    case Storage::i64:
      return run(int64_t{});
    case Storage::i1:
      return run(uint8_t{});
    case Storage::f64:
      return run(double{});
  }
}

template <typename Memory>
constexpr bool kIsFloat = !std::is_integral_v<Memory>;
template <typename T, typename Memory>
constexpr bool kConverts = std::is_same_v<T, Memory> ||
                           (std::is_floating_point_v<T> && kIsFloat<Memory> &&
                            !(std::is_same_v<T, float> && std::is_same_v<Memory, double>));

template <typename T, typename Memory>
T widen(Memory value) {
  if constexpr (std::is_same_v<Memory, F16>)
    return math::f16_to_float(value.bits);
  else if constexpr (std::is_same_v<Memory, Bf16>)
    return math::bf16_to_float(value.bits);
  else
    return value;
}

template <typename Memory, typename T>
Memory round_to(T value) {
  constexpr bool wide = std::is_same_v<T, double>;
  if constexpr (std::is_same_v<Memory, F16>)
    return F16{wide ? math::double_to_f16(value) : math::float_to_f16(static_cast<float>(value))};
  else if constexpr (std::is_same_v<Memory, Bf16>)
    return Bf16{wide ? math::double_to_bf16(value)
                     : math::float_to_bf16(static_cast<float>(value))};
  else
    return static_cast<Memory>(value);
}

template <typename Element>
void copy_run(const std::byte* data, int64_t stride, int64_t count, std::byte* out) {
  const Element* from = reinterpret_cast<const Element*>(data);
  Element* to = reinterpret_cast<Element*>(out);
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Element));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

}  // namespace

Storage storage_of(DType dtype) {
  switch (dtype) {
#define SINTER_DTYPE(name, ...) \
  case DType::name:             \
    return Storage::name;
#include "ir/dtypes.def"
  }
  SINTER_CHECK(false, "dtype");
}

int64_t whole_bytes(Storage storage) {
  switch (storage) {
#define SINTER_DTYPE(name, ...) \
  case Storage::name:           \
    return whole_bytes(DType::name);
#include "ir/dtypes.def"
    case Storage::f64:
      return sizeof(double);
  }
  SINTER_CHECK(false, "storage");
}

template <typename T>
void load_run(Storage storage, const std::byte* data, int64_t stride, int64_t count, T* out) {
  with_memory_type(storage, [&]<typename Memory>(Memory) {
    if constexpr (kConverts<T, Memory>) {
      const Memory* from = reinterpret_cast<const Memory*>(data);
      if (stride == 1) {
        for (int64_t i = 0; i < count; ++i) out[i] = widen<T>(from[i]);
      } else if (stride == 0) {
        std::fill(out, out + count, widen<T>(from[0]));
      } else {
        for (int64_t i = 0; i < count; ++i) out[i] = widen<T>(from[i * stride]);
      }
    } else {
      SINTER_CHECK(false, "load of storage {}", static_cast<int>(storage));
    }
  });
}

template <typename T>
void store_run(const T* values, int64_t count, Storage storage, std::byte* out, int64_t stride) {
  with_memory_type(storage, [&]<typename Memory>(Memory) {
    if constexpr (kIsFloat<Memory> ? std::is_floating_point_v<T> : std::is_same_v<T, Memory>) {
      Memory* to = reinterpret_cast<Memory*>(out);
      if (stride == 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = round_to<Memory>(values[i]);
      } else {
        for (int64_t i = 0; i < count; ++i) to[i * stride] = round_to<Memory>(values[i]);
      }
    } else {
      SINTER_CHECK(false, "store to storage {}", static_cast<int>(storage));
    }
  });
}

HostReader::HostReader(const HostView& view)
    : storage_(view.storage), element_bytes_(whole_bytes(view.storage)), data_(view.data) {
  for (size_t i = 0; i < view.dims.size(); ++i) {
    if (view.dims[i] == 1) continue;
    if (!dims_.empty() && strides_.back() == view.strides[i] * view.dims[i]) {
      dims_.back() *= view.dims[i];
      strides_.back() = view.strides[i];
    } else {
      dims_.push_back(view.dims[i]);
      strides_.push_back(view.strides[i]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(1);
    strides_.push_back(1);
  }
  index_.resize(dims_.size());
}

template <typename Run>
void HostReader::advance(int64_t count, Run&& run) {
  const size_t inner = dims_.size() - 1;
  const int64_t extent = dims_[inner], stride = strides_[inner];
  while (count > 0) {
    const int64_t piece = std::min(count, extent - index_[inner]);
    run(data_ + index_[inner] * stride * element_bytes_, stride, piece);
    count -= piece;
    index_[inner] += piece;
    if (index_[inner] < extent) return;
    index_[inner] = 0;
    for (size_t axis = inner; axis-- > 0;) {
      data_ += strides_[axis] * element_bytes_;
      if (++index_[axis] < dims_[axis]) break;
      data_ -= strides_[axis] * dims_[axis] * element_bytes_;
      index_[axis] = 0;
    }
  }
}

template <typename T>
bool HostReader::in_place() const {
  bool same = false;
  with_memory_type(storage_, [&]<typename Memory>(Memory) { same = std::is_same_v<T, Memory>; });
  return same && dims_.size() == 1 && strides_[0] == 1;
}

template <typename T>
const T* HostReader::next(int64_t count, T* scratch) {
  const bool direct = in_place<T>();
  const T* result = scratch;
  advance(count, [&](const std::byte* data, int64_t stride, int64_t piece) {
    if (direct) {
      result = reinterpret_cast<const T*>(data);
    } else {
      load_run(storage_, data, stride, piece, scratch);
      scratch += piece;
    }
  });
  return result;
}

void HostReader::copy_next(int64_t count, Storage storage, std::byte* out) {
  const int64_t out_bytes = whole_bytes(storage);
  advance(count, [&](const std::byte* data, int64_t stride, int64_t piece) {
    if (storage == storage_) {
      switch (element_bytes_) {
        case 1:
          copy_run<uint8_t>(data, stride, piece, out);
          break;
        case 2:
          copy_run<uint16_t>(data, stride, piece, out);
          break;
        case 4:
          copy_run<uint32_t>(data, stride, piece, out);
          break;
        default:
          copy_run<uint64_t>(data, stride, piece, out);
          break;
      }
    } else {
      double block[256];
      for (int64_t i = 0; i < piece; i += 256) {
        const int64_t part = std::min<int64_t>(256, piece - i);
        load_run(storage_, data + i * stride * element_bytes_, stride, part, block);
        store_run(block, part, storage, out + i * out_bytes);
      }
    }
    out += piece * out_bytes;
  });
}

int64_t HostView::volume() const {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return count;
}

bool HostView::is_dense() const {
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

Extents dense_strides(llvm::ArrayRef<int64_t> dims) {
  Extents strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

HostView broadcast_view(const HostView& view, llvm::ArrayRef<int64_t> dims) {
  HostView result{view.storage, view.data, Extents(dims), Extents(dims.size(), 0), view.owner};
  const size_t lead = dims.size() - view.dims.size();
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (view.dims[i] != 1) result.strides[lead + i] = view.strides[i];
  return result;
}

HostView transpose_view(const HostView& view, llvm::ArrayRef<int64_t> axes) {
  HostView result{view.storage, view.data, {}, {}, view.owner};
  for (int64_t axis : axes) {
    result.dims.push_back(view.dims[axis]);
    result.strides.push_back(view.strides[axis]);
  }
  return result;
}

#define SINTER_INSTANTIATE(T)                                                  \
  template void load_run<T>(Storage, const std::byte*, int64_t, int64_t, T*);  \
  template void store_run<T>(const T*, int64_t, Storage, std::byte*, int64_t); \
  template const T* HostReader::next<T>(int64_t, T*);                          \
  template bool HostReader::in_place<T>() const;
SINTER_INSTANTIATE(float)
SINTER_INSTANTIATE(double)
SINTER_INSTANTIATE(int32_t)
SINTER_INSTANTIATE(int64_t)
SINTER_INSTANTIATE(uint8_t)

}  // namespace sinter
