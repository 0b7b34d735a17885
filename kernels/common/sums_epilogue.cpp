// The emitter of elements writes every section, for a graph of its own that has the sums, or the
// product, as its last input: `row` is the token, `matrix_row` the row of the matrix, `i` the
// element.
//
//   if (matrix_row < 2048) { const int i = matrix_row; ... store(y0 + i, ...); }
//   if (matrix_row >= 2048 && matrix_row < 2560) { const int i = matrix_row - 2048; ... }
#include "kernels/common/sums_epilogue.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "ir/builder.h"
#include "ir/graph_copier.h"
#include "ir/op_roles.h"

namespace sinter {

std::string element_of_section(int64_t first) {
  return first > 0 ? fmt::format("matrix_row - {}", first) : "matrix_row";
}

Result<SumsEpilogue> SumsEpilogue::create(const Graph& group, ValueId anchor,
                                          llvm::ArrayRef<ValueId> results,
                                          llvm::ArrayRef<Symbol> symbols, uint32_t row_axes) {
  SumsEpilogue epilogue(group, anchor, symbols, row_axes);
  SINTER_TRY(epilogue.deal(results));
  return epilogue;
}

/// A graph that computes copies of `outputs`; its last input is what it reads of the product.
Graph SumsEpilogue::graph_of(llvm::ArrayRef<ValueId> outputs, Access access) const {
  const Op& op = group_[anchor_];
  Graph graph;
  GraphCopier copy(group_, graph);
  Builder builder(graph, symbols_, "sum");
  const bool sums = access == Access::sum;
  ValueId result = builder.leaf(OpKind::input, {sums ? DType::f32 : op.type.dtype, op.type.dims},
                                sums ? "sums" : "product");
  const ValueId bias = operand_with(op, OperandRole::bias);
  if (sums && bias.valid()) result = builder.add(result, builder.cast(copy(bias), DType::f32));
  copy.define(anchor_, builder.cast(result, op.type.dtype));
  for (ValueId output : outputs) graph.outputs.push_back(copy(output));
  return graph;
}

Status SumsEpilogue::deal(llvm::ArrayRef<ValueId> results) {
  const Graph graph = graph_of(results, Access::chunk);
  const auto row_axes = static_cast<uint32_t>(group_[anchor_].type.rank()) - token_axes_;
  auto found = colocated_rows(graph, graph.inputs.back(), symbols_, row_axes);
  if (!std::holds_alternative<ColocatedRows>(found))
    return fail("the epilogue of a product needs sums of other blocks", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  rows_ = std::get<ColocatedRows>(std::move(found));
  // Members are results of the group, not their copies.
  for (ColocatedRows::Section& section : rows_.sections)
    for (ValueId& member : section.members)
      member = results[llvm::find(graph.outputs, member) - graph.outputs.begin()];
  return {};
}

Result<SumsEpilogue::Section> SumsEpilogue::section(const ColocatedRows::Section& rows,
                                                    llvm::ArrayRef<SymbolId> parameters,
                                                    Access access, std::string& globals) const {
  Section section{rows.first, rows.width, {}, {}};
  SINTER_LET(form, analyze_group(graph_of(rows.members, access), token_axes_, symbols_, true));
  if (form.reduces || form.stages.size() != 1 || !form.stages[0].width.is(rows.width))
    return fail("the epilogue of a product is no row of elements", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  for (size_t k = 0; k < rows.members.size(); ++k)
    form.output_names.push_back(
        fmt::format("y{}", llvm::find(group_.outputs, rows.members[k]) - group_.outputs.begin()));
  form.table_name = fmt::format("section{}_{}_table", rows.first, rows.width);
  LoopSpace space(form, symbols_, parameters);
  ValueEmitter values(form, space);
  CodeScope row;
  const bool single = access == Access::sum;
  values.open(0, 0, row, false, single, single ? form.graph.inputs.back() : ValueId{});
  for (const Task& task : form.tasks) values.store(task, "");
  if (values.error()) return tl::make_unexpected(*values.error());
  // Where rows have one element, all of it stands in the row's scope, the sums too.
  const bool rows_are_elements = form.stages[0].axes.empty() || !single;
  (rows_are_elements ? section.late : section.early) =
      space.row_axes() + row.text + (single ? values.take_early() : "");
  section.late += values.close();
  globals += values.globals();
  return section;
}

Result<SumsEpilogue::Text> SumsEpilogue::emit(llvm::ArrayRef<SymbolId> parameters,
                                              Access access) const {
  Text text;
  for (const ColocatedRows::Section& rows : rows_.sections) {
    SINTER_LET(section, this->section(rows, parameters, access, text.globals));
    text.sections.push_back(std::move(section));
  }
  return text;
}

std::string SumsEpilogue::condition(const Section& section) const {
  std::string text = section.first > 0 ? fmt::format("matrix_row >= {}", section.first) : "";
  if (const int64_t end = section.first + section.width; end < matrix_rows())
    text += fmt::format("{}matrix_row < {}", text.empty() ? "" : " && ", end);
  return text;
}

std::string SumsEpilogue::of_matrix_row(llvm::ArrayRef<Section> sections) const {
  std::string text;
  for (const Section& section : sections) {
    const std::string when = condition(section);
    text +=
        fmt::format("{}{{\n{}}}\n", when.empty() ? "" : fmt::format("if ({}) ", when),
                    indented(fmt::format("const int i = {};\n", element_of_section(section.first)) +
                             section.early + section.late));
  }
  return text;
}

}  // namespace sinter
