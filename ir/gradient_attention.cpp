// attention, by the ops of kernels/attention_backward.
#include "ir/attention_operands.h"
#include "ir/gradient.h"

namespace sinter {
namespace {

/// f32 [..., heads, N]: for each head of a token the sum of gradient times result (`delta`).
ValueId head_sums(OpGradient& d) {
  Builder& b = d.b;
  const int64_t heads = d.op.attrs.get<int64_t>(AttrName::heads);
  const int64_t rank = static_cast<int64_t>(d.op.type.rank());
  const ValueId products = d.times(d.value());
  Dims dims = d.op.type.dims;
  dims.back() = heads;
  Dims split = dims;
  split.push_back(d.op.type.dims.back().constant() / heads);
  const ValueId by_head = b.reshape(products, split);
  const ValueId sums = b.reshape(b.reduce(OpKind::reduce_sum, by_head, {rank}), dims);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  std::swap(axes[rank - 2], axes[rank - 1]);
  return b.transpose(sums, std::move(axes));
}

}  // namespace

/// The ops of these gradients take 16-bit types alone.
Result<ValueId> gradient_attention(OpGradient& d, size_t operand) {
  constexpr OpKind kGradients[] = {OpKind::attention_query_gradient, OpKind::attention_key_gradient,
                                   OpKind::attention_value_gradient};
  if (operand >= kMaskOperand) return d.has_none("it is asked for that of the mask or the seed");
  for (AttrName name : {AttrName::sink, AttrName::empty_zero})
    if (d.op.attrs.is_set(name)) return d.has_none(fmt::format("{} is set", to_string(name)));
  const auto attrs_of = [&](OpKind kind) {
    Attributes attrs;
    for (const auto& [name, value] : d.op.attrs)
      if (may_have(kind, {}, name)) attrs.set(name, value);
    return attrs;
  };
  const size_t count = std::min(operands_before_seed(d.op), kMaskOperand + 1);  // no mask_tiles
  llvm::SmallVector<ValueId, 10> operands(llvm::ArrayRef(d.op.operands).take_front(count));
  SINTER_LET(log_sum,
             d.try_op(OpKind::attention_log_sum, operands, attrs_of(OpKind::attention_log_sum)));
  const ValueId sums = head_sums(d);
  operands.insert(operands.begin() + kGradOperand, {d.gradient, log_sum, sums});
  if (d.op.attrs.has(AttrName::dropout)) operands.push_back(d.op.operands.back());
  return d.try_op(kGradients[operand], operands, attrs_of(kGradients[operand]));
}

}  // namespace sinter
