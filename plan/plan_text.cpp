#include "plan/plan_text.h"

#include <llvm/ADT/STLExtras.h>
#include <xxhash.h>

#include <charconv>

#include "ir/text.h"
#include "ir/variants.h"
#include "plan/kernel_text.h"
#include "plan/plan_file.h"

namespace sinter {
namespace plan_text {
namespace {

/// A number and a symbol for each axis of a type. The checker counts symbols from their smallest
/// values: a product of n of them becomes 2^n terms.
constexpr size_t kMaxFactors = 9;

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<SymbolId> find_symbol(std::string_view name, llvm::ArrayRef<Symbol> symbols) {
  for (uint32_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].name == name) return SymbolId{i};
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A factor of a product: an integer or a symbol.
Result<SymExpr> parse_factor(std::string_view text, llvm::ArrayRef<Symbol> symbols) {
  if (auto symbol = find_symbol(text, symbols)) return SymExpr(Dim(*symbol));
  if (auto value = parse_integer(text)) return SymExpr(*value);
  return fail(fmt::format("\"{}\" is neither a symbol nor a number of 63 bits", printable(text)));
}

}  // namespace

Result<SymExpr> parse_expr(std::string_view text, llvm::ArrayRef<Symbol> symbols) {
  SymExpr sum = 0;
  SymExpr product = 1;
  size_t begin = 0, factors = 0;
  if (text.starts_with('-')) {
    product = -1;
    begin = 1;
  }
  for (size_t at = begin; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : '+';
    if (c != '*' && c != '+' && c != '-') continue;
    SINTER_LET(factor, parse_factor(trimmed(text.substr(begin, at - begin)), symbols));
    if (++factors > kMaxFactors)
      return fail(fmt::format("\"{}\" has a product of more than {} factors", printable(text),
                              kMaxFactors));
    product = product * factor;
    begin = at + 1;
    if (c == '*') continue;
    factors = 0;
    sum += product;
    product = c == '-' ? -1 : 1;
  }
  if (sum.overflowed()) return fail(fmt::format("\"{}\" exceeds 63 bits", printable(text)));
  return sum;
}

Result<TensorType> parse_type(std::string_view text, llvm::ArrayRef<Symbol> symbols) {
  const size_t open = text.find('[');
  const auto dtype = parse_dtype(text.substr(0, open));
  if (!dtype || open == std::string_view::npos || !text.ends_with(']'))
    return fail(fmt::format("expected a type such as f32[N, 64], got \"{}\"", printable(text)));
  TensorType type{*dtype, {}};
  std::string_view rest = trimmed(text.substr(open + 1, text.size() - open - 2));
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view extent = trimmed(rest.substr(0, comma));
    if (const auto symbol = find_symbol(extent, symbols)) {
      type.dims.push_back(Dim(*symbol));
    } else {
      const auto value = parse_integer(extent);
      if (!value || *value < 0) return fail(fmt::format("\"{}\" is no extent", printable(extent)));
      type.dims.push_back(Dim(*value));
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return type;
}

std::string print_tables(const Program& program) {
  return print_module(Module{program.name, program.symbols, program.weights, program.states, {}});
}

}  // namespace plan_text

std::string kernel_path(const Kernel& kernel) { return "kernels/" + kernel.name + ".cu"; }

std::string content_hash(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string text_hash(const Kernel& kernel) {
  return kernel.source.empty() ? kernel.source_hash : content_hash(kernel.source);
}

Status attach_source(Program& program, size_t index, std::string source) {
  Kernel& kernel = program.kernels[index];
  const std::string hash = content_hash(source);
  if (hash != kernel.source_hash)
    return fail(fmt::format("hash {} of the kernel's text is not the plan's, {}", hash,
                            printable(kernel.source_hash)),
                kernel_path(kernel), "compile the model again");
  SINTER_TRY(check_text(kernel, narrowed(program.symbols, kernel.range), source));
  kernel.source = std::move(source);
  return {};
}

std::string weights_fingerprint(const Program& program) {
  return content_hash(print_module(Module{"weights", program.symbols, program.weights, {}, {}}));
}

}  // namespace sinter
