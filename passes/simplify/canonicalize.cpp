// Brings a graph into the form that the other passes expect, without changing any value.
//
//   %a = mul %x, %c      %b = mul %x, %c      =>   %a = mul %x, %c
//   %v = reshape %u {dims = [4, 6]}, u [4, 6] =>   uses of %v read %u
//
// Common subexpressions are merged (the earlier name stays), chains of one kind of view are joined,
// views and casts that change nothing vanish, elementwise ops of constants are folded, literals of
// an entry become weights, dead ops, weights and states go.
#include <llvm/ADT/StringSet.h>

#include "ir/common_subexpressions.h"
#include "ir/fault.h"
#include "ir/match.h"
#include "ir/scalar_math.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

float round_to(DType dtype, float x) {
  if (dtype == DType::f16) return math::f16_to_float(math::float_to_f16(x));
  if (dtype == DType::bf16) return math::bf16_to_float(math::float_to_bf16(x));
  return x;
}

/// The formula of an elementwise op of the domain `real`, for folding.
std::optional<float> apply(OpKind kind, float a, float b) {
  using namespace math;
  [[maybe_unused]] const float c = 0;
  switch (kind) {
#define SINTER_FOLD_same_real(name, formula) \
  case OpKind::name:                         \
    return formula;
#define SINTER_FOLD_same_number(name, formula) SINTER_FOLD_same_real(name, formula)
#define SINTER_FOLD_truth_number(name, formula)
#define SINTER_FOLD_same_integer(name, formula)
#define SINTER_FOLD_same_truth(name, formula)
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula, ...) \
  SINTER_FOLD_##result##_##domain(name, formula)
#include "ir/ops.def"
    default:
      return std::nullopt;
  }
}

const std::vector<int64_t>& order_of_axes(const Op& transpose) {
  return transpose.attrs.get<std::vector<int64_t>>(AttrName::axes);
}

/// Each rule rewrites an op whose operands are of the new graph. True: the op is another one.
class CanonicalForm : RewriteRule {
 public:
  CanonicalForm(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : RewriteRule(from, builder, rewriter), readers_(readers_of(from)) {}

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    if (op.operands.empty()) return std::nullopt;
    bool changed = cast_behind(id, op);
    changed |= join_views(op);
    changed |= drop_sign(op);
    if (changes_nothing(id, op)) return op.operands[0];
    changed |= fold(op);
    return changed ? std::optional(rewriter_.add(std::move(op))) : std::nullopt;
  }

 private:
  const Graph& made() const { return builder_.graph(); }

  /// A cast between two reshapes, and read by the second alone, comes behind it: the reshapes are
  /// one, and the cast walks the rows of those that read it.
  bool cast_behind(ValueId id, Op& op) {
    ValueId inner;
    if (op.kind != OpKind::reshape || readers_[from_[id].operands[0].index].size() != 1 ||
        !match::cast(match::value(inner))(made(), op.operands[0]) ||
        !match::reshape()(made(), inner) || !builder_.may_read(inner))
      return false;
    Op cast = made()[op.operands[0]];
    cast.type.dims = op.type.dims;
    op.type.dtype = made()[inner].type.dtype;
    op.operands[0] = made()[inner].operands[0];
    const bool is_same = made()[op.operands[0]].type == op.type;
    cast.operands[0] = is_same ? op.operands[0] : rewriter_.add(std::move(op));
    op = std::move(cast);
    return true;
  }

  bool join_views(Op& op) const {
    const Op& below = made()[op.operands[0]];
    if (op_class(op) != OpClass::view || below.kind != op.kind) return false;
    if (op.kind == OpKind::transpose) {
      std::vector<int64_t> joined;
      for (int64_t axis : order_of_axes(op)) joined.push_back(order_of_axes(below)[axis]);
      op.attrs.set(AttrName::axes, joined);
    } else if (op.kind == OpKind::slice) {
      const auto attribute = [](const Op& slice, AttrName name) {
        return slice.attrs.get<int64_t>(name);
      };
      if (attribute(op, AttrName::axis) != attribute(below, AttrName::axis)) return false;
      op.attrs.set(AttrName::begin,
                   attribute(op, AttrName::begin) + attribute(below, AttrName::begin));
    }
    op.operands[0] = below.operands[0];
    return true;
  }

  /// Reads what a sign or an absolute value is of.
  bool drop_sign(Op& op) const {
    ValueId x;
    const auto sign = match::either(match::neg(match::value(x)), match::abs(match::value(x)));
    if (op.kind != OpKind::exp_neg_abs || !sign(made(), op.operands[0]) ||
        !(builder_.may_read(x) || fault(Fault::sign_across_append)))
      return false;
    op.operands[0] = x;
    drop_sign(op);
    return true;
  }

  /// The readers of a cast then read its operand, which no append may have overwritten.
  bool changes_nothing(ValueId id, const Op& op) {
    if (op.kind == OpKind::transpose) return llvm::is_sorted(order_of_axes(op));
    const bool is_view = op_class(op) == OpClass::view;
    return (is_view || op.kind == OpKind::cast) && made()[op.operands[0]].type == op.type &&
           (is_view ||
            (from_[id].kind == OpKind::cast && rewriter_.may_read(from_[id].operands[0])));
  }

  bool fold(Op& op) const {
    float a = 0, b = 0;
    if (op_class(op) != OpClass::elementwise || !is_float(op.type.dtype) ||
        !match::number(a)(made(), op.operands[0]) || !match::number(b)(made(), op.operands.back()))
      return false;
    const auto value = apply(op.kind, a, b);
    if (!value) return false;
    op.attrs = Attributes()
                   .set(AttrName::dims, op.type.dims)
                   .set(AttrName::dtype, op.type.dtype)
                   .set(AttrName::value, static_cast<double>(round_to(op.type.dtype, *value)));
    op.kind = OpKind::constant;
    op.operands.clear();
    return true;
  }

  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
};

bool simplify(Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  const size_t before = graph.size();
  bool changed = false;
  rewrite_graph(graph, symbols, [&](const Graph& from, Builder& builder, GraphRewriter& rewriter) {
    changed = by_rule<CanonicalForm>()(from, builder, rewriter);
    merge_common_subexpressions(builder.graph(), [](std::string_view) { return false; });
    return true;
  });
  return changed || graph.size() != before;
}

/// Literals of an entry become weights: code generation has no tables in kernels.
bool hoist_literals(Module& module, Graph& graph) {
  if (llvm::none_of(graph.ops(), [](const Op& op) { return op.kind == OpKind::literal; }))
    return false;
  llvm::StringSet<> taken;
  for (const Weight& weight : module.weights) taken.insert(weight.name);
  for (const State& state : module.states) taken.insert(state.name);
  bool changed = false;
  for (Op& op : graph.mutable_ops()) {
    if (op.kind != OpKind::literal) continue;
    Weight weight{op.name, op.type, {}};
    weight.init.outputs.push_back(weight.init.add(op));
    while (!taken.insert(weight.name).second) weight.name += "_";
    op = Op{OpKind::weight, op.type, {}, {}, weight.name};
    module.weights.push_back(std::move(weight));
    changed = true;
  }
  return changed;
}

bool drop_unused(Module& module) {
  llvm::StringSet<> used;
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (op_class(op) == OpClass::leaf) used.insert(op.name);
  const auto unused = [&](const auto& item) { return !used.contains(item.name); };
  return std::erase_if(module.weights, unused) + std::erase_if(module.states, unused) > 0;
}

}  // namespace

bool canonicalize(Module& module) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    changed |= hoist_literals(module, entry.graph);
    changed |= simplify(entry.graph, narrowed(module.symbols, entry.range));
  }
  for (Weight& weight : module.weights) changed |= simplify(weight.init, module.symbols);
  return drop_unused(module) || changed;
}

}  // namespace sinter
