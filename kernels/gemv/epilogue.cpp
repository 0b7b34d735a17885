// The emitter of elements writes every section, for a graph of its own that has the sums as its
// last input. Threads take the block's sums (items) in turn. `row` is the token, `matrix_row` the
// row of the matrix, `i` the element of the section:
//
//   const auto x3 = product.sums();
//   product.run();
//   for (item ...) {
//     const long long row = item / product.rows();
//     const int matrix_row = product.row(item % product.rows());
//     if (matrix_row < 2048) { const int i = matrix_row; ... store(y0 + i, ...); }
//     if (matrix_row >= 2048 && matrix_row < 2560) { const int i = matrix_row - 2048; ... }
//   }
//
// A single section may load what needs no sums for each thread's first item before product.run().
#include "kernels/gemv/epilogue.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "ir/builder.h"
#include "ir/graph_copier.h"
#include "ir/integers.h"

namespace sinter {
namespace {

std::string element_of(int64_t first) {
  return first > 0 ? fmt::format("matrix_row - {}", first) : "matrix_row";
}

}  // namespace

Result<GemvEpilogue> GemvEpilogue::create(const Graph& group, ValueId anchor,
                                          llvm::ArrayRef<ValueId> results,
                                          llvm::ArrayRef<Symbol> symbols) {
  GemvEpilogue epilogue(group, anchor, symbols);
  SINTER_TRY(epilogue.deal(results));
  return epilogue;
}

/// A graph that computes copies of `outputs`; its last input is the sums in float32.
Graph GemvEpilogue::graph_of(llvm::ArrayRef<ValueId> outputs) const {
  const Op& op = group_[anchor_];
  Graph graph;
  GraphCopier copy(group_, graph);
  Builder builder(graph, symbols_, "sum");
  const ValueId sums = builder.leaf(OpKind::input, {DType::f32, op.type.dims}, "sums");
  ValueId result = sums;
  if (op.operands.size() == 3)
    result = builder.add(result, builder.cast(copy(op.operands[2]), DType::f32));
  copy.define(anchor_, builder.cast(result, op.type.dtype));
  for (ValueId output : outputs) graph.outputs.push_back(copy(output));
  return graph;
}

Status GemvEpilogue::deal(llvm::ArrayRef<ValueId> results) {
  const Graph graph = graph_of(results);
  auto found = colocated_rows(graph, graph.inputs.back(), symbols_);
  if (!std::holds_alternative<ColocatedRows>(found))
    return fail("the epilogue of a gemv needs sums of other blocks", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  rows_ = std::get<ColocatedRows>(std::move(found));
  // Members are results of the group, not their copies.
  for (ColocatedRows::Section& section : rows_.sections)
    for (ValueId& member : section.members)
      member = results[llvm::find(graph.outputs, member) - graph.outputs.begin()];
  return {};
}

Result<GemvEpilogue::Section> GemvEpilogue::section(const ColocatedRows::Section& rows,
                                                    llvm::ArrayRef<SymbolId> parameters,
                                                    std::string& globals) const {
  Section section{rows.first, rows.width, {}, {}};
  SINTER_LET(form, analyze_group(graph_of(rows.members), 1, symbols_, true));
  if (form.reduces || form.stages.size() != 1 || !form.stages[0].width.is(rows.width))
    return fail("the epilogue of a gemv is no row of elements", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  for (size_t k = 0; k < rows.members.size(); ++k)
    form.output_names.push_back(
        fmt::format("y{}", llvm::find(group_.outputs, rows.members[k]) - group_.outputs.begin()));
  form.table_name = fmt::format("section{}_{}_table", rows.first, rows.width);
  LoopSpace space(form, symbols_, parameters);
  ValueEmitter values(form, space);
  CodeScope row;
  values.open(0, 0, row, false, true, form.graph.inputs.back());
  for (const Task& task : form.tasks) values.store(task, "");
  if (values.error()) return tl::make_unexpected(*values.error());
  // Where rows have one element, all of it stands in the row's scope, the sums too.
  const bool rows_are_elements = form.stages[0].axes.empty();
  (rows_are_elements ? section.late : section.early) =
      space.row_axes() + row.text + values.take_early();
  section.late += values.close();
  globals += values.globals();
  return section;
}

/// When a row of the matrix is the section's; empty: always.
std::string GemvEpilogue::condition(const Section& section) const {
  std::string text = section.first > 0 ? fmt::format("matrix_row >= {}", section.first) : "";
  if (const int64_t end = section.first + section.width; end < matrix_rows())
    text += fmt::format("{}matrix_row < {}", text.empty() ? "" : " && ", end);
  return text;
}

int64_t GemvEpilogue::tokens() const {
  return SymExpr(group_[anchor_].type.dims[0]).upper_bound(symbols_);
}

/// The token and the matrix row of `item`.
std::string GemvEpilogue::coordinates() const {
  if (tokens() == 1)
    return "constexpr long long row = 0;\nconst int matrix_row = product.row(item);\n";
  return "const long long row = item / product.rows();\n"
         "const int matrix_row = product.row(item % product.rows());\n";
}

std::string GemvEpilogue::in_loop(llvm::ArrayRef<Section> sections, const Form& form) const {
  std::string text = coordinates();
  for (const Section& section : sections) {
    const std::string when = condition(section);
    text += fmt::format("{}{{\n{}}}\n", when.empty() ? "" : fmt::format("if ({}) ", when),
                        indented(fmt::format("const int i = {};\n", element_of(section.first)) +
                                 section.early + section.late));
  }
  return fmt::format(
      "product.run();\n{}for (int item = thread; item < items; item += {}) {{\n{}}}\n", form.wait,
      form.threads, indented(text));
}

/// Text that loads the inputs of a thread's first item, but for its sum, ahead of the product.
std::string GemvEpilogue::loaded_ahead(const Section& section, const Form& form) const {
  const std::string when = condition(section), element = element_of(section.first);
  const int64_t classes = ceil_div(matrix_rows() / rows_.units, form.blocks);
  const bool loops = classes * rows_.units * tokens() > form.threads;
  std::string text = coordinates();
  std::string index = fmt::format("const int i = {};\n", element);
  if (!when.empty())
    index = fmt::format("const bool has_result = {};\nconst int i = has_result ? {} : 0;\n", when,
                        element);
  text += index + section.early;
  const std::string run = "product.run();\n" + form.wait;
  text += loops ? fmt::format("if (is_first) {{\n{}}}\n", indented(run)) : run;
  text += fmt::format("if (has_item{}) {{\n{}}}\n", when.empty() ? "" : " && has_result",
                      indented(section.late));
  const std::string first = "thread < items ? thread : 0";
  if (!loops)
    return fmt::format("const bool has_item = thread < items;\nconst int item = {};\n", first) +
           text;
  return fmt::format(
      "const auto compute = [&](int item, bool has_item, bool is_first) {{\n{}}};\n"
      "compute({}, thread < items, true);\n"
      "for (int item = thread + {}; item < items; item += {}) compute(item, true, false);\n",
      indented(text), first, form.threads, form.threads);
}

Result<GemvEpilogue::Text> GemvEpilogue::emit(llvm::ArrayRef<SymbolId> parameters,
                                              const Form& form) const {
  Text text;
  std::vector<Section> sections;
  for (const ColocatedRows::Section& rows : rows_.sections) {
    SINTER_LET(section, this->section(rows, parameters, text.globals));
    sections.push_back(std::move(section));
  }
  text.body = fmt::format(
      "const int thread = threadIdx.x, items = product.rows(){};\n"
      "const auto x{} = product.sums();\n",
      tokens() == 1 ? "" : " * tokens", group_.inputs.size());
  text.body += sections.size() == 1 && form.loads_ahead ? loaded_ahead(sections[0], form)
                                                        : in_loop(sections, form);
  return text;
}

}  // namespace sinter
