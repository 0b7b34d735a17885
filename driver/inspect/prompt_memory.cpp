#include "driver/inspect/prompt_memory.h"

#include "driver/integers.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

Result<int64_t> stored_bytes(const TensorType& type, llvm::ArrayRef<int64_t> symbol_values) {
  if (const auto bytes = storage_bytes(type).evaluate(symbol_values)) return *bytes;
  return fail("a size exceeds 63 bits", {}, "ask for fewer or shorter prompts");
}

}  // namespace

Result<AskedPrompts> parse_prompts(std::string_view text, const std::string& where) {
  const size_t times = text.find('x');
  if (times == text.npos)
    return fail(fmt::format("\"{}\" is not COUNTxTOKENS", printable(text, 40)), where,
                "write for example 8x2048", ExitCode::usage);
  SINTER_LET(sequences, parse_integer<int64_t>(text.substr(0, times), where, {.least = 1}));
  SINTER_LET(length, parse_integer<int64_t>(text.substr(times + 1), where, {.least = 1}));
  return AskedPrompts{sequences, length};
}

Result<PromptMemory> prompt_memory(const Program& program, const AskedPrompts& prompts,
                                   const PrefillOptions& options) {
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  const auto at = [&](std::string_view name) {
    return static_cast<size_t>(find_symbol(symbols, name));
  };
  if (!program.find_entry("prefill") || find_symbol(symbols, "R") < 0)
    return fail("only language models are prompted", program.name, "leave out --prompts",
                ExitCode::usage);
  SINTER_TRY(require_decoder_symbols(program));
  const int64_t positions = longest_text(symbols);
  const Symbol& together = symbols[at("B")];
  if (prompts.length > positions)
    return fail(
        fmt::format("prompts of {} tokens, the model has {} positions", prompts.length, positions),
        "--prompts", "ask for shorter ones", ExitCode::usage);
  if (prompts.sequences > together.high)
    return fail(fmt::format("{} prompts, {} decode together", prompts.sequences, together.high),
                "--prompts", "ask for fewer", ExitCode::usage);
  const int64_t capacity = sequence_rows(symbols, prompts.sequences, prompts.length);
  PromptSizes sizes{prompts.sequences * prompts.length, prompts.sequences,
                    (prompts.sequences - 1) * capacity + prompts.length, capacity,
                    Wanted::last_of_each};
  PromptMemory memory;
  memory.prompts = prompts;
  SINTER_LET(prefill, choose_chunk(program, sizes, options));
  memory.prefill = prefill;
  SINTER_LET(at_once, prefill_arena_bytes(program, sizes, sizes.tokens));
  memory.at_once_bytes = at_once;
  std::vector<int64_t> values = min_symbol_values(symbols);
  values[at("R")] = prompts.sequences * capacity;
  for (const Weight& weight : program.weights) {
    SINTER_LET(bytes, stored_bytes(weight.type, values));
    memory.weight_bytes += bytes;
  }
  for (const State& state : program.states) {
    SINTER_LET(bytes, stored_bytes(state.type, values));
    memory.cache_bytes += bytes;
  }
  return memory;
}

}  // namespace sinter
