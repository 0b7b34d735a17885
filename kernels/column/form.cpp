#include "kernels/column/form.h"

#include "ir/decompose.h"
#include "ir/fault.h"
#include "ir/reduction_order.h"

namespace sinter {
namespace {

Error refusal(std::string what) {
  return {std::move(what), {}, "compute the ops in separate kernels", ExitCode::internal_error};
}

const std::vector<int64_t>& reduced_axes(const Op& op) {
  return op.attrs.get<std::vector<int64_t>>(AttrName::axes);
}

std::optional<ColumnSpace> space_of(const Graph& graph, const Op& op) {
  if (op_class(op) != OpClass::reduce) return std::nullopt;
  return column_space(graph[op.operands[0]].type.dims, reduced_axes(op));
}

/// The one stage of a form: the inner axes of more than one element.
Stage stage_of(const ColumnSpace& space) {
  Stage stage{volume(space.inner()), {}, 0};
  for (Dim dim : space.inner())
    if (!dim.is(1)) stage.axes.push_back(dim);
  return stage;
}

GroupForm form_of(const Graph& graph, const ColumnSpace& space, size_t rows) {
  GroupForm form;
  form.graph = graph;
  form.prefix = Dims(DimsRef(space.dims).take_front(rows));
  form.stages.push_back(stage_of(space));
  form.reduces = true;
  return form;
}

}  // namespace

Result<ColumnForm> column_form(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  SINTER_TRY(check_row_ops(group));
  const Graph graph = decompose_all(group, symbols);
  SINTER_TRY(check_row_ops(graph));
  ColumnForm form;
  std::vector<bool> after_reduction(graph.size(), false);  // a reduction, or computed from one
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    for (ValueId operand : op.operands)
      after_reduction[i] = after_reduction[i] || after_reduction[operand.index];
    if (op_class(op) != OpClass::reduce) continue;
    const auto space = space_of(graph, op);
    if (!space || (!form.reductions.empty() && !(*space == form.space)))
      return tl::make_unexpected(refusal("the reductions of a group run over different axes"));
    if (after_reduction[i])
      return tl::make_unexpected(refusal("a column reduction of a group follows another"));
    after_reduction[i] = true;
    form.space = *space;
    form.lanes = virtual_lanes(space->dims, reduced_axes(op));
    form.reductions.push_back({i});
  }
  if (fault(Fault::other_reduction_tree)) form.lanes = std::max<int64_t>(1, form.lanes / 2);
  form.prologue = form_of(graph, form.space, form.space.end);
  form.epilogue = form_of(graph, form.space, form.space.first);
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ValueId id = graph.outputs[k];
    const Op& op = graph[id];
    const bool in_prologue =
        !after_reduction[id.index] && same_elements(op.type.dims, form.space.dims);
    if (op_class(op) == OpClass::append ||
        (!in_prologue && !same_elements(op.type.dims, form.space.kept())))
      return tl::make_unexpected(
          refusal(fmt::format("'{}' does not have the columns that the other ops of its group have",
                              algorithm_name(op))));
    (in_prologue ? form.prologue : form.epilogue)
        .tasks.push_back({id, static_cast<int64_t>(k), 0, 0});
  }
  return form;
}

}  // namespace sinter
