// Values that are computed from attributes alone, and tensors of files.
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// The values, rounded once to the storage.
void store_constants(llvm::ArrayRef<Number> values, DType dtype, Storage storage, std::byte* out) {
  const int64_t bytes = whole_bytes(storage);
  for (size_t i = 0; i < values.size(); ++i, out += bytes) {
    if (storage == Storage::i32) {
      const int32_t value = values[i].to_i32();
      store_run(&value, 1, storage, out);
    } else if (storage == Storage::i64) {
      const int64_t value = values[i].to_i64();
      store_run(&value, 1, storage, out);
    } else if (storage == Storage::i1) {
      const uint8_t value = values[i].to_i1();
      store_run(&value, 1, storage, out);
    } else if (storage == Storage::f64) {
      const double value = values[i].to_double();
      store_run(&value, 1, storage, out);
    } else {
      const float value = values[i].to_float(dtype);
      store_run(&value, 1, storage, out);
    }
  }
}

}  // namespace

Result<HostView> evaluate_constant(const OpCall& call) {
  SINTER_LET(value, allocate({}, call.storage));
  store_constants({call.op.attrs.get<Number>(AttrName::value)}, call.op.type.dtype, call.storage,
                  value.out);
  return broadcast_view(value.view, call.dims);
}

Result<HostView> evaluate_literal(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  store_constants(call.op.attrs.get<std::vector<Number>>(AttrName::values), call.op.type.dtype,
                  call.storage, value.out);
  return value.view;
}

/// Counts 0, 1, .. along one axis, all others repeated.
Result<HostView> evaluate_iota(const OpCall& call) {
  const size_t axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  const int64_t count = call.dims[axis];
  if (count > int64_t{INT32_MAX} + 1)
    return call.error(fmt::format("counts to {}, beyond i32", count), "use a smaller extent");
  Extents dims(call.dims.size(), 1);
  dims[axis] = count;
  SINTER_LET(value, allocate(dims, Storage::i32));
  int32_t* out = reinterpret_cast<int32_t*>(value.out);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(i);
  return broadcast_view(value.view, call.dims);
}

Result<HostView> evaluate_file(const OpCall& call) {
  const std::string& name = call.op.attrs.get<std::string>(AttrName::tensor);
  if (call.options.source == nullptr)
    return call.error(fmt::format("no files to read tensor \"{}\" from", printable(name)),
                      "evaluate weights with a tensor source");
  const std::optional<TensorType> found = call.options.source->find(name);
  if (!found) return call.error(fmt::format("the model has no tensor \"{}\"", printable(name)));
  if (!reads_as(*found, call.op.type))
    return call.error(fmt::format("tensor \"{}\" is {}, expected {}", printable(name),
                                  to_string(*found, {}), to_string(call.op.type, {})));
  const Storage storage = storage_of(call.op.type.dtype);
  SINTER_LET(value, allocate(call.dims, storage));
  const size_t bytes = static_cast<size_t>(storage_bytes(call.op.type.dtype, value.view.volume()));
  SINTER_TRY(call.options.source->read(name, std::span<std::byte>(value.out, bytes)));
  return value.view;
}

}  // namespace sinter
