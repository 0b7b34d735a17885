#include "driver/bisect/plan_runs.h"

#include <algorithm>

#include "driver/embed/encode.h"
#include "driver/generate/decoder.h"
#include "driver/text_table.h"
#include "driver/verify/text_calls.h"
#include "ir/variants.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kSeededTokens = 16;

Result<std::vector<int32_t>> seeded_tokens(const ModelSpec& spec, int64_t count, uint64_t seed) {
  SINTER_LET(ids, random_tensor(DType::i32, {count}, seed, {1, 0, spec.vocabulary - 1}));
  return std::vector<int32_t>(ids.data<int32_t>(), ids.data<int32_t>() + count);
}

PlanRuns::Call call_of(std::string entry, DecoderCall call) {
  return {std::move(entry), std::move(call.symbol_values), std::move(call.inputs)};
}

/// The calls share a session, and so the sizes of its caches.
std::vector<PlanRuns::Call> calls_of_texts(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                                           llvm::ArrayRef<TextList> calls) {
  size_t longest = 0, most = 0;
  for (const TextList texts : calls) {
    most = std::max(most, texts.size());
    for (const auto& text : texts) longest = std::max(longest, text.size());
  }
  std::vector<PlanRuns::Call> made;
  for (const TextList texts : calls) {
    if (spec.encoder) {
      made.push_back(call_of("encode", pack_texts(spec, symbols, texts)));
      continue;
    }
    std::vector<std::vector<int32_t>> padded = texts.vec();
    padded.resize(most);
    made.push_back(
        call_of("prefill", pack_sequences("prefill", symbols, padded, std::vector<int64_t>(most, 0),
                                          sequence_rows(symbols, static_cast<int64_t>(most),
                                                        static_cast<int64_t>(longest)))));
  }
  return made;
}

/// A prompt, then tokens one by one, whatever the logits say.
Result<std::vector<PlanRuns::Call>> model_calls(const OpenedModel& model,
                                                const RunsOptions& options) {
  const ModelSpec& spec = *model.spec;
  const llvm::ArrayRef<Symbol> symbols = model.module.symbols;
  constexpr int64_t kCapacityStep = 8;
  const auto capacity_for = [](int64_t tokens) {
    return (tokens + kCapacityStep - 1) / kCapacityStep * kCapacityStep;
  };
  if (!options.sequences.empty()) {
    SINTER_LET(calls, text_calls(spec, symbols, options.sequences, options.sequences_origin));
    return calls_of_texts(spec, symbols, calls);
  }
  const int64_t prompt = std::min(kSeededTokens, std::max<int64_t>(spec.max_positions - 1, 1));
  const int64_t steps = spec.encoder ? 0 : std::min(options.steps, spec.max_positions - prompt);
  SINTER_LET(tokens, seeded_tokens(spec, prompt + steps, options.seed));
  const std::vector<int32_t> first(tokens.begin(), tokens.begin() + prompt);
  std::vector<PlanRuns::Call> calls;
  if (spec.encoder) {
    calls.push_back(call_of("encode", pack_texts(spec, symbols, {first})));
    return calls;
  }
  const int64_t capacity = capacity_for(prompt + steps);
  calls.push_back(call_of("prefill", pack_sequences("prefill", symbols, {first}, {0}, capacity)));
  for (int64_t i = 0; i < steps; ++i)
    calls.push_back(call_of(
        "decode", pack_sequences("decode", symbols,
                                 {std::vector<int32_t>{tokens[static_cast<size_t>(prompt + i)]}},
                                 {prompt + i}, capacity)));
  return calls;
}

/// Names of the values that an entry's plan stores, each once.
}  // namespace

Result<PlanRuns> PlanRuns::create(const OpenedModel& model, const RunsOptions& options) {
  PlanRuns runs;
  if (model.spec) {
    if (options.calls.given())
      return fail("a language model is run on tokens, not on inputs of its entries", model.origin,
                  "leave out --inputs, --random-inputs, --symbol and --calls", ExitCode::usage);
    SINTER_LET(calls, model_calls(model, options));
    runs.calls_ = std::move(calls);
    return runs;
  }
  CallsOptions wanted = options.calls;
  if (!wanted.seed) wanted.seed = options.seed;
  SINTER_LET(calls, EntryCalls::open(model, wanted));
  for (size_t i = 0; i < calls.count(); ++i) {
    SINTER_LET(inputs, calls.inputs(i));
    runs.calls_.push_back({calls[i].entry->name, calls[i].symbol_values, std::move(inputs)});
  }
  return runs;
}

Result<std::vector<CallValues>> PlanRuns::run(const Executable& executable) const {
  const Program& program = executable.program();
  SINTER_LET(session, executable.new_session(calls_.front().symbol_values));
  std::vector<CallValues> all;
  for (const Call& call : calls_) {
    SINTER_LET(plan,
               find_call(program, call.entry, call.symbol_values, calls_.front().symbol_values));
    const CallOptions options{.poison_freed = true, .keep = arena_values(*plan)};
    SINTER_LET(result,
               session->run(call.entry, call.symbol_values, addresses_of(call.inputs), options));
    CallValues values = std::move(result.kept);
    for (size_t i = 0; i < result.outputs.size(); ++i)
      values.emplace_back(plan->output_names[i], std::move(result.outputs[i]));
    for (size_t i = 0; i < program.states.size(); ++i) {
      SINTER_LET(state, session->state(i));
      values.emplace_back(program.states[i].name, std::move(state));
    }
    all.push_back(std::move(values));
  }
  return all;
}

Result<PlanRuns::Captured> PlanRuns::capture(const Executable& executable, size_t number,
                                             std::vector<std::string> keep) const {
  const Program& program = executable.program();
  SINTER_LET(session, executable.new_session(calls_.front().symbol_values));
  const auto call = [&](size_t i, const CallOptions& options) {
    return session->run(calls_[i].entry, calls_[i].symbol_values, addresses_of(calls_[i].inputs),
                        options);
  };
  for (size_t i = 0; i < number; ++i) SINTER_TRY(call(i, {}));
  Captured captured;
  for (size_t i = 0; i < program.states.size(); ++i) {
    SINTER_LET(state, session->state(i));
    captured.states.emplace_back(program.states[i].name, std::move(state));
  }
  SINTER_LET(result, call(number, {.keep = std::move(keep)}));
  captured.values = std::move(result.kept);
  return captured;
}

Result<std::optional<ElementDifference>> first_difference(const PlanRuns& runs,
                                                          llvm::ArrayRef<CallValues> plan,
                                                          llvm::ArrayRef<CallValues> reference) {
  for (size_t call = 0; call < plan.size(); ++call)
    for (const auto& [name, tensor] : plan[call]) {
      const auto same = llvm::find_if(reference[call], [&](const auto& value) {
        return value.first == name && value.second.dtype == tensor.dtype &&
               value.second.dims == tensor.dims;
      });
      if (same == reference[call].end()) continue;
      SINTER_LET(bits, compare_bits(tensor, same->second));
      if (!bits) continue;
      ElementDifference found{call, runs.calls()[call].entry, name, {}, *bits};
      int64_t rest = bits->index;
      found.index.assign(tensor.dims.size(), 0);
      for (size_t axis = tensor.dims.size(); axis-- > 0; rest /= tensor.dims[axis])
        found.index[axis] = rest % tensor.dims[axis];
      return found;
    }
  return std::nullopt;
}

std::string to_string(const ElementDifference& difference) {
  const BitDifference& bits = difference.bits;
  return fmt::format("%{}[{}] is {} (0x{:x}), unfused {} (0x{:x}); {} of {} differ",
                     printable(difference.value), fmt::join(difference.index, ", "), bits.a,
                     bits.a_bits, bits.b, bits.b_bits, bits.count,
                     counted(static_cast<uint64_t>(bits.volume), "element"));
}

}  // namespace sinter
