// Other ways of reading the operand.
#include "runtime/evaluate/ops.h"

namespace sinter {

Result<HostView> evaluate_reshape(const OpCall& call) {
  HostView view = call.operands[0];
  if (!view.is_dense()) {
    SINTER_LET(dense, copy_dense(view, view.storage));
    view = dense;
  }
  view.dims = call.dims;
  view.strides = dense_strides(call.dims);
  return view;
}

Result<HostView> evaluate_transpose(const OpCall& call) {
  return transpose_view(call.operands[0], call.op.attrs.get<std::vector<int64_t>>(AttrName::axes));
}

Result<HostView> evaluate_slice(const OpCall& call) {
  HostView view = call.operands[0];
  const size_t axis = static_cast<size_t>(call.op.attrs.get<int64_t>(AttrName::axis));
  const int64_t begin = call.op.attrs.get<int64_t>(AttrName::begin), size = call.dims[axis];
  if (size > view.dims[axis] || begin > view.dims[axis] - size)
    return call.error(
        fmt::format("elements {} to {} of an extent of {}", begin, begin + size, view.dims[axis]),
        "give symbols values that fit together");
  if (view.volume() > 0) view.data += begin * view.strides[axis] * whole_bytes(view.storage);
  view.dims[axis] = size;
  return view;
}

Result<HostView> evaluate_broadcast(const OpCall& call) {
  return broadcast_view(call.operands[0], call.dims);
}

}  // namespace sinter
