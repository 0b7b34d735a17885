// Attention that no kernel family takes (choose_kernels) becomes two batched products and one row
// kernel between them:
//
//   %attn = attention %q, %keys, %values, %first, %slot {heads = 8, kv_heads = 2, scale = s}
//   =>
//   %attn.scores = einsum %q, %keys     "nkgd,tkd->kgnt" : f32
//   %attn.probs  = attention_softmax %attn.scores, %first, %slot
//   %attn        = einsum %attn.probs, %values "kgnt,tkd->nkgd"
//
// An attention stays whose scores would be no valid value: more than 8 axes, or more than 2^48
// bytes where the symbols are largest.
#include "ir/attention_heads.h"
#include "ir/verify_graph.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// Appends the ops that replace one `attention`, whose operands are values of the builder's graph.
class ComposedAttention {
 public:
  ComposedAttention(Builder& builder, const Op& op)
      : b_(builder),
        op_(op),
        heads_(attention_heads(op.attrs, type(1), type(2))),
        batch_(type(0).rank() - 2) {
    letters_ = std::string("abcefhij").substr(0, batch_);
  }

  /// The scores are a valid value (V7).
  bool can_be_composed() const {
    Dims scores(DimsRef(type(0).dims).take_front(batch_));
    scores.append(
        {Dim(heads_.kv_count), Dim(heads_.group()), type(0).dims[batch_], type(1).dims[batch_]});
    return check_type({DType::f32, scores}, [] { return "the scores"; }, b_.symbols(), {})
        .has_value();
  }
  /// The value that replaces the result.
  ValueId run() {
    const ValueId q = in_heads(0, {heads_.kv_count, heads_.group(), heads_.width}, ".q");
    const ValueId k = in_heads(1, {heads_.kv_count, heads_.width}, ".k");
    const ValueId v = in_heads(2, {heads_.kv_count, heads_.value_width}, ".v");
    const ValueId scores = b_.op(OpKind::einsum, {q, k},
                                 Attributes()
                                     .set(AttrName::spec, spec("{0}nkgd,{0}tkd->{0}kgnt"))
                                     .set(AttrName::dtype, DType::f32),
                                 op_.name + ".scores");
    const ValueId mixed =
        b_.op(OpKind::einsum, {probabilities(scores), v},
              Attributes().set(AttrName::spec, spec("{0}kgnt,{0}tkd->{0}nkgd")), op_.name);
    return b_.reshape(mixed, op_.type.dims, op_.name + ".rows");
  }

 private:
  const TensorType& type(size_t operand) const { return b_.type(op_.operands[operand]); }
  std::string spec(fmt::format_string<const std::string&> text) const {
    return fmt::format(text, letters_);
  }

  /// An operand whose last axis is cut into these.
  ValueId in_heads(size_t operand, llvm::ArrayRef<Dim> parts, std::string_view suffix) {
    Dims dims(DimsRef(type(operand).dims).drop_back());
    dims.append(parts.begin(), parts.end());
    return b_.reshape(op_.operands[operand], dims, op_.name + std::string(suffix));
  }

  ValueId probabilities(ValueId scores) {
    llvm::SmallVector<ValueId, 4> operands = {scores, per_token(3), per_token(4)};
    if (op_.operands.size() == 6) operands.push_back(mask());
    Attributes attrs;
    attrs.set(AttrName::dtype, type(0).dtype);
    for (AttrName name : {AttrName::scale, AttrName::softcap, AttrName::window, AttrName::sink,
                          AttrName::any_range, AttrName::empty_zero})
      if (const AttrValue* value = op_.attrs.find(name)) attrs.set(name, *value);
    return b_.op(OpKind::attention_softmax, operands, attrs, op_.name + ".probs");
  }

  /// A row number of each token as [..., 1, 1, N], for scores [..., kv_heads, group, N, R].
  ValueId per_token(size_t operand) {
    if (batch_ == 0) return op_.operands[operand];
    Dims dims(DimsRef(type(operand).dims).drop_back());
    dims.append({Dim(1), Dim(1), type(operand).dims.back()});
    return b_.reshape(op_.operands[operand], dims);
  }

  /// The mask [..., heads, N, R] with the heads grouped by key head.
  ValueId mask() {
    const DimsRef from = type(5).dims;
    Dims dims(from.drop_back(3));
    if (from[batch_].is(1))
      dims.append({Dim(1), Dim(1)});
    else
      dims.append({Dim(heads_.kv_count), Dim(heads_.group())});
    llvm::append_range(dims, from.take_back(2));
    return b_.reshape(op_.operands[5], dims, op_.name + ".mask");
  }

  Builder& b_;
  const Op& op_;
  AttentionHeads heads_;
  size_t batch_;         // leading axes
  std::string letters_;  // of the leading axes
};

class ExpandedAttention : RewriteRule {
 public:
  using RewriteRule::RewriteRule;

  std::optional<ValueId> replaced(ValueId, const Op& op) {
    if (!is_without_order(op, OpKind::attention)) return std::nullopt;
    ComposedAttention composed(builder_, op);
    return composed.can_be_composed() ? std::optional(composed.run()) : std::nullopt;
  }
};

}  // namespace

bool expand_attention(Module& module) {
  return replace_ops<ExpandedAttention>(module, OpKind::attention);
}

}  // namespace sinter
