#include "driver/generate/decoder.h"

#include <algorithm>

#include "driver/text_table.h"
#include "frontends/model/build_model.h"
#include "runtime/compare.h"

namespace sinter {

int64_t rounded_up(int64_t value, const Symbol& symbol) {
  const int64_t at_least = std::max(value, symbol.low);
  return (at_least + symbol.multiple - 1) / symbol.multiple * symbol.multiple;
}

std::vector<int64_t> min_symbol_values(llvm::ArrayRef<Symbol> symbols) {
  return symbol_values_near(symbols, 0);
}

std::vector<int64_t> symbol_values_near(llvm::ArrayRef<Symbol> symbols, int64_t wanted,
                                        llvm::ArrayRef<std::optional<int64_t>> known) {
  const auto is_known = [&](size_t symbol) { return !known.empty() && known[symbol]; };
  std::vector<int64_t> values;
  for (const Symbol& symbol : symbols) {
    if (is_known(values.size())) {
      values.push_back(*known[values.size()]);
      continue;
    }
    int64_t most = symbol.high;
    if (symbol.at_most) most = std::min(most, values[symbol.at_most->index]);
    most = most / symbol.multiple * symbol.multiple;
    values.push_back(std::max(symbol.low, std::min(rounded_up(wanted, symbol), most)));
  }
  for (size_t i = symbols.size(); i-- > 0;)
    if (symbols[i].at_most && !is_known(symbols[i].at_most->index)) {
      int64_t& bound = values[symbols[i].at_most->index];
      const Symbol& larger = symbols[symbols[i].at_most->index];
      const int64_t most = larger.high / larger.multiple * larger.multiple;
      bound = std::max(bound, std::min(rounded_up(values[i], larger), most));
    }
  return values;
}

int32_t greedy_token(const HostTensor& logits, int64_t row) {
  const std::vector<double> values = to_doubles(logits);
  const int64_t width = logits.dims.back();
  const auto begin = values.begin() + row * width;
  return static_cast<int32_t>(std::max_element(begin, begin + width) - begin);
}

Status require_decoder_symbols(const Program& program) {
  for (std::string_view name : {"N", "M", "B", "R", "K"})
    if (find_symbol(program.symbols, name) < 0)
      return fail(fmt::format("the plan has no symbol {}", name), program.name,
                  "token sequences run on language models; give a module's inputs with --inputs");
  return {};
}

int64_t longest_text(llvm::ArrayRef<Symbol> symbols) {
  return symbols[static_cast<size_t>(find_symbol(symbols, "M"))].high;
}

int64_t sequence_rows(llvm::ArrayRef<Symbol> symbols, int64_t sequences, int64_t capacity) {
  const Symbol& rows = symbols[static_cast<size_t>(find_symbol(symbols, "R"))];
  const int64_t fewest = rounded_up(capacity, rows);
  const int64_t aligned = (fewest + kSequenceStep - 1) / kSequenceStep * kSequenceStep;
  return sequences > 1 && aligned <= rows.high / sequences ? aligned : fewest;
}

DecoderCall pack_sequences(std::string_view entry, llvm::ArrayRef<Symbol> symbols,
                           llvm::ArrayRef<std::vector<int32_t>> tokens,
                           llvm::ArrayRef<int64_t> lengths, int64_t capacity, Wanted which) {
  std::vector<int32_t> ids, pos, slot, first, wanted;
  int64_t rows = 0;
  for (size_t s = 0; s < tokens.size(); ++s) {
    const auto begin = static_cast<int64_t>(s) * capacity;
    int64_t at = lengths[s];
    for (const int32_t& id : tokens[s]) {
      if (which == Wanted::all || &id == &tokens[s].back())
        wanted.push_back(static_cast<int32_t>(ids.size()));
      ids.push_back(id);
      pos.push_back(static_cast<int32_t>(at));
      slot.push_back(static_cast<int32_t>(begin + at));
      first.push_back(static_cast<int32_t>(begin));
      rows = std::max(rows, begin + ++at);
    }
  }
  DecoderCall call{{}, min_symbol_values(symbols)};
  const auto set = [&](std::string_view name, int64_t value) {
    const size_t symbol = find_symbol(symbols, name);
    call.symbol_values[symbol] = rounded_up(value, symbols[symbol]);
  };
  set("R", static_cast<int64_t>(tokens.size()) * capacity);
  set("K", rows);
  for (const auto* values : {&ids, &pos, &slot, &first}) call.inputs.push_back(i32_tensor(*values));
  const auto count = static_cast<int64_t>(ids.size());
  if (entry == "prefill") {
    set("N", count);
    set("M", static_cast<int64_t>(wanted.size()));
    call.inputs.push_back(i32_tensor(wanted));
  } else {
    set("B", count);
  }
  return call;
}

Result<Decoder> Decoder::create(std::shared_ptr<const Executable> executable, int64_t sequences,
                                int64_t capacity) {
  const llvm::ArrayRef<Symbol> symbols = executable->program().symbols;
  SINTER_TRY(require_decoder_symbols(executable->program()));
  capacity = rounded_up(capacity, symbols[find_symbol(symbols, "R")]);
  const int64_t rows = sequence_rows(symbols, sequences, capacity);
  std::vector<int64_t> values = min_symbol_values(symbols);
  values[find_symbol(symbols, "R")] = sequences * rows;
  SINTER_LET(session, executable->new_session(values));
  return Decoder(std::move(executable), std::move(session), sequences, capacity, rows);
}

Result<RunResult> Decoder::run(std::string_view entry, llvm::ArrayRef<std::vector<int32_t>> tokens,
                               const CallOptions& options, Wanted wanted) {
  SINTER_CHECK(tokens.size() == lengths_.size(), "{} lists for {} sequences", tokens.size(),
               lengths_.size());
  for (size_t s = 0; s < tokens.size(); ++s) {
    const int64_t length = lengths_[s] + static_cast<int64_t>(tokens[s].size());
    if (tokens[s].empty())
      return fail(fmt::format("sequence {} has no tokens", s), {}, "give at least one");
    if (length > capacity_)
      return fail(fmt::format("sequence {} would have {}, the cache has room for {}", s,
                              counted(static_cast<uint64_t>(length), "token"), capacity_));
  }
  const DecoderCall call =
      pack_sequences(entry, executable_->program().symbols, tokens, lengths_, rows_, wanted);
  SINTER_LET(result, session_->run(entry, call.symbol_values, addresses_of(call.inputs), options));
  for (size_t s = 0; s < tokens.size(); ++s) lengths_[s] += static_cast<int64_t>(tokens[s].size());
  return std::move(result);
}

Result<RunResult> Decoder::prefill(llvm::ArrayRef<std::vector<int32_t>> tokens,
                                   const CallOptions& options, Wanted wanted) {
  return run("prefill", tokens, options, wanted);
}

Result<RunResult> Decoder::decode(llvm::ArrayRef<int32_t> tokens, const CallOptions& options) {
  std::vector<std::vector<int32_t>> lists;
  for (int32_t token : tokens) lists.push_back({token});
  return run("decode", lists, options, Wanted::all);
}

}  // namespace sinter
