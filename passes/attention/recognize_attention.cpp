#include "passes/attention/recognize_attention.h"

#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <limits>

#include "ir/float_constant.h"
#include "ir/infer.h"
#include "ir/state_reads.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The number of a constant, read through views.
std::optional<double> scalar(const Graph& graph, ValueId id) {
  return float_constant(graph[root_of(graph, id)]);
}

/// The einsum is a product of matrices, repeated along leading axes that both operands have first:
/// its letters "...ab,...bc->...ac" with the last two of an operand in either order.
struct MatrixProduct {
  ValueId a, b;             // operands
  bool a_turned, b_turned;  // the summed axis is a's last but one, is b's last
};
std::optional<MatrixProduct> matrix_product(const Graph& graph, ValueId id) {
  const Op& op = graph[id];
  if (op.kind != OpKind::einsum) return std::nullopt;
  const EinsumSpec spec = *parse_einsum(op.attrs.get<std::string>(AttrName::spec));
  const int rank = static_cast<int>(op.type.rank()), batch = rank - 2;
  if (batch < 0 || static_cast<int>(graph[op.operands[0]].type.rank()) != rank ||
      static_cast<int>(graph[op.operands[1]].type.rank()) != rank)
    return std::nullopt;
  MatrixProduct product{op.operands[0], op.operands[1], false, false};
  for (const EinsumAxis& axis : spec.axes) {
    const bool summed = axis.result < 0;
    if (axis.a >= 0 && axis.b >= 0 && !summed) {
      if (axis.a != axis.b || axis.a != axis.result || axis.a >= batch) return std::nullopt;
    } else if (summed) {
      product.a_turned = axis.a == rank - 2;
      product.b_turned = axis.b == rank - 1;
    } else if (axis.result != (axis.a >= 0 ? rank - 2 : rank - 1)) {
      return std::nullopt;
    }
  }
  return product;
}

/// Reads the ops between the products of an attention, from its last product backwards.
class AttentionInPrimitives {
 public:
  AttentionInPrimitives(const Graph& graph, llvm::ArrayRef<llvm::SmallVector<ValueId, 2>> readers)
      : graph_(graph), readers_(readers) {}

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

  /// Appends the op; `moved` gives the value of the builder's graph for one of the old graph.
  ValueId build(Builder& b, const Op& last, llvm::function_ref<ValueId(ValueId)> moved) const {
    const DimsRef lead = DimsRef(rows_).drop_back(2);
    const Dim tokens = rows_[rows_.size() - 2], keys = rows_.back();
    const bool with_heads = has_heads();
    const DimsRef batch = with_heads ? lead.drop_back() : lead;
    const Dim heads = with_heads ? lead.back() : Dim(1);
    const ValueId q = in_rows(b, moved(scores_.a), scores_.a_turned, batch, heads, tokens);
    const ValueId k = in_rows(b, moved(scores_.b), !scores_.b_turned, batch, heads, keys);
    const ValueId v = in_rows(b, moved(values_.b), values_.b_turned, batch, heads, keys);
    Dims per_token(batch);
    per_token.push_back(tokens);
    llvm::SmallVector<ValueId, 6> operands = {
        q, k, v, b.constant(0, DType::i32, per_token),
        b.constant(std::numeric_limits<int32_t>::max(), DType::i32, per_token)};
    if (const ValueId mask = build_mask(b, moved); mask.valid()) operands.push_back(mask);
    Attributes attrs;
    attrs.set(AttrName::heads, heads.constant()).set(AttrName::kv_heads, heads.constant());
    attrs.set(AttrName::scale, factor_).set(AttrName::any_range, int64_t{1});
    if (softcap_) attrs.set(AttrName::softcap, *softcap_);
    const ValueId rows = b.op(OpKind::attention, operands, attrs, last.name + ".attention");
    return from_rows(b, rows, batch, heads, tokens, last);
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
    const Op& op = graph_[at];
    if (op.kind != OpKind::softmax || !has_one_reader(at)) return false;
    rounds_scores_ = op.type.dtype != DType::f32;
    if (op.type.rank() < 2 || volume(op.type.dims).is(0)) return false;
    rows_ = op.type.dims;
    at = op.operands[0];
    return true;
  }

  /// Masks, the soft cap and the scale; `at` becomes the product.
  bool read_scores(ValueId& at) {
    while (skip(at, rounds_scores_) && has_one_reader(at) && !matrix_product(graph_, at)) {
      const Op& op = graph_[at];
      if (op.type.dims != rows_ && volume(op.type.dims) != volume(rows_)) return false;
      const bool may_mask = factor_ == 1 && !softcap_ && op.type.dims == rows_;
      if (op.kind == OpKind::where && may_mask && read_choice(op, at)) continue;
      if (op.kind == OpKind::add && may_mask && read_sum(op, at)) continue;
      if (read_cap(op, at)) continue;
      if (op.kind == OpKind::mul || op.kind == OpKind::div) {
        const auto by = scalar(graph_, op.operands[1]);
        const auto also = op.kind == OpKind::mul ? scalar(graph_, op.operands[0]) : std::nullopt;
        if (!by && !also) return false;
        // One factor, as the attention has one: two would round twice.
        if (factor_ != 1) return false;
        factor_ = by ? (op.kind == OpKind::mul ? *by : 1 / *by) : *also;
        at = op.operands[by ? 0 : 1];
        continue;
      }
      return false;
    }
    return std::isfinite(factor_) && factor_ != 0 && masks_fit();
  }
  /// One mask, or several of truth values, with no more axes than the scores.
  bool masks_fit() const {
    const auto is_truth = [&](const Mask& mask) {
      return graph_[mask.value].type.dtype == DType::i1;
    };
    return (masks_.size() <= 1 || llvm::all_of(masks_, is_truth)) &&
           llvm::all_of(masks_, [&](const Mask& mask) {
             return graph_[mask.value].type.rank() <= rows_.size();
           });
  }

  /// where(mask, scores, -inf), or the reverse.
  bool read_choice(const Op& op, ValueId& at) {
    const auto hides = [&](ValueId id) { return scalar(graph_, id) == -kInfinity; };
    if (hides(op.operands[2])) {
      masks_.push_back({op.operands[0], false});
      at = op.operands[1];
      return true;
    }
    if (!hides(op.operands[1])) return false;
    masks_.push_back({op.operands[0], true});
    at = op.operands[2];
    return true;
  }
  /// scores + mask: the scores are what leads to a product.
  bool read_sum(const Op& op, ValueId& at) {
    for (size_t i : {0, 1}) {
      if (!leads_to_product(op.operands[i])) continue;
      if (graph_[op.operands[i]].type.dims != op.type.dims) return false;
      masks_.push_back({op.operands[1 - i], false});
      at = op.operands[i];
      return true;
    }
    return false;
  }
  bool leads_to_product(ValueId id) const {
    for (int depth = 0; depth < 16; ++depth) {
      const Op& op = graph_[id];
      if (op.kind == OpKind::einsum) return matrix_product(graph_, id).has_value();
      const bool passes = op.kind == OpKind::cast || op.kind == OpKind::reshape ||
                          op.kind == OpKind::mul || op.kind == OpKind::div ||
                          op.kind == OpKind::tanh || op.kind == OpKind::where ||
                          op.kind == OpKind::add;
      if (!passes) return false;
      const size_t scores = op.kind == OpKind::where ? 1 : scalar(graph_, op.operands[0]) ? 1 : 0;
      id = op.operands[scores];
    }
    return false;
  }

  /// tanh(scores / cap) * cap.
  bool read_cap(const Op& op, ValueId& at) {
    if (op.kind != OpKind::mul || softcap_ || factor_ != 1) return false;
    const auto cap = scalar(graph_, op.operands[1]);
    ValueId inner = op.operands[0];
    if (!cap || !(*cap > 0) || !has_one_reader(at) || !skip(inner, rounds_scores_)) return false;
    const Op& curve = graph_[inner];
    if (curve.kind != OpKind::tanh || !has_one_reader(inner)) return false;
    ValueId quotient = curve.operands[0];
    if (!skip(quotient, rounds_scores_)) return false;
    const Op& divided = graph_[quotient];
    if (divided.kind != OpKind::div || !has_one_reader(quotient) ||
        scalar(graph_, divided.operands[1]) != cap)
      return false;
    softcap_ = cap;
    at = divided.operands[0];
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
      const Op& op = graph_[*operand];
      if (op.kind == OpKind::cast && op.type.dtype == DType::f32 &&
          graph_[op.operands[0]].type.dtype == dtype_)
        *operand = op.operands[0];
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
    return llvm::none_of(operands, [&](ValueId id) { return is_overwritten(graph_, id, last); });
  }

  // ---- the op

  /// The axis before the last two becomes the axis of heads.
  bool has_heads() const { return rows_.size() >= 3 && rows_[rows_.size() - 3].is_constant(); }

  /// [..., n, width] of a matrix [.., n, width], or turned [.., width, n], as rows
  /// [batch..., n, heads * width].
  static ValueId in_rows(Builder& b, ValueId x, bool turned, DimsRef batch, Dim heads, Dim n) {
    const size_t rank = b.type(x).rank();
    if (turned) {
      std::vector<int64_t> axes(rank);
      for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
      std::swap(axes[rank - 2], axes[rank - 1]);
      x = b.transpose(x, axes);
    }
    const Dim width = b.type(x).dims.back();
    Dims apart(batch);
    apart.append({heads, n, width});
    x = b.reshape(x, apart);
    std::vector<int64_t> order(apart.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[batch.size()], order[batch.size() + 1]);
    x = b.transpose(x, order);
    Dims rows(batch);
    rows.append({n, Dim(heads.constant() * width.constant())});
    return b.reshape(x, rows);
  }
  static ValueId from_rows(Builder& b, ValueId rows, DimsRef batch, Dim heads, Dim tokens,
                           const Op& last) {
    const Dim width = last.type.dims.back();
    Dims apart(batch);
    apart.append({tokens, heads, width});
    std::vector<int64_t> order(apart.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[batch.size()], order[batch.size() + 1]);
    return b.reshape(b.transpose(b.reshape(rows, apart), order), last.type.dims, last.name);
  }

  /// The masks as one [batch..., heads, N, R]; invalid: there is none.
  ValueId build_mask(Builder& b, llvm::function_ref<ValueId(ValueId)> moved) const {
    ValueId all;
    for (const Mask& mask : masks_) {
      ValueId own = moved(mask.value);
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
  llvm::ArrayRef<llvm::SmallVector<ValueId, 2>> readers_;
  bool rounds_scores_ = false;
  MatrixProduct scores_, values_;
  DType dtype_ = DType::f32;
  Dims rows_;  // of the softmax
  std::vector<Mask> masks_;
  double factor_ = 1;
  std::optional<double> softcap_;
};

}  // namespace

std::vector<ValueId> rounded_attentions(const Graph& graph) {
  std::vector<ValueId> found;
  const auto readers = readers_of(graph);
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (AttentionInPrimitives attention(graph, readers);
        attention.read({i}) && attention.rounds_scores())
      found.push_back({i});
  return found;
}

bool recognize_attention(Module& module, bool relaxed) {
  const auto is_softmax = [](const Op& op) { return op.kind == OpKind::softmax; };
  return rewrite_graphs(
      module, is_softmax, [&](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        const auto readers = readers_of(graph);
        bool found = false;
        rewriter.rewrite([&](ValueId id, Op op) {
          AttentionInPrimitives attention(graph, readers);
          if (!attention.read(id) || (attention.rounds_scores() && !relaxed) ||
              attention.may_have_no_key(builder.symbols()))
            return rewriter.add(std::move(op));
          found = true;
          return attention.build(builder, op, [&](ValueId old) { return rewriter[old]; });
        });
        return found;
      });
}

}  // namespace sinter
