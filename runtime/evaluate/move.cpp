// Data movement.
#include <algorithm>

#include "ir/row_numbers.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// Row `index` of a view.
HostView row_view(const HostView& view, int64_t index) {
  const int64_t offset = index * view.strides[0] * whole_bytes(view.storage);
  return HostView{view.storage, view.data + offset, Extents(llvm::drop_begin(view.dims)),
                  Extents(llvm::drop_begin(view.strides)), nullptr};
}

bool is_row(int32_t index, int64_t rows) { return index >= 0 && index < rows; }

/// Operand `operand` as indices of rows, each one of 0 .. rows-1 unless the op is checked.
Result<llvm::ArrayRef<int32_t>> row_indices(const OpCall& call, size_t operand, int64_t rows,
                                            std::string_view what, std::vector<int32_t>& scratch) {
  const HostView& view = call.operands[operand];
  const llvm::ArrayRef<int32_t> indices(dense_elements(view, scratch),
                                        static_cast<size_t>(view.volume()));
  for (size_t i = 0; i < indices.size(); ++i)
    if (!is_row(indices[i], rows) && !is_checked(call.op))
      return call.error(
          fmt::format("{} {} at position {} is not one of the {} rows", what, indices[i], i, rows),
          "check the inputs");
  return indices;
}

}  // namespace

/// Values are immutable here.
Result<HostView> evaluate_copy(const OpCall& call) { return call.operands[0]; }

Result<HostView> evaluate_concat(const OpCall& call) {
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
      out += part.count * whole_bytes(call.storage);
    }
  return value.view;
}

Result<HostView> evaluate_embedding(const OpCall& call) {
  HostView table = call.operands[0];
  const int64_t width = table.dims.back();
  if (table.dims.size() > 2) {
    SINTER_LET(rows, copy_dense(table, call.storage));
    table = std::move(rows);
    table.dims = {width > 0 ? table.volume() / width : 0, width};
    table.strides = {width, 1};
  }
  std::vector<int32_t> scratch;
  SINTER_LET(ids, row_indices(call, 1, table.dims[0], "id", scratch));
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t row_bytes = width * whole_bytes(call.storage);
  std::byte* out = value.out;
  for (int32_t id : ids) {
    if (is_row(id, table.dims[0]))
      HostReader(row_view(table, id)).copy_next(width, call.storage, out);
    else
      std::fill_n(out, row_bytes, std::byte{0});
    out += row_bytes;
  }
  return value.view;
}

Result<HostView> evaluate_gather(const OpCall& call) {
  const HostView& x = call.operands[0];
  const auto axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  std::vector<int32_t> scratch;
  SINTER_LET(index, row_indices(call, 1, x.dims[axis], "index", scratch));
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t bytes = whole_bytes(x.storage), out_bytes = whole_bytes(call.storage);
  Extents at(call.dims.size(), 0);
  std::byte* out = value.out;
  for (int32_t position : index) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place += (i == axis ? position : at[i]) * x.strides[i];
    if (is_row(position, x.dims[axis]))
      HostReader(HostView{x.storage, x.data + place * bytes, {}, {}, nullptr})
          .copy_next(1, call.storage, out);
    else
      std::fill_n(out, out_bytes, std::byte{0});
    out += out_bytes;
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < call.dims[i]) break;
      at[i] = 0;
    }
  }
  return value.view;
}

Result<HostView> evaluate_kv_append(const OpCall& call) {
  std::vector<int32_t> scratch;
  SINTER_LET(slots, row_indices(call, 2, call.dims[0], "slot", scratch));
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader(call.operands[0]).copy_next(value.view.volume(), call.storage, value.out);
  HostReader rows(call.operands[1]);
  int64_t width = 1;
  for (int64_t extent : llvm::drop_begin(call.dims)) width *= extent;
  const int64_t row_bytes = width * whole_bytes(call.storage);
  std::vector<std::byte> dropped(static_cast<size_t>(row_bytes));
  for (int32_t slot : slots)
    rows.copy_next(width, call.storage,
                   is_row(slot, call.dims[0]) ? value.out + slot * row_bytes : dropped.data());
  return value.view;
}

Result<HostView> evaluate_store(const OpCall& call) { return call.operands[1]; }

Result<HostView> evaluate_place(const OpCall& call) {
  const auto axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  const int64_t begin = call.op.attrs.get<int64_t>(AttrName::begin);
  SINTER_LET(value, allocate(call.dims, call.storage));
  const HostView& part = call.operands[0];
  const int64_t bytes = whole_bytes(call.storage);
  if (call.operands.size() > 1)
    HostReader(call.operands[1]).copy_next(value.view.volume(), call.storage, value.out);
  else
    std::fill_n(value.out, value.view.volume() * bytes, call.options.missing);
  if (part.volume() == 0) return value.view;
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= call.dims[i];
  for (size_t i = axis + 1; i < call.dims.size(); ++i) inner *= call.dims[i];
  HostReader reader(part);
  for (int64_t i = 0; i < outer; ++i)
    reader.copy_next(part.dims[axis] * inner, call.storage,
                     value.out + (i * call.dims[axis] + begin) * inner * bytes);
  return value.view;
}

}  // namespace sinter
