#include "driver/generate/prefill_chunk.h"

#include <algorithm>

namespace sinter {
namespace {

constexpr int64_t kWholeTiles = 64;  // tokens

/// Symbol values of the largest call of `count` tokens: the last, which sees all rows.
std::vector<int64_t> largest_call(llvm::ArrayRef<Symbol> symbols, const PromptSizes& sizes,
                                  int64_t count) {
  std::vector<int64_t> values = min_symbol_values(symbols);
  const auto set = [&](std::string_view name, int64_t value) {
    const auto at = static_cast<size_t>(find_symbol(symbols, name));
    values[at] = rounded_up(value, symbols[at]);
  };
  set("N", count);
  set("M", sizes.wanted == Wanted::all ? count : std::min(count, sizes.sequences));
  set("R", std::max(sizes.sequences * sizes.capacity, sizes.rows));
  set("K", sizes.rows);
  return values;
}

}  // namespace

PromptSizes prompt_sizes(llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t capacity,
                         Wanted wanted) {
  PromptSizes sizes{.capacity = capacity, .wanted = wanted};
  for (const auto& prompt : prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    sizes.tokens += length;
    sizes.rows = sizes.sequences++ * capacity + length;
  }
  return sizes;
}

Result<int64_t> prefill_arena_bytes(const Program& program, const PromptSizes& sizes,
                                    int64_t count) {
  const EntryPlan* entry = program.find_entry("prefill");
  if (!entry)
    return fail("the plan has no entry prefill", program.name, "only language models are prompted");
  return arena_bytes(*entry, largest_call(program.symbols, sizes, count));
}

Result<PrefillChunk> choose_chunk(const Program& program, const PromptSizes& sizes,
                                  const PrefillOptions& options) {
  SINTER_TRY(require_decoder_symbols(program));
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  const auto bytes = [&](int64_t count) { return prefill_arena_bytes(program, sizes, count); };
  const auto made = [&](int64_t count) -> Result<PrefillChunk> {
    SINTER_TRY(check_symbol_values(symbols, largest_call(symbols, sizes, count)));
    SINTER_LET(arena, bytes(count));
    return PrefillChunk{count, (sizes.tokens + count - 1) / count, arena, options.activation_bytes};
  };
  const auto largest = [&](std::string_view symbol) {
    return symbols[static_cast<size_t>(find_symbol(symbols, symbol))].high;
  };
  int64_t most = std::min({sizes.tokens, largest("N"), options.chunk.value_or(INT64_MAX)});
  if (sizes.wanted == Wanted::all || sizes.sequences > largest("M"))
    most = std::min(most, largest("M"));
  SINTER_LET(all, bytes(most));
  if (all <= options.activation_bytes) return made(most);
  SINTER_LET(least, bytes(1));
  if (least > options.activation_bytes)
    return fail(fmt::format("a call of one token needs {} bytes for activations, {} are allowed",
                            least, options.activation_bytes),
                program.name, fmt::format("set activation-memory to {}B or more", least),
                ExitCode::usage);
  // An arena grows with the number of tokens, since buffers have products of extents for sizes.
  int64_t fits = 1, exceeds = most;
  while (exceeds - fits > 1) {
    const int64_t middle = fits + (exceeds - fits) / 2;
    SINTER_LET(needed, bytes(middle));
    (needed <= options.activation_bytes ? fits : exceeds) = middle;
  }
  return made(fits < kWholeTiles ? fits : fits / kWholeTiles * kWholeTiles);
}

}  // namespace sinter
