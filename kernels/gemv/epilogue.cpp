// Threads take the block's sums (items) in turn:
//
//   const auto x3 = product.sums();
//   product.run();
//   for (item ...) {
//     const long long row = item / product.rows();
//     const int matrix_row = product.row(item % product.rows());
//     if (matrix_row < 2048) { ... }           the sections, kernels/common/sums_epilogue.h
//   }
//
// A single section may load what needs no sums for each thread's first item before product.run().
#include "kernels/gemv/epilogue.h"

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "ir/integers.h"

namespace sinter {
namespace {

using Section = SumsEpilogue::Section;

/// The token and the matrix row of `item`.
std::string coordinates(const SumsEpilogue& epilogue) {
  if (epilogue.tokens() == 1)
    return "constexpr long long row = 0;\nconst int matrix_row = product.row(item);\n";
  return "const long long row = item / product.rows();\n"
         "const int matrix_row = product.row(item % product.rows());\n";
}

std::string in_loop(const SumsEpilogue& epilogue, llvm::ArrayRef<Section> sections,
                    const GemvEpilogueForm& form) {
  return fmt::format(
      "product.run();\n{}for (int item = thread; item < items; item += {}) {{\n{}}}\n", form.wait,
      form.threads, indented(coordinates(epilogue) + epilogue.of_matrix_row(sections)));
}

/// Text that loads the inputs of a thread's first item, but for its sum, ahead of the product.
std::string loaded_ahead(const SumsEpilogue& epilogue, const Section& section,
                         const GemvEpilogueForm& form) {
  const std::string when = epilogue.condition(section), element = element_of_section(section.first);
  const int64_t units = epilogue.rows().units;
  const int64_t classes = ceil_div(epilogue.matrix_rows() / units, form.blocks);
  const bool loops = classes * units * epilogue.tokens() > form.threads;
  std::string text = coordinates(epilogue);
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

}  // namespace

Result<GemvEpilogueText> emit_gemv_epilogue(const SumsEpilogue& epilogue,
                                            llvm::ArrayRef<SymbolId> parameters,
                                            const GemvEpilogueForm& form) {
  SINTER_LET(text, epilogue.emit(parameters, SumsEpilogue::Access::sum));
  const bool ahead = text.sections.size() == 1 && form.loads_ahead;
  return GemvEpilogueText{
      std::move(text.globals),
      fmt::format("const int thread = threadIdx.x, items = product.rows(){};\n"
                  "const auto x{} = product.sums();\n",
                  epilogue.tokens() == 1 ? "" : " * tokens", epilogue.inputs()) +
          (ahead ? loaded_ahead(epilogue, text.sections[0], form)
                 : in_loop(epilogue, text.sections, form))};
}

}  // namespace sinter
