// Masks of attention that are functions of positions become ranges of keys:
//
//   %m = less_equal %k, %q          k, q: iota along the axes of keys and tokens
//   %y = attention %q, %keys, %values, %zero, %all, %m {...}
//   =>
//   %y = attention %q, %keys, %values, %zero, %q {any_range = 1, ...}
//
// Masks of log-sums and of gradients, which have no sink, become ranges too. A mask is read as a
// conjunction. Conditions that leave each token of a sequence one range of keys, for all values of
// the symbols, become the operands first and slot: comparisons of the key's position with positions
// or with values that are given for each token. A constant number of leading keys beside that range
// becomes the attribute `sink`. What is left stays the mask. A mask of numbers is read as one of
// truth values where it has 0 and -inf alone; a finite number below -2^100 counts as -inf where
// every token is known to see a key.
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ir/attention_operands.h"
#include "ir/float_constant.h"
#include "ir/term_builder.h"
#include "passes/attention/key_ranges.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr double kNoScore = -0x1p100;  // numbers below it hide a key whose score is finite

/// The mask of one attention.
class MaskReader {
 public:
  MaskReader(const Graph& graph, GraphRewriter& rewriter, ValueId id,
             llvm::ArrayRef<Symbol> symbols)
      : graph_(graph),
        rewriter_(rewriter),
        id_(id),
        op_(graph[id]),
        mask_(mask_operand(op_)),
        dims_(attention_score_dims(graph[op_.operands[0]].type, graph[op_.operands[1]].type,
                                   op_.attrs.get<int64_t>(AttrName::heads))),
        terms_(graph, dims_, symbols),
        head_(static_cast<uint32_t>(dims_.size()) - 3),
        ranges_(terms_, head_ + 2, llvm::ArrayRef(head_)) {}

  /// False: no condition of the mask becomes a range.
  bool read() {
    const auto truth = read_mask();
    if (!truth) return false;
    split(*truth);
    if (range_.lows.empty() && range_.highs.empty() && range_.conditions.empty()) return false;
    return !hides_by_number_ || (rest_.empty() && every_token_sees_a_key());
  }

  /// The leading keys that tokens see beside the range.
  int64_t sink() const { return range_.sink; }

  /// The operands of the attention with the range, in the builder's graph; `op` has operands of
  /// that graph.
  llvm::SmallVector<ValueId, 9> rewritten(Builder& b, const Op& op) {
    llvm::SmallVector<ValueId, 9> operands(op.operands.begin(), op.operands.end());
    const std::vector<uint32_t> axes = token_axes();
    const auto moved = [&](ValueId old) { return rewriter_[old]; };
    TermBuilder build(b, terms_, axes, moved, true);
    operands[3] = first(b, build, op);
    operands[4] = last(b, build, op);
    if (rest_.empty()) {
      operands.erase(operands.begin() + mask_);
    } else if (llvm::all_of(rest_, [&](const Term& t) { return can_build(t, score_axes()); })) {
      operands[mask_] = rest_of_mask(b, op, moved);
    }
    return operands;
  }

 private:
  std::optional<Term> read_mask() {
    const DimsRef own = graph_[op_.operands[mask_]].type.dims;
    IndexMap coords(own.size());
    for (uint32_t axis = 0; axis < own.size(); ++axis)
      if (!own[axis].is(1)) coords[axis] = IndexExpr::variable(axis);
    if (graph_[op_.operands[mask_]].type.dtype == DType::i1)
      return terms_.read(op_.operands[mask_], coords);
    return read_numbers(op_.operands[mask_], coords);
  }

  /// A mask of numbers that are 0 where the truth value holds, and else hide the key.
  std::optional<Term> read_numbers(ValueId id, const IndexMap& coords) {
    const Access access = resolve_access(graph_, id, coords, dims_);
    const Op& op = graph_[access.root];
    const auto coords_of = [&](size_t i) {
      return broadcast_coords(graph_[op.operands[i]].type.dims, op.type.dims, access.coords);
    };
    const auto numbers = [&](size_t i) { return read_numbers(op.operands[i], coords_of(i)); };
    if (const auto number = float_constant(op)) {
      if (*number == 0) return Term{1};
      if (!(*number < kNoScore)) return std::nullopt;
      hides_by_number_ = hides_by_number_ || std::isfinite(*number);
      return Term{0};
    }
    if (op.kind == OpKind::copy) return numbers(0);
    if (op.kind == OpKind::cast && is_float(graph_[op.operands[0]].type.dtype)) return numbers(0);
    const bool is_choice = op.kind == OpKind::where && rewriter_.may_compute(access.root, id_);
    if (!is_choice && op.kind != OpKind::add) return std::nullopt;
    const auto a = numbers(is_choice ? 1 : 0), b = numbers(is_choice ? 2 : 1);
    if (!a || !b) return std::nullopt;
    if (!is_choice) return terms_.logical(OpKind::logical_and, {*a, *b});
    return terms_.chosen(terms_.read_operand(op, 0, access.coords), *a, *b);
  }

  /// Each part of a conjunction restricts the range, or stays.
  void split(const Term& truth) {
    const TermNode* node = terms_.node_of(truth);
    if (node && node->function == OpKind::logical_and) {
      for (const Term& part : std::vector(node->operands)) split(part);
      return;
    }
    KeyRange restricted = range_;
    if (ranges_.restrict(truth, restricted) && can_build(restricted) && fits_op(restricted))
      range_ = std::move(restricted);
    else
      rest_.push_back(truth);
  }

  bool can_build(const Term& term, llvm::ArrayRef<uint32_t> axes) const {
    return TermBuilder::can_build(terms_, term, axes);
  }
  bool can_build(const KeyRange& range) const {
    const std::vector<uint32_t> axes = token_axes();
    const auto all = [&](const std::vector<Term>& parts) {
      return llvm::all_of(parts, [&](const Term& term) { return can_build(term, axes); });
    };
    return all(range.lows) && all(range.highs) && all(range.conditions);
  }
  std::vector<uint32_t> score_axes() const {
    std::vector<uint32_t> axes(dims_.size());
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  /// The axes of row numbers: the leading ones and the tokens.
  std::vector<uint32_t> token_axes() const {
    std::vector<uint32_t> axes = score_axes();
    axes.pop_back();
    axes.erase(axes.end() - 2);
    return axes;
  }

  /// A low end is no bound of a sink: the range and the attention have one of both together. A
  /// window is counted from the attention's own last key.
  bool fits_op(const KeyRange& range) const {
    if (op_.attrs.has(AttrName::window) && !range.highs.empty()) return false;
    if (range.sink == 0) return range.lows.empty() || attention_sink(op_.attrs) == 0;
    return op_.kind == OpKind::attention && attention_sink(op_.attrs) == 0 && sees_from_first(op_);
  }

  bool every_token_sees_a_key() {
    if (!range_.conditions.empty() || !sees_all(op_)) return false;
    const auto at_most = [&](const Term& a, const Term& b) {
      return terms_.is_at_most_zero(a - b);
    };
    const bool ordered = range_.sink > 0 || llvm::all_of(range_.lows, [&](const Term& low) {
                           return is_key(low) && llvm::all_of(range_.highs, [&](const Term& high) {
                                    return at_most(low, high);
                                  });
                         });
    return ordered &&
           llvm::all_of(range_.highs, [&](const Term& high) { return at_most(Term{}, high); });
  }
  /// At most the last key.
  bool is_key(const Term& term) {
    const Dim keys = dims_[head_ + 2];
    if (keys.is_constant()) return terms_.is_at_most_zero(term - Term{keys.constant() - 1});
    return keys == dims_[head_ + 1] && terms_.is_at_most_zero(term - terms_.position(head_ + 1));
  }
  /// The attention itself bounds no range of keys.
  bool sees_all(const Op& op) const {
    return sees_from_first(op) && is_last_of_all(graph_[root_of(graph_, op.operands[4])]);
  }
  /// Nor does it bound their low end.
  bool sees_from_first(const Op& op) const {
    return is_first_of_all(graph_[root_of(graph_, op.operands[3])]) &&
           !op.attrs.has(AttrName::window);
  }
  static bool is_first_of_all(const Op& op) {
    return op.kind == OpKind::constant && op.attrs.get<Number>(AttrName::value).to_i32() <= 0;
  }
  static bool is_last_of_all(const Op& op) {
    return op.kind == OpKind::constant &&
           op.attrs.get<Number>(AttrName::value).to_i32() == std::numeric_limits<int32_t>::max();
  }

  ValueId first(Builder& b, TermBuilder& build, const Op& op) {
    if (range_.lows.empty()) return op.operands[3];
    const Term low = terms_.joined(OpKind::maximum, range_.lows);
    const ValueId own = repeated(b, b.cast(build.build(low), DType::i32), op);
    if (is_first_of_all(graph_[root_of(graph_, op_.operands[3])])) return own;
    return b.maximum(op.operands[3], own);
  }
  ValueId last(Builder& b, TermBuilder& build, const Op& op) {
    ValueId last = op.operands[4];
    if (!range_.highs.empty()) {
      const Term high = terms_.joined(OpKind::minimum, range_.highs);
      const ValueId own = repeated(b, b.cast(build.build(high), DType::i32), op);
      last = is_last_of_all(graph_[root_of(graph_, op_.operands[4])]) ? own : b.minimum(last, own);
    }
    for (const Term& condition : range_.conditions)
      last = b.op(OpKind::where, {repeated(b, build.build_truth(condition), op), last,
                                  b.constant(-1, DType::i32)});
    return last;
  }
  /// A value with an axis for each of token_axes(), repeated to the tokens of all sequences.
  ValueId repeated(Builder& b, ValueId value, const Op& op) const {
    const Dims dims(DimsRef(b.type(op.operands[0]).dims).drop_back());
    return b.broadcast(value, dims);
  }

  ValueId rest_of_mask(Builder& b, const Op& op, llvm::function_ref<ValueId(ValueId)> moved) {
    const std::vector<uint32_t> axes = score_axes();
    TermBuilder build(b, terms_, axes, moved, false);
    ValueId mask = build.build_truth(rest_[0]);
    for (const Term& part : llvm::drop_begin(rest_))
      mask = b.logical_and(mask, build.build_truth(part));
    if (b.type(mask).rank() != axes.size()) {  // a constant
      const Dims dims(axes.size(), Dim(1));
      mask = b.broadcast(mask, dims);
    }
    b.graph()[mask].name = op.name + ".mask";
    return mask;
  }

  const Graph& graph_;
  GraphRewriter& rewriter_;
  ValueId id_;
  const Op& op_;
  size_t mask_;  // operand
  Dims dims_;
  PositionTerms terms_;
  uint32_t head_;  // the loop variable that is the query head; the token and the key follow
  KeyRanges ranges_;
  KeyRange range_;
  std::vector<Term> rest_;        // conditions that are no range
  bool hides_by_number_ = false;  // and not by -inf alone
};

bool may_have_ranges(const Op& op) {
  const bool of_scores = is_without_order(op, OpKind::attention) ||
                         op.kind == OpKind::attention_log_sum || is_attention_gradient(op);
  return of_scores && has_mask(op);
}

class RangesOfMasks : RewriteRule {
 public:
  using RewriteRule::RewriteRule;

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    if (!may_have_ranges(op)) return std::nullopt;
    MaskReader mask(from_, rewriter_, id, builder_.symbols());
    if (!mask.read()) return std::nullopt;
    op.operands = mask.rewritten(builder_, op);
    if (op.kind != OpKind::attention) op.operands = with_whole_mask(builder_, op);
    op.attrs.set(AttrName::any_range, int64_t{1});
    if (mask.sink() > 0) op.attrs.set(AttrName::sink, mask.sink());
    return rewriter_.add(std::move(op));
  }
};

}  // namespace

bool attention_masks(Module& module) { return replace_ops<RangesOfMasks>(module, may_have_ranges); }

}  // namespace sinter
