#include "driver/compile/stated_sizes.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/op_roles.h"

namespace sinter {
namespace {

struct UsualSize {
  std::string_view symbol;
  int64_t value;
};
// Symbols of the models that the frontends build.
constexpr UsualSize kUsualSizes[] = {{"N", 512}, {"M", 1}, {"B", 1}, {"R", 1024}, {"K", 1024}};
constexpr int64_t kOtherSize = 512;
// The symbol of these whose range ends at the tokens of a model's longest text.
constexpr std::string_view kTokensOfText = "M";

/// The symbol's usual size, as far as its range and the sizes of the symbols before it allow.
int64_t usual_size(const Symbol& symbol, int64_t longest, llvm::ArrayRef<int64_t> before) {
  int64_t value = kOtherSize;
  for (const UsualSize& usual : kUsualSizes)
    if (usual.symbol == symbol.name) value = usual.value;
  value = std::min(value, longest);
  if (symbol.at_most) value = std::min(value, before[symbol.at_most->index]);
  value = std::clamp(value, symbol.low, symbol.high);
  // The range's ends need not be multiples; some multiple lies between them.
  value -= value % symbol.multiple;
  if (value < symbol.low) value += symbol.multiple;
  return value;
}

std::vector<int64_t> sizes_with(llvm::ArrayRef<Symbol> symbols, const GivenSizes& given) {
  const auto named = [&](std::string_view name) {
    return llvm::find_if(symbols, [&](const Symbol& symbol) { return symbol.name == name; });
  };
  const bool of_model = llvm::all_of(
      kUsualSizes, [&](const UsualSize& usual) { return named(usual.symbol) != symbols.end(); });
  const int64_t longest = of_model ? named(kTokensOfText)->high : INT64_MAX;
  std::vector<int64_t> sizes;
  for (const Symbol& symbol : symbols) {
    const auto own =
        llvm::find_if(given, [&](const auto& size) { return size.first == symbol.name; });
    sizes.push_back(own == given.end() ? usual_size(symbol, longest, sizes) : own->second);
  }
  return sizes;
}

/// The step writes rows of a state and leaves its other rows alone.
bool writes_rows_of(const EntryPlan& entry, const StepFacts& step, uint32_t state) {
  for (size_t k = 0; k < step.writes.size(); ++k) {
    const Buffer& written = entry.buffers[step.writes[k]];
    if (written.place == Buffer::Place::state && written.index == state)
      return writes_rows(step.kernel->group[step.kernel->group.outputs[k]]);
  }
  return false;
}

}  // namespace

std::vector<int64_t> usual_sizes(llvm::ArrayRef<Symbol> symbols) { return sizes_with(symbols, {}); }

Result<std::vector<int64_t>> stated_sizes(llvm::ArrayRef<Symbol> symbols, const GivenSizes& given) {
  for (const auto& [name, value] : given) {
    const auto at =
        llvm::find_if(symbols, [&](const Symbol& symbol) { return symbol.name == name; });
    if (at == symbols.end()) {
      std::vector<std::string_view> names;
      for (const Symbol& symbol : symbols) names.push_back(symbol.name);
      return fail(fmt::format("no symbol is called \"{}\"", printable(name)), "--symbol",
                  names.empty() ? "all sizes of this model are fixed: leave it out"
                                : fmt::format("its symbols are {}", fmt::join(names, ", ")),
                  ExitCode::usage);
    }
    if (value < at->low || value > at->high || value % at->multiple != 0)
      return fail(fmt::format("{} is {}", printable(name), value), "--symbol",
                  fmt::format("it can be {} to {}{}", at->low, at->high,
                              at->multiple == 1 ? std::string()
                                                : fmt::format(" in steps of {}", at->multiple)),
                  ExitCode::usage);
  }
  std::vector<int64_t> sizes = sizes_with(symbols, given);
  if (Status possible = check_symbol_values(symbols, sizes); !possible)
    return fail(possible.error().what, "--symbol", "give other sizes", ExitCode::usage);
  return sizes;
}

std::string show_sizes(const Program& program, const EntryPlan& entry,
                       llvm::ArrayRef<int64_t> sizes) {
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  std::vector<bool> used(symbols.size(), false);
  const auto use = [&](const Buffer& buffer) {
    for (Dim dim : buffer.type.dims)
      if (!dim.is_constant()) used[dim.symbol().index] = true;
  };
  for (const Buffer& buffer : entry.buffers)
    if (buffer.place != Buffer::Place::state) use(buffer);
  // A state counts where a step reads it or replaces it.
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    for (uint32_t read : facts.reads) {
      const Buffer& state = entry.buffers[read];
      if (state.place == Buffer::Place::state && !writes_rows_of(entry, facts, state.index))
        use(state);
    }
  }
  std::string text;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (used[i]) text += fmt::format("{}{}={}", text.empty() ? "" : " ", symbols[i].name, sizes[i]);
  return text;
}

}  // namespace sinter
