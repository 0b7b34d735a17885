// Index expressions as C++ text.
#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_index.h"

namespace sinter {

std::string size_code(const SymExpr& e, llvm::ArrayRef<SymbolId> parameters, bool nested) {
  if (e.is_constant()) return fmt::format("{}", e.constant());
  std::string text;
  for (const SymExpr::Term& term : llvm::reverse(e.terms())) {
    std::string product;
    for (SymbolId symbol : term.symbols)
      product += fmt::format("{}n{}", product.empty() ? "" : " * ",
                             llvm::find(parameters, symbol) - parameters.begin());
    if (term.symbols.empty())
      product = fmt::format("{}", term.coefficient);
    else if (term.coefficient != 1)
      product += fmt::format(" * {}", term.coefficient);
    text += (text.empty() ? "" : " + ") + product;
  }
  const bool single =
      e.terms().size() == 1 && e.terms()[0].symbols.size() == 1 && e.terms()[0].coefficient == 1;
  return single || !nested ? text : "(" + text + ")";
}

std::string LoopSpace::size_code(const SymExpr& e, bool nested) const {
  return sinter::size_code(e, parameters_, nested);
}

void LoopSpace::use(const std::string& axis) {
  if (!axis.empty()) used_[axis] = true;
}

LoopSpace::Factor LoopSpace::atom_code(const IndexExpr::Atom& atom, bool at_chunk) {
  if (atom.kind == IndexExpr::Atom::Kind::variable) {
    const Variable& variable = variables_[atom.variable];
    const bool is_row = is_row_axis(atom.variable);
    use(variable.used);
    if (is_row) use(kRow);
    return {at_chunk ? variable.chunk_code : variable.element_code, is_row};
  }
  const char* operation = atom.kind == IndexExpr::Atom::Kind::quotient ? "/" : "%";
  return {
      fmt::format("({}) {} {}", code(*atom.operand, at_chunk), operation, size_code(atom.divisor)),
      false};
}

/// Products are taken in 64 bits: a coefficient may be as large as the whole value.
void LoopSpace::append_term(std::string& text, const Factor& factor,
                            const SymExpr& coefficient) const {
  if (!text.empty()) text += " + ";
  if (coefficient.is(1)) {
    text += factor.code;
    return;
  }
  const bool is_name = factor.code.find(' ') == std::string::npos;
  text += is_name ? factor.code : "(" + factor.code + ")";
  text += " * " + size_code(coefficient);
  if (coefficient.is_constant() && !factor.is_wide) text += "ll";
}

std::string LoopSpace::code(const IndexExpr& e, bool at_chunk) {
  IndexExpr rest = lower(e);
  std::string text;
  const auto take_run = [&](const Run& run) {
    if (run.count < 2) return;
    const DimsRef dims = DimsRef(extents_).slice(run.first, run.count);
    const auto strides = row_major_strides(dims);
    std::optional<SymExpr> scale;
    for (uint32_t k = 0; k < run.count; ++k) {
      if (dims[k].is(1)) continue;
      const auto ratio = rest.coefficient(run.first + k).divide_exactly(strides[k]);
      if (!ratio || ratio->is(0) || (scale && *scale != *ratio)) return;
      scale = ratio;
    }
    if (!scale) return;
    for (uint32_t k = 0; k < run.count; ++k)
      rest += IndexExpr::variable(run.first + k) * (SymExpr(0) - rest.coefficient(run.first + k));
    const bool is_row = is_row_axis(run.first);
    append_term(text, {at_chunk ? run.chunk_code : run.element_code, is_row}, *scale);
    use(run.used);
    if (is_row) use(kRow);
  };
  for (const Run& run : row_runs_) take_run(run);
  for (const Run& run : loops_[stage_].runs) take_run(run);
  for (const IndexExpr::Term& term : rest.terms())
    append_term(text, atom_code(term.atom, at_chunk), term.coefficient);
  if (text.empty()) return size_code(rest.constant());
  const SymExpr& constant = rest.constant();
  if (constant.is_constant() && constant.constant() < 0)
    return text + fmt::format(" - {}", -constant.constant());
  if (!constant.is(0)) text += " + " + size_code(constant);
  return text;
}

std::string LoopSpace::key(const IndexExpr& e) const {
  const auto symbolic = [](const SymExpr& s) {
    std::string text;
    for (const SymExpr::Term& term : s.terms()) {
      text += fmt::format("{}", term.coefficient);
      for (SymbolId symbol : term.symbols) text += fmt::format("s{}", symbol.index);
      text += ',';
    }
    return text;
  };
  const IndexExpr flat = lower(e);
  std::string text = symbolic(flat.constant());
  for (const IndexExpr::Term& term : flat.terms()) {
    text += fmt::format("+{}*", symbolic(term.coefficient));
    if (term.atom.kind == IndexExpr::Atom::Kind::variable)
      text += fmt::format("v{}", term.atom.variable);
    else
      text += fmt::format("{}({}){}", term.atom.kind == IndexExpr::Atom::Kind::quotient ? "q" : "m",
                          key(*term.atom.operand), symbolic(term.atom.divisor));
  }
  return text;
}

}  // namespace sinter
