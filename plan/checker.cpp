#include "plan/checker.h"

#include <algorithm>

#include "ir/variants.h"
#include "ir/verify_graph.h"
#include "plan/check_parts.h"

namespace sinter {
namespace checker {
namespace {

// `expr` with each symbol s written as low(s) + s, so that the new s counts from 0.
SymExpr counted_from_low(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols) {
  SymExpr result = 0;
  for (const SymExpr::Term& term : expr.terms()) {
    SymExpr product = term.coefficient;
    for (SymbolId symbol : term.symbols)
      product = product * (SymExpr(Dim(symbol)) + SymExpr(symbols[symbol.index].low));
    result += product;
  }
  return result;
}

// `expr` or something smaller: in what is subtracted, symbols may stand for their bounds. Of the
// ways to do so, one that what is added covers; else all of them.
SymExpr least(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols) {
  SymExpr result = 0;
  for (const SymExpr::Term& term : expr.terms()) {
    if (term.coefficient < 0) continue;
    SymExpr product = term.coefficient;
    for (SymbolId symbol : term.symbols) product = product * SymExpr(Dim(symbol));
    result += product;
  }
  for (const SymExpr::Term& term : expr.terms()) {
    if (term.coefficient >= 0) continue;
    SymExpr product = 0;
    for (uint32_t bounded = 0; bounded < 1u << std::min<size_t>(term.symbols.size(), 8);
         ++bounded) {
      product = term.coefficient;
      for (size_t i = 0; i < term.symbols.size(); ++i) {
        const auto& bound = symbols[term.symbols[i].index].at_most;
        product = product * SymExpr(Dim(bound && (bounded >> i & 1) ? *bound : term.symbols[i]));
      }
      if ((result + product).covers(0)) break;
    }
    result += product;
  }
  return result;
}

}  // namespace

bool never_less(const SymExpr& a, const SymExpr& b, llvm::ArrayRef<Symbol> symbols) {
  if (a.overflowed() || b.overflowed()) return false;
  if (a.covers(b)) return true;
  const SymExpr difference = a - b;
  if (difference.overflowed()) return false;
  const SymExpr shifted = counted_from_low(difference, symbols);
  if (!shifted.overflowed() && shifted.covers(SymExpr(0))) return true;
  const SymExpr bounded = counted_from_low(least(difference, symbols), symbols);
  return !bounded.overflowed() && bounded.covers(SymExpr(0));
}

std::string place(const EntryPlan& entry, size_t step) {
  std::string values;
  if (step < entry.steps.size())
    for (const std::string& value : entry.steps[step].values)
      values += fmt::format("{}%{}", values.empty() ? " (" : ", ", printable(value));
  if (!values.empty()) values += ')';
  return fmt::format("entry {}, step {}{}", printable(entry.name), step, values);
}

tl::unexpected<Error> violation(std::string what, std::string where) {
  return fail(std::move(what), std::move(where), "compile the model again", ExitCode::check_failed);
}

Status check_expr(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols, std::string_view what,
                  std::string_view where) {
  if (expr.overflowed())
    return violation(fmt::format("{} exceeds 63 bits", what), std::string(where));
  for (const SymExpr::Term& term : expr.terms())
    for (SymbolId symbol : term.symbols) {
      if (symbol.index >= symbols.size())
        return violation(fmt::format("{} uses symbol {} of {}", what, symbol.index, symbols.size()),
                         std::string(where));
    }
  return {};
}

Status check_type(const TensorType& type, llvm::ArrayRef<Symbol> symbols, std::string_view where) {
  const auto checked = sinter::check_type(
      type, [] { return "a type"; }, symbols, Place{});
  if (checked) return {};
  return violation(checked.error().error.what, std::string(where));
}

}  // namespace checker

namespace {

/// Calls prove(the program with the symbols of that range); only such symbols' values count.
template <typename Prove>
Status prove_in_range(const Program& program, const std::optional<SymbolRange>& range,
                      Prove&& prove) {
  if (!range) return prove(program);
  Program narrow = program;
  narrow.symbols = narrowed(program.symbols, range);
  return prove(narrow);
}

Status check_entry(const Program& program, const EntryPlan& entry) {
  SINTER_TRY(checker::check_buffers(program, entry));
  SINTER_LET(ranges, checker::check_steps(program, entry));
  SINTER_TRY(checker::check_places(program, entry));
  SINTER_TRY(checker::check_early_reads(program, entry));
  SINTER_TRY(checker::check_row_numbers(program, entry));
  return checker::check_arena(program, entry, ranges);
}

}  // namespace

Status check(const Program& program) {
  SINTER_TRY(checker::check_tables(program));
  for (const Kernel& kernel : program.kernels) {
    SINTER_TRY(prove_in_range(program, kernel.range, [&](const Program& narrow) {
      return checker::check_kernel(narrow, kernel);
    }));
    SINTER_TRY(checker::check_overlap(kernel));
  }
  for (const EntryPlan& entry : program.entries)
    SINTER_TRY(prove_in_range(program, entry.range,
                              [&](const Program& narrow) { return check_entry(narrow, entry); }));
  return checker::check_variants(program);
}

}  // namespace sinter
