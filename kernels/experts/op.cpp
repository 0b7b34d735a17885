// expert_linear. Constraints:
//   C39  expert_linear: x [N, K] or [N, k, K] and w [E, M, K] of one float type, all but N
//        constant, 1 .. 2^30; experts i32 [N, k]
//   C41  expert_linear: `codes` names a format and `size` is K, both or none; with them w is i32
//        [E, M, words of a packed row]
#include "ir/infer_codes.h"

namespace sinter {
namespace {

/// The matrices by their elements, of the type of x.
Result<TensorType> expert_matrices(const Inference& op) {
  TensorType w = op.operands[1];
  const bool has_codes = op.attrs.has(AttrName::codes);
  if (has_codes != op.attrs.has(AttrName::size))
    return op.reject(41, "needs both of `codes` and `size`, or none");
  if (!has_codes) return w;
  SINTER_LET(packed, infer_packed_codes(op, 41));
  const int64_t words = row_words(packed.format, packed.length);
  if (w.dtype != DType::i32 || w.rank() != 3 || !w.dims[2].is(words))
    return op.reject(41,
                     fmt::format("packed matrices {}, must be i32[E, M, {}]", op.show(w), words));
  w.dtype = op.operands[0].dtype;
  w.dims[2] = packed.length;
  return w;
}

}  // namespace

Result<TensorType> infer_expert_linear(const Inference& op) {
  SINTER_LET(w, expert_matrices(op));
  const TensorType &x = op.operands[0], &experts = op.operands[2];
  // A kernel counts in 32 bits, and a lane begins a step behind the last element.
  constexpr int64_t kMaxExtent = int64_t{1} << 30;
  const auto is_size = [](Dim dim) {
    return dim.is_constant() && !dim.is(0) && dim.constant() <= kMaxExtent;
  };
  bool fits = is_float(x.dtype) && w.dtype == x.dtype && w.rank() == 3 &&
              llvm::all_of(w.dims, is_size) && experts.dtype == DType::i32 && experts.rank() == 2 &&
              is_size(experts.dims[1]);
  if (fits) {
    Dims rows = x.dims;
    if (x.rank() == 2) rows.insert(rows.begin() + 1, experts.dims[1]);
    fits = rows == Dims{experts.dims[0], experts.dims[1], w.dims[2]};
  }
  if (!fits)
    return op.reject(39, fmt::format("needs x [N, K] or [N, k, K] and w [E, M, K] of one float "
                                     "type, all but N constant, 1 .. 2^30, and experts i32[N, k], "
                                     "got {}, {} and {}",
                                     op.show(x), op.show(w), op.show(experts)));
  return TensorType{x.dtype, {experts.dims[0], experts.dims[1], w.dims[1]}};
}

}  // namespace sinter
