// Every section is written by the emitter of elements, for a graph of its own that begins with the
// sums. A thread takes rows of the block in turn; `place` is the row's number in the matrix:
//
//   const auto x3 = product.run();
//   for (item ...) {
//     const int place = product.row(...);
//     if (place < 2048) { const int i = place; ... store(y0 + i, ...); }
//     if (place >= 2048 && place < 2560) { const int i = place - 2048; ... }
//   }
#include "kernels/gemv/epilogue.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/op_copier.h"
#include "ir/builder.h"
#include "ir/integers.h"

namespace sinter {
namespace {

std::string element_of(int64_t first) {
  return first > 0 ? fmt::format("place - {}", first) : "place";
}

}  // namespace

Result<GemvEpilogue> GemvEpilogue::create(const Graph& group, ValueId anchor,
                                          llvm::ArrayRef<ValueId> results,
                                          llvm::ArrayRef<Symbol> symbols) {
  GemvEpilogue behind(group, anchor, symbols);
  SINTER_TRY(behind.deal(results));
  return behind;
}

/// A graph of what stands behind, its last input the sums in float32; with copies of `outputs`.
Graph GemvEpilogue::graph_of(llvm::ArrayRef<ValueId> outputs) const {
  const Op& op = group_[anchor_];
  Graph graph;
  OpCopier copy(group_, graph);
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
    return fail("what stands behind a gemv needs sums of other blocks", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  rows_ = std::get<ColocatedRows>(std::move(found));
  // Members are results of the group, not their copies.
  for (ColocatedRows::Section& section : rows_.sections)
    for (ValueId& member : section.members)
      member = results[llvm::find(graph.outputs, member) - graph.outputs.begin()];
  return {};
}

Result<GemvEpilogue::Section> GemvEpilogue::section(const ColocatedRows::Section& rows,
                                                    llvm::ArrayRef<SymbolId> parameters) const {
  Section section{rows.first, rows.width, {}, {}, {}, {}};
  for (size_t k = 0, own = 0; k < group_.outputs.size(); ++k)
    if (llvm::is_contained(rows.members, group_.outputs[k]))
      section.results += fmt::format("auto* const y{} = out{};\n", own++, k);
  SINTER_LET(form, analyze_group(graph_of(rows.members), 1, symbols_, true));
  if (form.reduces || form.stages.size() != 1 || !form.stages[0].width.is(rows.width))
    return fail("what stands behind a gemv is no row of elements", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  LoopSpace space(form, symbols_, parameters);
  ValueEmitter values(form, space);
  CodeScope row;
  values.open(0, 0, row, false, true, form.graph.inputs.back());
  for (const Task& task : form.tasks) values.store(task, "");
  if (values.error()) return tl::make_unexpected(*values.error());
  // Of rows of one element all stands in the row's scope, the sums too.
  const bool rows_are_elements = form.stages[0].axes.empty();
  (rows_are_elements ? section.late : section.early) =
      space.row_axes() + row.text + values.take_early();
  section.late += values.close();
  section.globals = values.globals();
  return section;
}

/// When a place is the section's; empty: always.
std::string GemvEpilogue::condition(const Section& section) const {
  std::string text = section.first > 0 ? fmt::format("place >= {}", section.first) : "";
  if (const int64_t end = section.first + section.width; end < matrix_rows())
    text += fmt::format("{}place < {}", text.empty() ? "" : " && ", end);
  return text;
}

std::string GemvEpilogue::visit(const Section& section, std::string_view name) const {
  const std::string when = condition(section);
  return fmt::format("{}{{\n", when.empty() ? "" : fmt::format("if ({}) ", when)) +
         indented(fmt::format("using namespace {};\nconst int i = {};\n", name,
                              element_of(section.first)) +
                  section.results + section.early + section.late) +
         "}\n";
}

int64_t GemvEpilogue::tokens() const {
  return SymExpr(group_[anchor_].type.dims[0]).upper_bound(symbols_);
}

Result<GemvEpilogue::Text> GemvEpilogue::emit(llvm::ArrayRef<SymbolId> parameters,
                                              const Form& form) const {
  const int64_t threads = form.threads;
  Text text;
  std::vector<Section> sections;
  std::string all;
  const auto name = [](size_t section) { return fmt::format("behind{}", section); };
  for (const ColocatedRows::Section& rows : rows_.sections) {
    SINTER_LET(section, this->section(rows, parameters));
    text.globals += fmt::format("namespace {} {{\n{}}}\n", name(sections.size()), section.globals);
    all += visit(section, name(sections.size()));
    sections.push_back(std::move(section));
  }
  const std::string rows_and_tokens =
      tokens() == 1 ? "product.rows()"
                    : fmt::format("product.rows() * static_cast<int>({})",
                                  size_code(SymExpr(group_[anchor_].type.dims[0]), parameters));
  const auto place = [&](std::string_view item) {
    return tokens() == 1
               ? fmt::format("constexpr long long row = 0;\nconst int place = product.row({});\n",
                             item)
               : fmt::format(
                     "const long long row = {0} / product.rows();\n"
                     "const int place = product.row({0} % product.rows());\n",
                     item);
  };
  const auto rest = [&](const std::string& first) {
    return fmt::format("for (int item = {}; item < items; item += {}) {{\n{}}}\n", first, threads,
                       indented(place("item") + all));
  };
  const std::string run =
      fmt::format("const auto x{} = product.run();\n{}", group_.inputs.size(), form.wait);
  std::string body = fmt::format("const int thread = threadIdx.x, items = {};\n", rows_and_tokens);
  if (sections.size() != 1 || !form.loads_ahead) {
    body += run + rest("thread");
  } else {
    // A thread's first element is known before the product, and what it needs is loaded by then.
    const Section& section = sections[0];
    const std::string when = condition(section), element = element_of(section.first);
    body += fmt::format("const int item = thread < items ? thread : 0;\n{}using namespace {};\n",
                        place("item"), name(0));
    body += when.empty() ? fmt::format("const int i = {};\n", element)
                         : fmt::format("const bool mine = {};\nconst int i = mine ? {} : 0;\n",
                                       when, element);
    body += section.results + section.early + run +
            fmt::format("if (thread < items{}) {{\n{}}}\n", when.empty() ? "" : " && mine",
                        indented(section.late));
    const int64_t classes = ceil_div(matrix_rows() / rows_.units, form.blocks);
    if (classes * rows_.units * tokens() > threads)
      body += rest(fmt::format("thread + {}", threads));
  }
  text.body = "{\n" + body + "}\n";
  return text;
}

}  // namespace sinter
