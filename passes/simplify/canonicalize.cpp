#include "passes/simplify/canonicalize.h"

#include <llvm/ADT/StringSet.h>

#include "ir/common_subexpressions.h"
#include "ir/fault.h"
#include "ir/float_constant.h"
#include "ir/scalar_math.h"
#include "ir/state_reads.h"

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

class Canonicalizer {
 public:
  explicit Canonicalizer(Graph& graph) : graph_(graph) {}

  bool run() {
    replaced_.resize(graph_.size());
    count_readers();
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      Op& op = graph_[{i}];
      for (ValueId& operand : op.operands) operand = replaced_[operand.index];
      replaced_[i] = simplify({i});
      if (replaced_[i] == ValueId{i}) continue;
      changed_ = true;
      readers_[replaced_[i].index] += readers_[i] - 1;
    }
    for (ValueId& id : graph_.outputs) id = replaced_[id.index];
    const size_t before = graph_.size();
    merge_common_subexpressions(graph_, [](std::string_view) { return false; });
    remove_dead_ops(graph_);
    return changed_ || graph_.size() != before;
  }

 private:
  /// The value that replaces op `id` (itself if it stays); may rewrite the op in place.
  ValueId simplify(ValueId id) {
    Op& op = graph_[id];
    if (op_class(op) == OpClass::leaf) return id;
    if (op.kind == OpKind::reshape) cast_behind(id);
    if (op_class(op) == OpClass::view) join_views(op);
    if (op.kind == OpKind::exp_neg_abs) drop_sign(op);
    if (changes_nothing(op)) return op.operands[0];
    fold(op);
    return id;
  }

  bool changes_nothing(const Op& op) const {
    // A cast of a state holds the version's values when the next version is written.
    if (op.kind == OpKind::cast && reads_state(graph_, op)) return false;
    const bool identity_kind = op.kind == OpKind::reshape || op.kind == OpKind::broadcast ||
                               op.kind == OpKind::slice || op.kind == OpKind::cast;
    if (identity_kind) return graph_[op.operands[0]].type == op.type;
    return op.kind == OpKind::transpose && std::is_sorted(axes(op).begin(), axes(op).end());
  }

  static const std::vector<int64_t>& axes(const Op& op) {
    return op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  }

  void count_readers() {
    readers_.assign(graph_.size(), 0);
    for (const Op& op : graph_.ops())
      for (ValueId operand : op.operands) ++readers_[operand.index];
    for (ValueId id : graph_.outputs) ++readers_[id.index];
  }

  /// A cast between two reshapes, and read by the second alone, comes behind it: the reshapes are
  /// one, and the cast walks the rows of those that read it.
  void cast_behind(ValueId id) {
    Op& view = graph_[id];
    const ValueId before = view.operands[0];
    Op& cast = graph_[before];
    if (cast.kind != OpKind::cast || readers_[before.index] != 1 || reads_state(graph_, cast) ||
        graph_[cast.operands[0]].kind != OpKind::reshape)
      return;
    std::swap(view.kind, cast.kind);
    std::swap(view.attrs, cast.attrs);
    std::swap(view.name, cast.name);
    cast.type = {graph_[cast.operands[0]].type.dtype, view.type.dims};
    replaced_[before.index] = simplify(before);
    view.operands[0] = replaced_[before.index];
    changed_ = true;
  }

  void join_views(Op& op) {
    const Op& below = graph_[op.operands[0]];
    if (below.kind != op.kind) return;
    if (op.kind == OpKind::transpose) {
      std::vector<int64_t> joined;
      for (int64_t axis : axes(op)) joined.push_back(axes(below)[axis]);
      op.attrs.set(AttrName::axes, joined);
    } else if (op.kind == OpKind::slice) {
      if (op.attrs.get<int64_t>(AttrName::axis) != below.attrs.get<int64_t>(AttrName::axis)) return;
      op.attrs.set(AttrName::begin, op.attrs.get<int64_t>(AttrName::begin) +
                                        below.attrs.get<int64_t>(AttrName::begin));
    }
    op.operands[0] = below.operands[0];
    changed_ = true;
  }

  /// Reads what a sign or an absolute value is of. A reader of a state stays where it is.
  void drop_sign(Op& op) {
    for (const Op* sign = &graph_[op.operands[0]];
         (sign->kind == OpKind::neg || sign->kind == OpKind::abs) &&
         (!reads_state(graph_, *sign) || fault(Fault::sign_across_append));
         sign = &graph_[op.operands[0]]) {
      op.operands[0] = sign->operands[0];
      changed_ = true;
    }
  }

  void fold(Op& op) {
    if (op_class(op) != OpClass::elementwise || !is_float(op.type.dtype)) return;
    const auto a = float_constant(graph_[op.operands[0]]);
    const auto b = op.operands.size() > 1 ? float_constant(graph_[op.operands[1]]) : a;
    if (!a || !b) return;
    const auto value = apply(op.kind, *a, *b);
    if (!value) return;
    op.attrs = Attributes()
                   .set(AttrName::dims, op.type.dims)
                   .set(AttrName::dtype, op.type.dtype)
                   .set(AttrName::value, static_cast<double>(round_to(op.type.dtype, *value)));
    op.kind = OpKind::constant;
    op.operands.clear();
    changed_ = true;
  }

  Graph& graph_;
  std::vector<ValueId> replaced_;
  std::vector<uint32_t> readers_;  // how many, by value
  bool changed_ = false;
};

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
    changed |= Canonicalizer(entry.graph).run();
  }
  for (Weight& weight : module.weights) changed |= Canonicalizer(weight.init).run();
  return drop_unused(module) || changed;
}

}  // namespace sinter
