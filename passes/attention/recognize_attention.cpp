// Attention that is written in primitives becomes the op:
//
//   %s = einsum %q, %k {spec = "bhnd,bhtd->bhnt", dtype = f32}     scores
//   %t = mul %s, %scale    %u = add %t, %mask    %p = softmax %u
//   %c = cast %p           %y = einsum %c, %v {spec = "bhnt,bhtd->bhnd"}
//   =>
//   %y = attention %q, %k, %v, all rows, %mask {heads = ..., scale = ...}
//
// Between the products there may be, in this order and through reshapes: a multiplication or
// division by a constant, a soft cap, masks that are added or choose -inf. The scores are float32
// from the product to the softmax, so that only the probabilities are rounded: `attention` may sum
// in an order of its own and rounds the weights instead. With `relaxed`, roundings of the scores to
// 16 bits are left out too. Behind the softmax `where(p is NaN, 0, p)` may give rows without a key
// zeros, which the op does with `empty_zero`; a row whose scores are NaN keeps NaN. No other op may
// read a value between the products.
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ir/match.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The number of a constant, read through views.
auto scalar(float& bound) { return match::behind_views(match::number(bound)); }

/// The value with two axes exchanged: the one that `behind` others follow, and the next.
ValueId with_exchanged_axes(Builder& b, ValueId x, size_t behind, std::string name = {}) {
  std::vector<int64_t> axes(b.type(x).rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1 - behind], axes[axes.size() - behind]);
  return b.transpose(x, axes, std::move(name));
}

/// The einsum is a product of matrices, repeated along leading axes that both operands have first:
/// its letters "...ab,...bc->...ac" with the last two of an operand in either order.
struct MatrixProduct {
  ValueId a, b;             // operands
  bool a_turned, b_turned;  // the summed axis is a's last but one, is b's last
};
std::optional<MatrixProduct> matrix_product(const Graph& graph, ValueId id) {
  const Op& op = graph[id];
  const size_t rank = op.type.rank();
  if (op.kind != OpKind::einsum || rank < 2 || graph[op.operands[0]].type.rank() != rank ||
      graph[op.operands[1]].type.rank() != rank)
    return std::nullopt;
  std::string spec = op.attrs.get<std::string>(AttrName::spec);
  const size_t a = rank - 2, b = 2 * rank - 1, result = 3 * rank + 1;  // the last two letters
  const MatrixProduct product{op.operands[0], op.operands[1], spec[a + 1] == spec[result],
                              spec[b] == spec[result + 1]};
  if (product.a_turned) std::swap(spec[a], spec[a + 1]);
  if (product.b_turned) std::swap(spec[b], spec[b + 1]);
  const std::string straight = fmt::format("{0}{1}{2},{0}{2}{3}->{0}{1}{3}", spec.substr(0, a),
                                           spec[a], spec[a + 1], spec[b + 1]);
  return spec == straight ? std::optional(product) : std::nullopt;
}

/// Reads the ops between the products of an attention, from its last product backwards.
class AttentionInPrimitives {
 public:
  AttentionInPrimitives(const Graph& graph, GraphRewriter& rewriter, Readers readers)
      : graph_(graph), rewriter_(rewriter), readers_(readers) {}

  /// False: the product `id` is not the last of an attention.
  bool read(ValueId id) {
    const auto last = matrix_product(graph_, id);
    if (!last || last->a_turned) return false;
    values_ = *last;
    dtype_ = graph_[last->b].type.dtype;
    if (graph_[id].type.dtype != dtype_) return false;
    ValueId at = last->a;
    return read_probabilities(at) && read_scores(at) && read_product(at) && can_be_read_at(id);
  }
  /// A call may have tokens and no key: the products give zeros then, the op NaN.
  bool may_have_no_key(llvm::ArrayRef<Symbol> symbols) const {
    const Dim keys = rows_.back();
    return !keys.is_constant() && keys != rows_[rows_.size() - 2] &&
           symbols[keys.symbol().index].low == 0;
  }
  /// Scores are rounded to 16 bits on their way from the product to the weights.
  bool rounds_scores() const { return rounds_scores_; }

  /// Appends the op, which takes the place of `last`.
  ValueId build(Builder& b, const Op& last) const {
    const Dim tokens = rows_[rows_.size() - 2], keys = rows_.back();
    const ValueId q = in_rows(b, rewriter_[scores_.a], scores_.a_turned, tokens);
    const ValueId k = in_rows(b, rewriter_[scores_.b], !scores_.b_turned, keys);
    const ValueId v = in_rows(b, rewriter_[values_.b], values_.b_turned, keys);
    const Dims per_token = with_batch({tokens});
    llvm::SmallVector<ValueId, 6> operands = {
        q, k, v, b.constant(0, DType::i32, per_token),
        b.constant(std::numeric_limits<int32_t>::max(), DType::i32, per_token)};
    if (const ValueId mask = build_mask(b); mask.valid()) operands.push_back(mask);
    Attributes attrs;
    attrs.set(AttrName::heads, heads()).set(AttrName::kv_heads, heads());
    attrs.set(AttrName::scale, factor_).set(AttrName::any_range, int64_t{1});
    if (softcap_) attrs.set(AttrName::softcap, *softcap_);
    if (empty_zero_) attrs.set(AttrName::empty_zero, int64_t{1});
    const ValueId rows = b.op(OpKind::attention, operands, attrs, last.name + ".attention");
    const Dim count(heads()), width = last.type.dims.back();
    const bool is_last = with_batch({count, tokens, width}) == last.type.dims;
    const ValueId apart = b.reshape(rows, with_batch({tokens, count, width}));
    const ValueId turned = with_exchanged_axes(b, apart, 2, is_last ? last.name : "");
    return b.reshape(turned, last.type.dims, last.name);
  }

 private:
  /// The value's only reader is the op after it.
  bool has_one_reader(ValueId id) const { return readers_[id.index].size() == 1; }

  /// Passes casts between float types and reshapes that keep the last two axes. False: another op
  /// reads one of them.
  bool skip(ValueId& at, bool& rounds) {
    for (;; at = graph_[at].operands[0]) {
      const Op& op = graph_[at];
      if (op.kind == OpKind::reshape) {
        const DimsRef from = graph_[op.operands[0]].type.dims, to = op.type.dims;
        if (from.size() < 2 || to.size() < 2 || from.take_back(2) != to.take_back(2)) return true;
      } else if (op.kind == OpKind::cast) {
        const DType from = graph_[op.operands[0]].type.dtype;
        if (!is_float(from)) return true;
        rounds = rounds || dtype_info(op.type.dtype).bits < dtype_info(from).bits;
      } else {
        return true;
      }
      if (!has_one_reader(at)) return false;
    }
  }

  bool read_probabilities(ValueId& at) {
    bool rounds_weights = false;  // as the attention does
    if (!skip(at, rounds_weights)) return false;
    empty_zero_ = read_empty_rows(at);
    const Op& op = graph_[at];
    if (op.kind != OpKind::softmax || !(empty_zero_ || has_one_reader(at))) return false;
    rounds_scores_ = op.type.dtype != DType::f32;
    if (op.type.rank() < 2 || volume(op.type.dims).is(0)) return false;
    rows_ = op.type.dims;
    at = op.operands[0];
    return true;
  }

  /// where(p is NaN, 0, p), which nothing else reads: rows without a key get zeros. `at` becomes p.
  bool read_empty_rows(ValueId& at) {
    ValueId p, a, b;
    const auto is_number = match::equal(match::value(a), match::value(b));
    const auto zero = match::behind_views(match::equal_to(0));
    if (!has_one_reader(at) ||
        !match::where(match::logical_not(is_number), zero, match::value(p))(graph_, at) || a != p ||
        b != p)
      return false;
    const ValueId choice = at;
    if (!llvm::all_of(readers_[p.index], [&](ValueId reader) {
          return reader == choice || graph_[reader].kind == OpKind::equal;
        }))
      return false;
    at = p;
    return true;
  }

  /// Masks, the soft cap and the scale; `at` becomes the product.
  bool read_scores(ValueId& at) {
    while (skip(at, rounds_scores_) && has_one_reader(at) && !matrix_product(graph_, at)) {
      const DimsRef dims = graph_[at].type.dims;
      if (dims != DimsRef(rows_) && volume(dims) != volume(rows_)) return false;
      const bool may_mask = factor_ == 1 && !softcap_ && dims == DimsRef(rows_);
      if (!(may_mask && (read_choice(at) || read_sum(at))) && !read_cap(at) && !read_scale(at))
        return false;
    }
    return std::isfinite(factor_) && factor_ != 0 && masks_fit();
  }
  /// One mask, or several of truth values, with no more axes than the scores.
  bool masks_fit() const {
    return llvm::all_of(masks_, [&](const Mask& mask) {
      const TensorType& type = graph_[mask.value].type;
      return type.rank() <= rows_.size() && (masks_.size() <= 1 || type.dtype == DType::i1);
    });
  }

  /// where(mask, scores, -inf), or the reverse.
  bool read_choice(ValueId& at) {
    ValueId mask, scores;
    const auto hidden = match::behind_views(match::equal_to(-kInfinity));
    const bool shows = match::where(match::value(mask), match::value(scores), hidden)(graph_, at);
    if (!shows && !match::where(match::value(mask), hidden, match::value(scores))(graph_, at))
      return false;
    masks_.push_back({mask, !shows});
    at = scores;
    return true;
  }
  /// scores + mask: the scores are what leads to a product.
  bool read_sum(ValueId& at) {
    ValueId mask, scores;
    const auto of_product = [&](const Graph&, ValueId id) { return leads_to_product(scores = id); };
    if (!match::in_any_order(OpKind::add, of_product, match::value(mask))(graph_, at) ||
        graph_[scores].type.dims != rows_)
      return false;
    masks_.push_back({mask, false});
    at = scores;
    return true;
  }
  bool leads_to_product(ValueId id) const {
    for (int depth = 0; depth < 16; ++depth) {
      float scale = 0;
      const Op& op = graph_[id];
      if (op.kind == OpKind::einsum) return matrix_product(graph_, id).has_value();
      if (!llvm::is_contained({OpKind::cast, OpKind::reshape, OpKind::mul, OpKind::div,
                               OpKind::tanh, OpKind::where, OpKind::add},
                              op.kind))
        return false;
      id = op.operands[op.kind == OpKind::where || scalar(scale)(graph_, op.operands[0]) ? 1 : 0];
    }
    return false;
  }

  /// The one factor that the attention has: two would round twice.
  bool read_scale(ValueId& at) {
    float by = 0;
    ValueId scores;
    const bool divides = match::div(match::value(scores), scalar(by))(graph_, at);
    if (factor_ != 1 || !(divides || match::mul(match::value(scores), scalar(by))(graph_, at) ||
                          match::mul(scalar(by), match::value(scores))(graph_, at)))
      return false;
    factor_ = divides ? 1 / static_cast<double>(by) : by;
    at = scores;
    return true;
  }

  /// A value with one reader that matches behind casts and reshapes.
  template <typename Pattern>
  auto alone(Pattern pattern) {
    return [this, pattern](const Graph& graph, ValueId id) {
      return skip(id, rounds_scores_) && has_one_reader(id) && pattern(graph, id);
    };
  }
  /// tanh(scores / cap) * cap.
  bool read_cap(ValueId& at) {
    float cap = 0, divisor = 0;
    ValueId scores;
    const auto quotient = match::div(match::value(scores), scalar(divisor));
    if (softcap_ || factor_ != 1 ||
        !match::mul(alone(match::tanh(alone(quotient))), scalar(cap))(graph_, at) || !(cap > 0) ||
        divisor != cap)
      return false;
    softcap_ = cap;
    at = scores;
    return true;
  }

  /// The product of queries and keys.
  bool read_product(ValueId at) {
    const auto product = matrix_product(graph_, at);
    if (!product || !has_one_reader(at)) return false;
    rounds_scores_ = rounds_scores_ || graph_[at].type.dtype != DType::f32;
    scores_ = *product;
    for (ValueId* operand : {&scores_.a, &scores_.b}) {
      // Widened queries and keys have the bits of their own type.
      ValueId narrow;
      if (graph_[*operand].type.dtype == DType::f32 &&
          match::cast(match::value(narrow))(graph_, *operand) &&
          graph_[narrow].type.dtype == dtype_)
        *operand = narrow;
      if (graph_[*operand].type.dtype != dtype_) return false;
    }
    const DimsRef dims = graph_[at].type.dims;
    // The scores of the op have one axis more than products without an axis of heads.
    return rows_.size() + (has_heads() ? 1 : 2) <= kMaxAxes &&
           dims.take_back(2) == DimsRef(rows_).take_back(2) && volume(dims) == volume(rows_) &&
           has_width(scores_.a, scores_.a_turned) && has_width(scores_.b, !scores_.b_turned) &&
           has_width(values_.b, values_.b_turned);
  }
  /// The width of a head is a number.
  bool has_width(ValueId matrix, bool turned) const {
    const DimsRef dims = graph_[matrix].type.dims;
    const Dim width = turned ? dims[dims.size() - 2] : dims.back();
    return width.is_constant() && width.constant() > 0;
  }

  /// All operands are read where the last product stands.
  bool can_be_read_at(ValueId last) const {
    llvm::SmallVector<ValueId, 4> operands{scores_.a, scores_.b};
    for (const Mask& mask : masks_) operands.push_back(mask.value);
    return llvm::all_of(operands, [&](ValueId id) { return rewriter_.may_read(id, last); });
  }

  // ---- the op

  /// The axis before the last two becomes the axis of heads.
  bool has_heads() const { return rows_.size() >= 3 && rows_[rows_.size() - 3].is_constant(); }

  int64_t heads() const { return has_heads() ? rows_[rows_.size() - 3].constant() : 1; }
  Dims with_batch(std::initializer_list<Dim> more) const {
    Dims dims(DimsRef(rows_).drop_back(has_heads() ? 3 : 2));
    dims.append(more);
    return dims;
  }

  /// [..., n, width] of a matrix [.., n, width], or turned [.., width, n], as rows
  /// [batch..., n, heads * width].
  ValueId in_rows(Builder& b, ValueId x, bool turned, Dim n) const {
    if (turned) x = with_exchanged_axes(b, x, 1);
    const int64_t width = b.type(x).dims.back().constant();
    const ValueId apart = b.reshape(x, with_batch({Dim(heads()), n, Dim(width)}));
    return b.reshape(with_exchanged_axes(b, apart, 2), with_batch({n, Dim(heads() * width)}));
  }

  /// The masks as one [batch..., heads, N, R]; invalid: there is none.
  ValueId build_mask(Builder& b) const {
    ValueId all;
    for (const Mask& mask : masks_) {
      ValueId own = rewriter_[mask.value];
      if (mask.hides) own = b.logical_not(own);
      Dims dims = b.type(own).dims;
      dims.insert(dims.begin(), rows_.size() - dims.size(), Dim(1));
      if (!has_heads()) dims.insert(dims.end() - 2, Dim(1));
      own = b.reshape(own, dims);
      all = all.valid() ? b.logical_and(all, own) : own;
    }
    return all;
  }

  struct Mask {
    ValueId value;
    bool hides;  // where it is true
  };

  const Graph& graph_;
  GraphRewriter& rewriter_;
  Readers readers_;
  bool rounds_scores_ = false;
  MatrixProduct scores_, values_;
  DType dtype_ = DType::f32;
  Dims rows_;  // of the softmax
  std::vector<Mask> masks_;
  double factor_ = 1;
  std::optional<double> softcap_;
  bool empty_zero_ = false;
};

class RecognizedAttentions : RewriteRule {
 public:
  RecognizedAttentions(const Graph& from, Builder& builder, GraphRewriter& rewriter, bool relaxed)
      : RewriteRule(from, builder, rewriter), readers_(readers_of(from)), relaxed_(relaxed) {}

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    AttentionInPrimitives attention(from_, rewriter_, readers_);
    if (!attention.read(id) || (attention.rounds_scores() && !relaxed_) ||
        attention.may_have_no_key(builder_.symbols()))
      return std::nullopt;
    return attention.build(builder_, op);
  }

 private:
  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  bool relaxed_;
};

}  // namespace

std::vector<ValueId> rounded_attentions(const Graph& graph) {
  std::vector<ValueId> found;
  Graph none;
  GraphRewriter rewriter(graph, none);
  const auto readers = readers_of(graph);
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (AttentionInPrimitives attention(graph, rewriter, readers);
        attention.read({i}) && attention.rounds_scores())
      found.push_back({i});
  return found;
}

bool recognize_attention(Module& module, const PassOptions& options) {
  const bool relaxed = options.recipe.attention == Recipe::Attention::relaxed;
  return replace_ops<RecognizedAttentions>(module, OpKind::softmax, relaxed);
}

}  // namespace sinter
