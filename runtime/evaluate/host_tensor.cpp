#include "runtime/evaluate/host_tensor.h"

#include <new>

#include "ir/allocation_may_fail.h"

namespace sinter {

int64_t HostTensor::volume() const {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return count;
}

Result<HostTensor> make_tensor(DType dtype, std::vector<int64_t> dims) {
  HostTensor tensor{dtype, std::move(dims), {}};
  int64_t elements = 1;
  bool overflow = false, empty = false;
  for (int64_t extent : tensor.dims) {
    SINTER_CHECK(extent >= 0, "extent {}", extent);
    empty |= extent == 0;
    if (extent != 0) overflow |= __builtin_mul_overflow(elements, extent, &elements);
  }
  if (empty) return tensor;
  const auto refuse = [&] {
    const TensorType type{dtype, Dims(tensor.dims.begin(), tensor.dims.end())};
    return fail(fmt::format("no memory for a tensor {}", to_string(type, {})), {},
                "use smaller sizes", ExitCode::out_of_memory);
  };
  if (overflow || elements > max_elements(dtype)) return refuse();
  const AllocationMayFail reported;
  try {
    tensor.bytes.resize(static_cast<size_t>(storage_bytes(dtype, elements)));
  } catch (const std::exception&) {  // bad_alloc or length_error
    return refuse();
  }
  return tensor;
}

}  // namespace sinter
