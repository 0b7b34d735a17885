// Memory for results.
#include "runtime/evaluate/ops.h"

#include <new>

namespace sinter {

Result<NewValue> allocate(llvm::ArrayRef<int64_t> dims, Storage storage) {
  int64_t bytes = whole_bytes(storage);
  bool overflow = false;
  for (int64_t extent : dims)
    if (extent != 0) overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  if (llvm::is_contained(dims, 0)) bytes = 0;
  std::byte* memory = overflow ? nullptr : new (std::nothrow) std::byte[static_cast<size_t>(bytes)];
  if (memory == nullptr)
    return fail(fmt::format("no memory for a value of {} bytes", bytes), {}, "use smaller sizes",
                ExitCode::out_of_memory);
  return NewValue{HostView{storage, memory, Extents(dims), dense_strides(dims),
                           std::shared_ptr<const std::byte[]>(memory)},
                  memory};
}

Result<HostView> copy_dense(const HostView& view, Storage storage) {
  SINTER_LET(value, allocate(view.dims, storage));
  HostReader(view).copy_next(view.volume(), storage, value.out);
  return value.view;
}

}  // namespace sinter
