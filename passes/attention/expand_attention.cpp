// Attention that no kernel family takes (choose_kernels) becomes two batched products and one row
// kernel between them:
//
//   %attn = attention %q, %keys, %values, %first, %slot {heads = 8, kv_heads = 2, scale = s}
//   =>
//   %attn.scores = einsum %q, %keys     "nkgd,tkd->kgnt" : f32
//   %attn.probs  = attention_softmax %attn.scores, %first, %slot
//   %attn        = einsum %attn.probs, %values "kgnt,tkd->nkgd"
//
// A dropout makes 0 of probabilities by ops of integers (ir/attention_dropout.h).
//
// An attention stays whose scores would be no valid value: more than 8 axes, or more than 2^48
// bytes where the symbols are largest. So does one with a dropout whose leading axes, but the
// first, are symbols: they number the heads.
#include "ir/attention_dropout.h"
#include "ir/attention_operands.h"
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

  /// The scores are a valid value (V7), and the heads that a dropout counts have numbers.
  bool can_be_composed() const {
    const DimsRef leading = DimsRef(type(0).dims).take_front(batch_);
    if (op_.attrs.has(AttrName::dropout) && batch_ > 1 &&
        !llvm::all_of(leading.drop_front(), [](Dim dim) { return dim.is_constant(); }))
      return false;
    Dims scores(leading);
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
    if (has_mask(op_)) operands.push_back(mask());
    const bool drops = op_.attrs.has(AttrName::dropout);
    Attributes attrs;
    attrs.set(AttrName::dtype, drops ? DType::f32 : type(0).dtype);
    for (AttrName name : {AttrName::scale, AttrName::softcap, AttrName::window, AttrName::sink,
                          AttrName::any_range, AttrName::empty_zero})
      if (const AttrValue* value = op_.attrs.find(name)) attrs.set(name, *value);
    const ValueId probabilities =
        b_.op(OpKind::attention_softmax, operands, attrs, op_.name + ".probs");
    return drops ? dropped(probabilities) : probabilities;
  }

  /// The probabilities `all`, f32, times the dropout's scale, or times 0 where it leaves one out: a
  /// row of NaN stays one.
  ValueId dropped(ValueId all) {
    const int threshold = dropout_threshold(op_.attrs.get<double>(AttrName::dropout));
    const size_t rank = b_.type(all).rank();
    const ValueId head = head_of_all_sequences(all);
    const ValueId of_head = mixed(op_.operands.back(), head);
    const ValueId row = mixed(of_head, places(all, rank - 2));
    const ValueId key = places(all, rank - 1);
    const ValueId bits = bits_of_key(row, key);
    const ValueId keeps = b_.less_equal(number(threshold), bits);
    const ValueId scale = b_.constant(dropout_scale(threshold), DType::f32);
    const ValueId zero = b_.constant(0, DType::f32);
    const ValueId factor = b_.op(OpKind::where, {keeps, scale, zero});
    return b_.cast(b_.mul(all, factor), type(0).dtype, op_.name + ".kept");
  }
  ValueId head_of_all_sequences(ValueId scores) {
    const Dims dims = b_.type(scores).dims;
    ValueId head = places(scores, 0);
    for (size_t axis = 1; axis + 2 < dims.size(); ++axis) {
      head = b_.mul(head, number(dims[axis].constant()));
      head = b_.add(head, places(scores, axis));
    }
    return head;
  }
  /// The 16 bits of each key, of dropout_word.
  ValueId bits_of_key(ValueId row, ValueId key) {
    const ValueId sixteenth = b_.shift_right(key, number(4));
    const ValueId first = b_.mul(sixteenth, number(8));
    const ValueId word = mixed(row, b_.add(first, b_.bit_and(key, number(7))));
    const ValueId eighth = b_.shift_right(key, number(3));
    const ValueId is_second = b_.bit_and(eighth, number(1));
    const ValueId half = b_.shift_right(word, b_.mul(is_second, number(16)));
    return b_.bit_and(half, number(0xffff));
  }
  /// dropout_mix.
  ValueId mixed(ValueId a, ValueId b) {
    ValueId x = b_.bit_xor(a, b_.mul(b, number(DropoutMix::step)));
    x = with_upper_bits(x, 16);
    x = b_.mul(x, number(DropoutMix::first));
    x = with_upper_bits(x, 15);
    x = b_.mul(x, number(DropoutMix::second));
    return with_upper_bits(x, 16);
  }
  /// x ^ x >> places, of numbers without a sign.
  ValueId with_upper_bits(ValueId x, int places) {
    const ValueId upper = b_.shift_right(x, number(places));
    return b_.bit_xor(x, b_.bit_and(upper, number((int64_t{1} << (32 - places)) - 1)));
  }
  /// The i32 with the low 32 bits of a number.
  ValueId number(int64_t bits) { return b_.constant(static_cast<int32_t>(bits), DType::i32); }
  /// The place along an axis of `like`, whose other axes are 1.
  ValueId places(ValueId like, size_t axis) {
    Dims dims(b_.type(like).rank(), Dim(1));
    dims[axis] = b_.type(like).dims[axis];
    return b_.iota(dims, static_cast<int64_t>(axis));
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
