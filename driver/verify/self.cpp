#include "driver/verify/self.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "driver/generate/finite_logits.h"
#include "driver/generate/generator.h"
#include "driver/generate/perplexity.h"
#include "driver/memory_use.h"
#include "driver/text.h"
#include "driver/text_table.h"
#include "driver/verify/loss_bound.h"
#include "driver/verify/precise_session.h"
#include "driver/verify/self_encoder.h"
#include "driver/verify/self_text.h"
#include "ir/sym_expr.h"
#include "runtime/clock.h"

namespace sinter {
namespace {

constexpr int64_t kRandomText = 512;  // where there is no tokenizer
// Tokens of one call, at most: most of the text is predicted behind a filled cache.
constexpr int64_t kCallTokens = 128;
// Calls whose stored values are all compared: tokens of a prefill, and decode steps.
constexpr size_t kComparedTokens = 64, kComparedSteps = 4;
constexpr int64_t kPromptTokens = 16;
constexpr int64_t kSteps = 32;

double mean(llvm::ArrayRef<double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class SelfCheck {
 public:
  SelfCheck(const Plans& plans, const ModelSpec& spec, const SelfLimits& limits,
            const SelfOptions& options, SelfReport& report)
      : plans_(plans), spec_(spec), limits_(limits), options_(options), report_(report) {}

  /// How much of the text is used.
  llvm::ArrayRef<int32_t> shortened(llvm::ArrayRef<int32_t> text, bool on_gpu) {
    const auto all = static_cast<int64_t>(text.size());
    const int64_t work =
        on_gpu ? all : std::max(affordable_tokens(program(), limits_.text_products), kPromptTokens);
    report_.text_tokens = all;
    report_.tokens = std::min({all, spec_.max_positions, work});
    if (report_.tokens < all)
      report_.shortened = report_.tokens == spec_.max_positions
                              ? fmt::format("the model has {} positions", spec_.max_positions)
                              : fmt::format("more would be over {:.0e} multiplications on the CPU",
                                            limits_.text_products);
    return text.take_front(static_cast<size_t>(report_.tokens));
  }

  /// All values that both plans store, of a prefill and of decode steps that continue it.
  Status compare_values(llvm::ArrayRef<int32_t> text) {
    options_.stage("comparing all values of a few calls");
    const size_t first = std::min(text.size() - 1, kComparedTokens);
    const auto steps =
        text.drop_front(first).take_front(std::min(text.size() - first, kComparedSteps));
    SINTER_LET(decoders, new_decoders(static_cast<int64_t>(first + steps.size())));
    SINTER_TRY(compare_call("prefill", text.take_front(first), decoders));
    for (const int32_t& token : steps) SINTER_TRY(compare_call("decode", {token}, decoders));
    return {};
  }

  /// Both plans predict the text; their logits and, at the end, their caches are compared.
  Status predict(llvm::ArrayRef<int32_t> text) {
    SINTER_TRY(choose_calls());
    SINTER_LET(decoders, new_decoders(report_.tokens));
    const auto chunk = static_cast<size_t>(report_.prefill.tokens);
    for (size_t at = 0; at < text.size(); at += chunk) {
      options_.stage(fmt::format("predicting the text, {} of {} tokens", at, text.size()));
      const auto piece = text.slice(at, std::min(chunk, text.size() - at));
      const auto next = text.drop_front(at + 1).take_front(piece.size());
      SINTER_LET(fused, predict_piece(decoders[0], piece, next, report_.fused));
      SINTER_LET(unfused, predict_piece(decoders[1], piece, next, report_.unfused));
      SINTER_TRY(compare_runs("prefill", fused, unfused, report_.comparison));
    }
    return compare_states(decoders[0].session(), decoders[1].session(), program(),
                          report_.comparison);
  }

  Status generate(llvm::ArrayRef<int32_t> text, int64_t steps) {
    report_.prompt_tokens =
        std::min({kPromptTokens, static_cast<int64_t>(text.size()), (spec_.max_positions + 1) / 2});
    const int64_t most = std::min(steps, spec_.max_positions - report_.prompt_tokens + 1);
    const auto prompt = text.take_front(static_cast<size_t>(report_.prompt_tokens));
    options_.stage("continuing the text, fused");
    SINTER_TRY(generate_with(plans_.fused, prompt, most, report_.fused));
    options_.stage("continuing the text, unfused");
    return generate_with(plans_.unfused, prompt, most, report_.unfused);
  }

  /// Compares the losses of the text's first tokens with float64, as many as precise_products
  /// allows.
  Status compare_with_float64(llvm::ArrayRef<int32_t> text) {
    const auto count =
        std::min(report_.tokens, affordable_tokens(program(), limits_.precise_products));
    report_.not_precise = why_not_precise(program(), count, spec_.vocabulary, 2, limits_);
    if (!report_.not_precise.empty()) {
      if (report_.strict) return {};
      return fail("fast numerics are compared with float64 alone, and " + report_.not_precise,
                  plans_.module.name, "check strict numerics, or a smaller model of its kind");
    }
    options_.stage(fmt::format("float64 over {} tokens", count));
    const Clock::time_point begin = Clock::now();
    text = text.take_front(static_cast<size_t>(count));
    const DecoderCall call =
        pack_sequences("prefill", plans_.module.symbols, {text.vec()}, {0}, (count + 7) / 8 * 8);
    SINTER_LET(session, PreciseSession::create(plans_.module, *plans_.unfused));
    SINTER_LET(outputs, session.run("prefill", call.symbol_values, call.inputs));
    const std::vector<double> losses = prediction_losses(outputs[0], text.drop_front());
    PreciseLoss& precise = report_.precise.emplace();
    precise.predictions = count - 1;
    precise.precise = mean(losses);
    precise.fused = mean(llvm::ArrayRef(report_.fused.losses).take_front(losses.size()));
    precise.allowed = loss_bound(relative_variance(plans_.module.find_entry("prefill")->graph,
                                                   plans_.module.symbols, call.symbol_values),
                                 outputs[0]);
    precise.seconds = seconds_since(begin);
    return {};
  }

  void measure_memory() {
    for (const Weight& weight : program().weights)
      report_.weight_bytes += storage_bytes(weight.type).constant();
    const int64_t piece = report_.prefill.tokens;
    const DecoderCall call = pack_sequences("prefill", program().symbols,
                                            {std::vector<int32_t>(static_cast<size_t>(piece), 0)},
                                            {report_.tokens - piece}, (report_.tokens + 7) / 8 * 8);
    for (const State& state : program().states)
      report_.state_bytes += storage_bytes(state.type).evaluate(call.symbol_values).value_or(0);
    const auto arena = [&](const Executable& executable) {
      const auto layout =
          arena_layout(*executable.program().find_entry("prefill"), call.symbol_values);
      return layout ? layout->bytes : 0;
    };
    report_.fused.arena_bytes = arena(*plans_.fused);
    report_.unfused.arena_bytes = arena(*plans_.unfused);
    report_.peak_bytes = peak_memory();
  }

 private:
  const Program& program() const { return plans_.fused->program(); }

  /// The same calls for both plans: products of other sizes may have other bits.
  Status choose_calls() {
    const PromptSizes sizes{report_.tokens, 1, report_.tokens, report_.tokens, Wanted::all};
    PrefillOptions options = options_.prefill;
    options.chunk = std::min(options.chunk.value_or(kCallTokens), kCallTokens);
    for (const auto& plan : {plans_.unfused, plans_.fused}) {
      SINTER_LET(chosen, choose_chunk(plan->program(), sizes, options));
      options.chunk = chosen.tokens;
      report_.prefill = chosen;
    }
    return {};
  }

  Result<std::vector<Decoder>> new_decoders(int64_t capacity) const {
    std::vector<Decoder> decoders;
    for (const auto& plan : {plans_.fused, plans_.unfused}) {
      SINTER_LET(decoder, Decoder::create(plan, 1, capacity));
      decoders.push_back(std::move(decoder));
    }
    return decoders;
  }

  Status compare_call(std::string_view entry, llvm::ArrayRef<int32_t> tokens,
                      std::vector<Decoder>& decoders) {
    const CallOptions options{.poison_freed = true, .keep = plans_.common_values(entry)};
    SINTER_LET(fused, decoders[0].run(entry, {tokens.vec()}, options, Wanted::all));
    SINTER_LET(unfused, decoders[1].run(entry, {tokens.vec()}, options, Wanted::all));
    return compare_runs(entry, fused, unfused, report_.comparison);
  }

  static Result<RunResult> predict_piece(Decoder& decoder, llvm::ArrayRef<int32_t> piece,
                                         llvm::ArrayRef<int32_t> next, SelfRun& run) {
    const Clock::time_point begin = Clock::now();
    SINTER_LET(result, decoder.prefill({piece.vec()}));
    run.text_s += seconds_since(begin);
    for (double loss : prediction_losses(result.outputs[0], next)) run.losses.push_back(loss);
    return std::move(result);
  }

  Status generate_with(const std::shared_ptr<const Executable>& executable,
                       llvm::ArrayRef<int32_t> prompt, int64_t most, SelfRun& run) const {
    SINTER_LET(generator,
               Generator::create(executable, {prompt.vec()}, most, {}, {}, options_.prefill));
    Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < most; ++i) {
      SINTER_LET(next, generator->next());
      run.generated.push_back(next[0]);
      if (i == 0) begin = Clock::now();
    }
    run.generated_s = seconds_since(begin);
    return {};
  }

  const Plans& plans_;
  const ModelSpec& spec_;
  const SelfLimits& limits_;
  const SelfOptions& options_;
  SelfReport& report_;
};

}  // namespace

bool PreciseLoss::holds() const { return std::abs(fused - precise) <= allowed; }

bool SelfReport::passed() const {
  return (!strict || (comparison.difference.empty() && same_tokens())) &&
         (!precise || precise->holds());
}

double SelfRun::mean_loss() const { return mean(losses); }

Result<SelfReport> check_self(const Plans& plans, const ModelSpec& spec,
                              llvm::ArrayRef<int32_t> text, const SelfOptions& options,
                              const SelfLimits& limits) {
  SelfReport report;
  report.dtype = spec.dtype;
  report.device = plans.fused->device();
  report.strict = plans.fused->program().numerics == Numerics::strict;
  SelfCheck check(plans, spec, limits, options, report);
  text = check.shortened(text, options.backend->on_gpu());
  if (text.size() < 2)
    return fail(fmt::format("{} and {} positions predict nothing",
                            counted(static_cast<uint64_t>(report.text_tokens), "token"),
                            spec.max_positions),
                plans.module.name, "two tokens are needed");
  SINTER_TRY(check.compare_values(text));
  SINTER_TRY(check.predict(text));
  SINTER_TRY(check.generate(text, options.steps.value_or(kSteps)));
  SINTER_TRY(check.compare_with_float64(text));
  check.measure_memory();
  return report;
}

Result<SelfOutcome> verify_self(const std::string& path, const SelfOptions& options) {
  SINTER_LET(module, is_module(path));
  if (module)
    return fail("--self feeds a model a text, got a module", path, "leave out --self",
                ExitCode::usage);
  options.stage("opening the model");
  SINTER_LET(tokenizer, find_tokenizer(path));
  std::vector<int32_t> text;
  if (tokenizer) {
    SINTER_LET(ids, tokenizer->encode(self_check_text(), true));
    text = std::move(ids);
  }
  OpenOptions load = options.open;
  load.context = tokenizer ? static_cast<int64_t>(text.size()) : kRandomText;
  SINTER_LET(model, open_model(path, load));
  if (!tokenizer) text = random_ids(model.spec->vocabulary, kRandomText, options.seed);
  if (model.spec->encoder) SINTER_TRY(check_encoder_options(options));
  SINTER_TRY(check_vocabulary(model, text));
  const Clock::time_point begin = Clock::now();
  options.stage("compiling both plans");
  SINTER_LET(plans, make_plans(model, options.compile, *options.backend));
  const double plans_s = seconds_since(begin);
  const auto told = [&](auto& report) -> SelfOutcome {
    report.random_text = !tokenizer;
    report.plans_s = plans_s;
    return std::move(report);
  };
  if (model.spec->encoder) {
    SINTER_LET(report, check_self_encoder(plans, *model.spec, text, options));
    return told(report);
  }
  SINTER_LET(report, explained(check_self(plans, *model.spec, text, options), model));
  return told(report);
}

}  // namespace sinter
