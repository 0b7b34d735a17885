#include "passes/attention/attention_masks.h"

#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ir/attention_operands.h"
#include "ir/float_constant.h"
#include "ir/state_reads.h"
#include "ir/term_builder.h"
#include "passes/attention/key_ranges.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr double kNoScore = -0x1p100;  // numbers below it hide a key whose score is finite

/// The mask of one attention.
class MaskReader {
 public:
  MaskReader(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols)
      : graph_(graph),
        op_(op),
        mask_(mask_operand(op)),
        dims_(attention_score_dims(graph[op.operands[0]].type, graph[op.operands[1]].type,
                                   op.attrs.get<int64_t>(AttrName::heads))),
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
  llvm::SmallVector<ValueId, 9> rewritten(Builder& b, const Op& op,
                                          llvm::function_ref<ValueId(ValueId)> moved) {
    llvm::SmallVector<ValueId, 9> operands(op.operands.begin(), op.operands.end());
    const std::vector<uint32_t> axes = token_axes();
    TermBuilder build(b, terms_, axes, moved, true);
    operands[3] = first(b, build, op);
    operands[4] = last(b, build, op);
    if (rest_.empty()) {
      operands.pop_back();
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
    const auto operand = [&](size_t i) {
      const ValueId from = op.operands[i];
      return read_numbers(from,
                          broadcast_coords(graph_[from].type.dims, op.type.dims, access.coords));
    };
    if (const auto number = float_constant(op)) {
      if (*number == 0) return Term{1};
      if (!(*number < kNoScore)) return std::nullopt;
      hides_by_number_ = hides_by_number_ || std::isfinite(*number);
      return Term{0};
    }
    switch (op.kind) {
      case OpKind::cast:
        return is_float(graph_[op.operands[0]].type.dtype) ? operand(0) : std::nullopt;
      case OpKind::copy:
        return operand(0);
      case OpKind::where: {
        if (reads_state(graph_, op)) return std::nullopt;  // it stays before an append
        const auto a = operand(1), b = operand(2);
        if (!a || !b) return std::nullopt;
        return terms_.chosen(terms_.read_operand(op, 0, access.coords), *a, *b);
      }
      case OpKind::add: {
        const auto a = operand(0), b = operand(1);
        if (!a || !b) return std::nullopt;
        return terms_.logical(OpKind::logical_and, {*a, *b});
      }
      default:
        return std::nullopt;
    }
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

}  // namespace

bool attention_masks(Module& module) {
  const auto has_mask = [](const Op& op) {
    const bool of_scores = is_without_order(op, OpKind::attention) ||
                           op.kind == OpKind::attention_log_sum || is_attention_gradient(op);
    return of_scores && op.operands.size() > mask_operand(op);
  };
  return rewrite_graphs(
      module, has_mask, [&](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        bool found = false;
        rewriter.rewrite([&](ValueId id, Op op) {
          if (!has_mask(op)) return rewriter.add(std::move(op));
          MaskReader mask(graph, graph[id], builder.symbols());
          if (!mask.read()) return rewriter.add(std::move(op));
          found = true;
          op.operands = mask.rewritten(builder, op, [&](ValueId old) { return rewriter[old]; });
          if (op.kind != OpKind::attention) op.operands = with_whole_mask(builder, op);
          op.attrs.set(AttrName::any_range, int64_t{1});
          if (mask.sink() > 0) op.attrs.set(AttrName::sink, mask.sink());
          return rewriter.add(std::move(op));
        });
        return found;
      });
}

}  // namespace sinter
