// Generators, views and data movement.
#include <algorithm>
#include <cmath>
#include <new>

#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// The nearest int32; 0 for NaN.
int32_t to_i32(double value) {
  return value != value ? 0
                        : static_cast<int32_t>(std::clamp(std::rint(value), -0x1p31, 0x1p31 - 1));
}

/// The values, rounded once to the storage.
void store_constants(llvm::ArrayRef<double> values, Storage storage, std::byte* out) {
  const int64_t bytes = size_bytes(storage);
  for (size_t i = 0; i < values.size(); ++i, out += bytes) {
    if (storage == Storage::i32) {
      const int32_t value = to_i32(values[i]);
      store_run(&value, 1, storage, out);
    } else if (storage == Storage::i1) {
      const uint8_t value = values[i] != 0;
      store_run(&value, 1, storage, out);
    } else {
      store_run(&values[i], 1, storage, out);
    }
  }
}

Result<HostView> constant(const OpCall& call) {
  SINTER_LET(value, allocate({}, call.storage));
  store_constants({call.op.attrs.get<double>(AttrName::value)}, call.storage, value.out);
  return broadcast_view(value.view, call.dims);
}

Result<HostView> literal(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  store_constants(call.op.attrs.get<std::vector<double>>(AttrName::values), call.storage,
                  value.out);
  return value.view;
}

/// Counts 0, 1, .. along one axis, all others repeated.
Result<HostView> iota(const OpCall& call) {
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

Result<HostView> file_tensor(const OpCall& call) {
  const std::string& name = call.op.attrs.get<std::string>(AttrName::tensor);
  if (call.options.source == nullptr)
    return call.error(fmt::format("no files to read tensor \"{}\" from", printable(name)),
                      "evaluate weights with a tensor source");
  const std::optional<TensorType> found = call.options.source->find(name);
  if (!found) return call.error(fmt::format("the model has no tensor \"{}\"", printable(name)));
  if (*found != call.op.type)
    return call.error(fmt::format("tensor \"{}\" is {}, expected {}", printable(name),
                                  to_string(*found, {}), to_string(call.op.type, {})));
  const Storage storage = storage_of(call.op.type.dtype);
  SINTER_LET(value, allocate(call.dims, storage));
  const size_t bytes = static_cast<size_t>(value.view.volume() * size_bytes(storage));
  SINTER_TRY(call.options.source->read(name, std::span<std::byte>(value.out, bytes)));
  return value.view;
}

Result<HostView> slice(const OpCall& call) {
  HostView view = call.operands[0];
  const size_t axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  const int64_t begin = call.op.attrs.get<int64_t>(AttrName::begin), size = call.dims[axis];
  if (size > view.dims[axis] || begin > view.dims[axis] - size)
    return call.error(
        fmt::format("elements {} to {} of an extent of {}", begin, begin + size, view.dims[axis]),
        "give symbols values that fit together");
  if (view.volume() > 0) view.data += begin * view.strides[axis] * size_bytes(view.storage);
  view.dims[axis] = size;
  return view;
}

Result<HostView> reshape(const OpCall& call) {
  HostView view = call.operands[0];
  if (!view.is_dense()) {
    SINTER_LET(dense, copy_dense(view, view.storage));
    view = dense;
  }
  view.dims = call.dims;
  view.strides = dense_strides(call.dims);
  return view;
}

/// Row `index` of a view.
HostView row_view(const HostView& view, int64_t index) {
  const int64_t offset = index * view.strides[0] * size_bytes(view.storage);
  return HostView{view.storage, view.data + offset, Extents(llvm::drop_begin(view.dims)),
                  Extents(llvm::drop_begin(view.strides)), nullptr};
}

/// Operand `operand` as indices of rows, each checked to be one of 0 .. rows-1.
Result<llvm::ArrayRef<int32_t>> row_indices(const OpCall& call, size_t operand, int64_t rows,
                                            std::string_view what, std::vector<int32_t>& scratch) {
  const HostView& view = call.operands[operand];
  const llvm::ArrayRef<int32_t> indices(dense_elements(view, scratch),
                                        static_cast<size_t>(view.volume()));
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= rows)
      return call.error(
          fmt::format("{} {} at position {} is not one of the {} rows", what, indices[i], i, rows),
          "check the inputs");
  return indices;
}

}  // namespace

Result<NewValue> allocate(llvm::ArrayRef<int64_t> dims, Storage storage) {
  int64_t bytes = size_bytes(storage);
  bool overflow = false;
  for (int64_t extent : dims)
    if (extent != 0) overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  if (llvm::is_contained(dims, 0)) bytes = 0;
  std::byte* memory = overflow ? nullptr : new (std::nothrow) std::byte[static_cast<size_t>(bytes)];
  if (memory == nullptr)
    return fail(fmt::format("no memory for a value of {} bytes", bytes), {}, "use smaller sizes");
  return NewValue{HostView{storage, memory, Extents(dims), dense_strides(dims),
                           std::shared_ptr<const std::byte[]>(memory)},
                  memory};
}

Result<HostView> copy_dense(const HostView& view, Storage storage) {
  SINTER_LET(value, allocate(view.dims, storage));
  HostReader(view).copy_next(view.volume(), storage, value.out);
  return value.view;
}

Result<HostView> eval_generator(const OpCall& call) {
  switch (call.op.kind) {
    case OpKind::constant:
      return constant(call);
    case OpKind::literal:
      return literal(call);
    case OpKind::iota:
      return iota(call);
    default:
      return file_tensor(call);
  }
}

Result<HostView> eval_view(const OpCall& call) {
  switch (call.op.kind) {
    case OpKind::reshape:
      return reshape(call);
    case OpKind::slice:
      return slice(call);
    case OpKind::broadcast:
      return broadcast_view(call.operands[0], call.dims);
    default:
      return transpose_view(call.operands[0],
                            call.op.attrs.get<std::vector<int64_t>>(AttrName::axes));
  }
}

Result<HostView> eval_concat(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() == 0) return value.view;
  const size_t axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= call.dims[i];
  struct Part {
    HostReader reader;
    int64_t count;  // elements per outer index
  };
  llvm::SmallVector<Part, 4> parts;
  for (const HostView& operand : call.operands)
    if (operand.volume() > 0) parts.push_back({HostReader(operand), operand.volume() / outer});
  std::byte* out = value.out;
  for (int64_t i = 0; i < outer; ++i)
    for (Part& part : parts) {
      part.reader.copy_next(part.count, call.storage, out);
      out += part.count * size_bytes(call.storage);
    }
  return value.view;
}

Result<HostView> eval_embedding(const OpCall& call) {
  const HostView& table = call.operands[0];
  std::vector<int32_t> scratch;
  SINTER_LET(ids, row_indices(call, 1, table.dims[0], "id", scratch));
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t width = table.dims[1];
  for (size_t i = 0; i < ids.size(); ++i)
    HostReader(row_view(table, ids[i]))
        .copy_next(width, call.storage,
                   value.out + static_cast<int64_t>(i) * width * size_bytes(call.storage));
  return value.view;
}

Result<HostView> eval_append(const OpCall& call) {
  std::vector<int32_t> scratch;
  SINTER_LET(slots, row_indices(call, 2, call.dims[0], "slot", scratch));
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader(call.operands[0]).copy_next(value.view.volume(), call.storage, value.out);
  HostReader rows(call.operands[1]);
  int64_t width = 1;
  for (int64_t extent : llvm::drop_begin(call.dims)) width *= extent;
  for (int32_t slot : slots)
    rows.copy_next(width, call.storage, value.out + slot * width * size_bytes(call.storage));
  return value.view;
}

}  // namespace sinter
