#include "driver/profile/workload.h"

#include <algorithm>

#include "driver/compile/plan_summary.h"
#include "driver/generate/feed_prompts.h"
#include "driver/generate/generation_state.h"
#include "driver/measure/decode_runs.h"
#include "ir/variants.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kUsualPrompt = 512;

/// A size from the options, or the usual one as far as it fits: 0 .. most.
Result<int64_t> chosen_size(std::optional<int64_t> given, int64_t usual, int64_t least,
                            int64_t most, const Model& model, std::string_view what) {
  const int64_t size = given.value_or(std::min(usual, most));
  if (size < least || size > most)
    return fail(fmt::format("{} {}: the model's positions leave {} to {}", size, what, least, most),
                model.origin, "give another -d, -p or -n", ExitCode::usage);
  return size;
}

/// Graphs of calls that are the same every time.
Result<RecordedRun> record_calls(ResidentCalls made) {
  struct State {
    ResidentCalls calls;
    CudaGraph graph;
  };
  SINTER_LET(graph, made.record());
  const auto state = std::make_shared<State>(State{std::move(made), std::move(graph)});
  return RecordedRun([state](int64_t count) -> Status {
    for (int64_t i = 0; i < count; ++i) SINTER_TRY(state->graph.launch(state->calls.stream()));
    return state->calls.stream().synchronize("recorded calls");
  });
}

void record_repeated(Workload& work) {
  work.record = [resident = work.resident](int64_t) -> Result<RecordedRun> {
    SINTER_LET(calls, resident());
    return record_calls(std::move(calls));
  };
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> decode_prompts(const Model& model,
                                                         const ProfileOptions& options,
                                                         int64_t most) {
  // One more: the first token is the prefill's.
  const int64_t room = model.spec->max_positions - most - 1;
  const int64_t usual = std::min(kUsualContext, model.spec->max_positions / options.batch);
  SINTER_LET(context, chosen_size(options.context, usual, 1, room, model, "tokens of context"));
  return random_sequences(model.spec->vocabulary, options.batch, context, options.seed);
}

namespace {

Result<Workload> decode_workload(const Model& model, const ReadyPlan& ready,
                                 const ProfileOptions& options, int64_t most) {
  SINTER_LET(prompts, decode_prompts(model, options, most));
  const auto context = static_cast<int64_t>(prompts[0].size());
  Workload work;
  work.phase = "decode";
  work.sizes = {{"context", context}};
  if (options.batch > 1) work.sizes.emplace_back("sequences", options.batch);
  work.visible = {context + 1, options.batch};
  work.grows = true;
  work.tokens = options.batch;
  const std::shared_ptr<const Executable> loaded = ready.executable;
  work.resident = [loaded, prompts, most]() -> Result<ResidentCalls> {
    SINTER_LET(state, start_generation(*loaded, prompts, most + 1, {}, {}));
    SINTER_TRY(choose_tokens(*loaded, state));
    std::vector<ResidentCall> calls = {{"decode", state.symbol_values, state.inputs},
                                       {"sample", state.symbol_values, state.inputs}};
    return ResidentCalls::create(std::move(state.session), calls);
  };
  work.record = [loaded, prompts](int64_t tokens) -> Result<RecordedRun> {
    SINTER_LET(generator, Generator::create(loaded, prompts, tokens + 1, {}));
    const std::shared_ptr<Generator> shared = std::move(generator);
    const auto started = std::make_shared<bool>(false);
    return RecordedRun([shared, started](int64_t count) -> Status {
      // The first token is the prefill's: asking for it launches a graph and waits for none.
      if (!*started) SINTER_TRY(shared->next());
      *started = true;
      for (int64_t i = 0; i < count; ++i) SINTER_TRY(shared->next());
      return {};
    });
  };
  return work;
}

Result<Workload> prefill_workload(const Model& model, const ReadyPlan& ready,
                                  const ProfileOptions& options) {
  const int64_t positions = model.spec->max_positions;
  SINTER_LET(context,
             chosen_size(options.context, 0, 0, positions - 1, model, "tokens of context"));
  SINTER_LET(prompt, chosen_size(options.prompt, kUsualPrompt, 1, positions - context, model,
                                 "tokens of prompt"));
  SINTER_LET(sequences,
             random_sequences(model.spec->vocabulary, 1, context + prompt, options.seed));
  const std::vector<int32_t>& tokens = sequences[0];
  Workload work;
  work.phase = "prefill";
  work.sizes = {{"prompt", prompt}, {"context", context}};
  work.visible.each = context + prompt;
  work.tokens = prompt;
  const std::shared_ptr<const Executable> loaded = ready.executable;
  work.resident = [loaded, tokens, context]() -> Result<ResidentCalls> {
    const Program& program = loaded->program();
    const auto capacity = static_cast<int64_t>(tokens.size());
    const std::vector<int32_t> before(tokens.begin(), tokens.begin() + context),
        now(tokens.begin() + context, tokens.end());
    DecoderCall packed = pack_sequences("prefill", program.symbols, {now}, {context}, capacity,
                                        Wanted::last_of_each);
    SINTER_TRY(check_symbol_values(program.symbols, packed.symbol_values));
    SINTER_LET(session, loaded->new_session(packed.symbol_values));
    if (context > 0) {
      SINTER_LET(chunk,
                 choose_chunk(program, prompt_sizes({before}, capacity, Wanted::last_of_each), {}));
      SINTER_TRY(feed_prompts(*session, program, {before}, capacity, chunk.tokens));
    }
    return ResidentCalls::create(std::move(session),
                                 {resident_call(program, "prefill", std::move(packed.symbol_values),
                                                std::move(packed.inputs))});
  };
  record_repeated(work);
  return work;
}

/// Values of a module's symbols: the usual values, overridden by the options.
Result<std::vector<int64_t>> module_sizes(const Model& model, llvm::ArrayRef<Symbol> symbols,
                                          const ProfileOptions& options) {
  std::vector<int64_t> sizes = usual_sizes(symbols);
  for (const auto& [name, value] : options.symbols) {
    const int symbol = find_symbol(symbols, name);
    if (symbol < 0)
      return fail(fmt::format("no symbol is called \"{}\"", printable(name)), model.origin, {},
                  ExitCode::usage);
    sizes[static_cast<size_t>(symbol)] = value;
  }
  SINTER_TRY(check_symbol_values(symbols, sizes));
  return sizes;
}

Result<Workload> entry_workload(const Model& model, const ReadyPlan& ready,
                                const ProfileOptions& options, const std::string& name) {
  const Module& module = ready.compiled.module;
  SINTER_LET(sizes, module_sizes(model, module.symbols, options));
  const Entry* entry = variant_for(module.entries, name, sizes);
  SINTER_CHECK(entry, "no entry {}", name);
  SINTER_LET(inputs, random_inputs(entry->graph, module.symbols, sizes, options.seed));
  const ResidentCall call =
      resident_call(ready.executable->program(), name, sizes, std::move(inputs));
  Workload work;
  work.phase = entry_title(name, entry->range, module.symbols);
  for (size_t i = 0; i < sizes.size(); ++i)
    work.sizes.emplace_back(module.symbols[i].name, sizes[i]);
  const std::shared_ptr<const Executable> loaded = ready.executable;
  work.resident = [loaded, call]() -> Result<ResidentCalls> {
    SINTER_LET(session, loaded->new_session(call.symbol_values));
    return ResidentCalls::create(std::move(session), {call});
  };
  record_repeated(work);
  return work;
}

}  // namespace

bool is_language_model(const Model& model) { return model.spec && !model.spec->encoder; }

Result<std::string> chosen_phase(const Model& model, const std::string& asked) {
  if (is_language_model(model)) {
    if (asked.empty() || asked == "decode") return "decode";
    if (asked == "prefill") return asked;
    return fail(fmt::format("no phase is called \"{}\"", printable(asked)), "--phase",
                "give prefill or decode", ExitCode::usage);
  }
  if (model.module.entries.empty()) return fail("the module has no entries", model.origin);
  if (asked.empty()) return model.module.entries[0].name;
  if (!model.module.find_entry(asked))
    return fail(fmt::format("no entry is called \"{}\"", printable(asked)), "--phase", {},
                ExitCode::usage);
  return asked;
}

Result<Workload> make_workload(const Model& model, const ReadyPlan& ready,
                               const ProfileOptions& options, int64_t most) {
  SINTER_LET(phase, chosen_phase(model, options.phase));
  if (options.batch != 1 && (phase != "decode" || !is_language_model(model)))
    return fail(fmt::format("{} sequences of {}: several are decoded together and nothing else",
                            options.batch, phase),
                "--batch", "leave --batch out, or profile decode", ExitCode::usage);
  if (!is_language_model(model)) return entry_workload(model, ready, options, phase);
  if (phase == "decode") return decode_workload(model, ready, options, most);
  return prefill_workload(model, ready, options);
}

}  // namespace sinter
