#include "codegen/emission/emit_group.h"

#include <algorithm>

#include "ir/decompose.h"
#include "ir/fault.h"
#include "ir/graph_rewriter.h"
#include "ir/index_map.h"
#include "ir/reduction_order.h"

namespace sinter {
namespace {

// Emission recurses along operands; longer groups are refused before they could exhaust the stack.
constexpr size_t kMaxPrimitives = 4096;

Error refusal(std::string what) {
  return {std::move(what), {}, "compute the ops in separate kernels", ExitCode::internal_error};
}

const std::vector<int64_t>& reduced_axes(const Op& op) {
  return op.attrs.get<std::vector<int64_t>>(AttrName::axes);
}

/// A copy of `graph` in which the reduce `id` reduces the trailing axes of a transposed operand:
///   %r = reduce_sum %x {axes = [0]} : f32[1, D]
/// becomes
///   %t = transpose %x {axes = [1, 0]} ; %s = reduce_sum %t {axes = [1]} : f32[D, 1]
///   %r = reshape %s : f32[1, D]
Graph with_trailing_axes(const Graph& graph, ValueId id, llvm::ArrayRef<Symbol> symbols) {
  Graph result;
  GraphRewriter rewriter(graph, result);
  rewriter.rewrite([&](ValueId each, Op op) {
    if (each != id) return rewriter.add(std::move(op));
    std::vector<int64_t> order, reduced = reduced_axes(op);
    const auto rank = static_cast<int64_t>(op.type.rank());
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!llvm::is_contained(reduced, axis)) order.push_back(axis);
    order.insert(order.end(), reduced.begin(), reduced.end());
    for (size_t k = 0; k < reduced.size(); ++k)
      reduced[k] = rank - static_cast<int64_t>(reduced.size() - k);
    Builder builder(result, symbols, "reduce.");
    const ValueId turned = builder.transpose(op.operands[0], order);
    return builder.reshape(builder.reduce(op.kind, turned, reduced), op.type.dims);
  });
  return result;
}

bool reduces_from(const Op& op, const Op& operand, DimsRef prefix) {
  const auto& axes = reduced_axes(op);
  const size_t rank = operand.type.rank();
  return rank == prefix.size() + axes.size() &&
         DimsRef(operand.type.dims).take_front(prefix.size()) == prefix &&
         (axes.empty() || axes.front() == static_cast<int64_t>(prefix.size()));
}

/// The axes shared by all members of a stage: as fine as the members' own axes.
class StageAxes {
 public:
  explicit StageAxes(SymExpr width) : strides_{SymExpr(1)} {
    if (!width.is(1)) strides_.push_back(std::move(width));
  }
  void refine(DimsRef dims) {
    for (const SymExpr& stride : row_major_strides(dims)) insert(stride);
  }
  /// nullopt: an axis would be no constant and no single symbol.
  std::optional<Dims> axes() const {
    Dims result;
    for (size_t k = strides_.size(); k-- > 1;) {
      const auto dim = as_dim(strides_[k], strides_[k - 1]);
      if (!dim) return std::nullopt;
      result.push_back(*dim);
    }
    return result;
  }

 private:
  static std::optional<Dim> as_dim(const SymExpr& whole, const SymExpr& part) {
    const auto ratio = whole.divide_exactly(part);
    if (!ratio) return std::nullopt;
    if (ratio->is_constant()) return Dim(ratio->constant());
    const auto& terms = ratio->terms();
    if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].symbols.size() != 1)
      return std::nullopt;
    return Dim(terms[0].symbols[0]);
  }
  void insert(const SymExpr& stride) {
    if (stride.is(0) || llvm::is_contained(strides_, stride)) return;
    for (size_t k = 0; k + 1 < strides_.size(); ++k)
      if (stride.divide_exactly(strides_[k]) && strides_[k + 1].divide_exactly(stride)) {
        strides_.insert(strides_.begin() + static_cast<ptrdiff_t>(k) + 1, stride);
        return;
      }
  }

  llvm::SmallVector<SymExpr, 4> strides_;  // innermost first: each divides the next
};

/// Finds stages, passes and tasks of a graph of primitives whose reductions all fit the prefix.
class Analysis {
 public:
  explicit Analysis(GroupForm& form) : form_(form), graph_(form.graph) {}

  Status run() {
    find_depths();
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
      if (op_class(op) != OpClass::reduce) continue;
      SINTER_TRY(add_task({ValueId{i}, -1, 0, depth_[i] - 1}, graph_[op.operands[0]].type.dims));
      Stage& stage = form_.stages[form_.tasks.back().stage];
      stage.lanes = virtual_lanes(graph_[op.operands[0]].type.dims, reduced_axes(op));
      if (fault(Fault::other_reduction_tree)) stage.lanes = std::max<int64_t>(1, stage.lanes / 2);
    }
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      const ValueId id = graph_.outputs[k], stored = form_.stored(id);
      SINTER_TRY(
          add_task({id, static_cast<int64_t>(k), 0, depth_[id.index]}, graph_[stored].type.dims));
    }
    std::stable_sort(form_.tasks.begin(), form_.tasks.end(), [](const Task& a, const Task& b) {
      return std::pair(a.pass, a.stage) < std::pair(b.pass, b.stage);
    });
    for (Stage& stage : form_.stages) SINTER_TRY(find_axes(stage));
    return {};
  }

 private:
  void find_depths() {
    depth_.resize(graph_.size(), 0);
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
      for (ValueId operand : op.operands) depth_[i] = std::max(depth_[i], depth_[operand.index]);
      depth_[i] += op_class(op) == OpClass::reduce;
    }
  }

  bool leads_with_prefix(DimsRef dims) const {
    return dims.size() >= form_.prefix.size() &&
           dims.take_front(form_.prefix.size()) == DimsRef(form_.prefix);
  }

  Status add_task(Task task, DimsRef dims) {
    std::optional<SymExpr> width;
    const SymExpr rows = volume(form_.prefix);
    if (leads_with_prefix(dims))
      width = volume(dims.drop_front(form_.prefix.size()));
    else if (rows.is(0))  // no row, and so no element
      width = volume(dims).is(0) ? std::optional(SymExpr(0)) : std::nullopt;
    else
      width = volume(dims).divide_exactly(rows);
    if (!width || width->overflowed())
      return tl::make_unexpected(
          refusal(fmt::format("'{}' does not have the rows that the other ops of its group have",
                              algorithm_name(graph_[task.value]))));
    const auto at = llvm::find_if(form_.stages, [&](const Stage& s) { return s.width == *width; });
    task.stage = static_cast<uint32_t>(at - form_.stages.begin());
    if (at == form_.stages.end()) form_.stages.push_back({std::move(*width), {}, 0});
    form_.tasks.push_back(task);
    return {};
  }

  Status find_axes(Stage& stage) {
    if (stage.width.is(0)) return {};
    StageAxes axes(stage.width);
    for (const Op& op : graph_.ops()) {
      if (!leads_with_prefix(op.type.dims)) continue;
      const DimsRef inner = DimsRef(op.type.dims).drop_front(form_.prefix.size());
      if (volume(inner) == stage.width) axes.refine(inner);
    }
    auto found = axes.axes();
    if (!found) return tl::make_unexpected(refusal("the rows of a group have no common axes"));
    stage.axes = std::move(*found);
    return {};
  }

  GroupForm& form_;
  const Graph& graph_;
  std::vector<uint32_t> depth_;
};

}  // namespace

Status check_row_ops(const Graph& graph) {
  if (graph.size() > kMaxPrimitives)
    return tl::make_unexpected(
        refusal(fmt::format("a group of {} primitives, at most {}", graph.size(), kMaxPrimitives)));
  for (size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    const ValueId id{static_cast<uint32_t>(i)};
    const bool foreign_leaf =
        op_class(op) == OpClass::leaf && !llvm::is_contained(graph.inputs, id);
    if (foreign_leaf || op_class(op) == OpClass::contraction || op.kind == OpKind::file ||
        op.kind == OpKind::pack_codes)
      return tl::make_unexpected(
          refusal(fmt::format("a row kernel cannot compute '{}'", algorithm_name(op))));
    for (ValueId operand : op.operands) {
      if (writes_state(graph[operand]))
        return tl::make_unexpected(refusal("a group reads the state that it writes"));
      if (op_class(graph[operand]) == OpClass::run_sums)
        return tl::make_unexpected(refusal("a group reads the sums of runs that it makes"));
    }
  }
  return {};
}

Result<GroupForm> analyze_group(const Graph& group, uint32_t prefix_rank,
                                llvm::ArrayRef<Symbol> symbols, bool by_rows) {
  SINTER_TRY(check_row_ops(group));
  GroupForm form;
  form.graph = decompose_all(group, symbols);
  SINTER_TRY(check_row_ops(form.graph));
  llvm::SmallVector<ValueId, 4> reductions;
  for (uint32_t i = 0; i < form.graph.size(); ++i)
    if (op_class(form.graph.ops()[i]) == OpClass::reduce) reductions.push_back(ValueId{i});
  form.reduces = !reductions.empty();
  if (form.reduces) {
    const Graph& graph = form.graph;
    const auto operand = [&](ValueId id) -> const Op& { return graph[graph[id].operands[0]]; };
    form.prefix =
        Dims(DimsRef(operand(reductions[0]).type.dims)
                 .take_front(std::min<size_t>(prefix_rank, operand(reductions[0]).type.rank())));
    const bool fits = llvm::all_of(
        reductions, [&](ValueId id) { return reduces_from(graph[id], operand(id), form.prefix); });
    if (!fits) {
      if (reductions.size() > 1)
        return tl::make_unexpected(refusal("the reductions of a group run over different axes"));
      const size_t kept =
          operand(reductions[0]).type.rank() - reduced_axes(graph[reductions[0]]).size();
      form.graph = with_trailing_axes(form.graph, reductions[0], symbols);
      for (const Op& op : form.graph.ops())
        if (op_class(op) == OpClass::reduce)
          form.prefix = Dims(DimsRef(op.type.dims).take_front(kept));
    }
  }
  if (by_rows && !form.reduces && !form.graph.outputs.empty())
    form.prefix = Dims(
        DimsRef(form.graph[form.stored(form.graph.outputs[0])].type.dims).take_front(prefix_rank));
  SINTER_TRY(Analysis(form).run());
  return form;
}

}  // namespace sinter
