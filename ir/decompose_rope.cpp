// Rotary positions.
#include "ir/decomposition.h"

namespace sinter {
namespace {

ValueId concat(Decomposition& d, llvm::ArrayRef<ValueId> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return d.b.op(OpKind::concat, parts, Attributes().set(AttrName::axis, axis));
}

}  // namespace

/// In the element type, a rounding per primitive. The pairs stand along `axis` of x, once as the
/// two halves of axis 2, once as an inner axis 3.
ValueId decompose_rope(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.operands[0];
  const Dims dims = d.type(x).dims;
  const int64_t width = dims[2].constant();
  const int64_t rotary = d.attrs.get<int64_t>(AttrName::rotary);
  const bool interleaved = d.attrs.get<std::string>(AttrName::pairing) == "interleaved";
  const int64_t axis = interleaved ? 3 : 2, extent = interleaved ? 1 : rotary / 2;

  ValueId pairs = rotary == width ? x : b.slice(x, 2, 0, rotary);
  Dims angles = {dims[0], 1, rotary / 2};
  if (interleaved) {
    pairs = b.reshape(pairs, {dims[0], dims[1], rotary / 2, 2});
    angles.push_back(1);
  }
  const ValueId cos = b.reshape(d.operands[1], angles), sin = b.reshape(d.operands[2], angles);
  const ValueId x1 = b.slice(pairs, axis, 0, extent), x2 = b.slice(pairs, axis, extent, extent);
  const ValueId x1_cos = b.mul(x1, cos), x2_sin = b.mul(x2, sin);
  const ValueId y1 = b.sub(x1_cos, x2_sin);
  const ValueId x2_cos = b.mul(x2, cos), x1_sin = b.mul(x1, sin);
  const ValueId y2 = b.add(x2_cos, x1_sin);
  llvm::SmallVector<ValueId, 3> parts = {y1, y2};
  if (interleaved) parts = {b.reshape(concat(d, parts, 3), {dims[0], dims[1], rotary})};
  if (rotary != width) parts.push_back(b.slice(x, 2, rotary, width - rotary));
  return d.finish(concat(d, parts, 2));
}

}  // namespace sinter
