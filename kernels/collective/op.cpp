// all_reduce. Constraint:
//   C43  all_reduce: elements of a float type or i32; `group` has a name
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_all_reduce(const Inference& op) {
  const TensorType& x = op.operands[0];
  if (!is_float(x.dtype) && x.dtype != DType::i32)
    return op.reject(43, fmt::format("adds elements of a float type or i32, got {}", op.show(x)));
  if (op.attrs.get<std::string>(AttrName::group).empty())
    return op.reject(43, "group is empty; name the ranks, for example group = \"tp\"");
  return x;
}

}  // namespace sinter
