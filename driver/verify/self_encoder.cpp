#include "driver/verify/self_encoder.h"

#include <algorithm>
#include <numeric>

#include "driver/embed/encode.h"
#include "driver/memory_use.h"
#include "driver/text_table.h"
#include "driver/verify/loss_bound.h"
#include "driver/verify/precise_session.h"
#include "ir/sym_expr.h"
#include "runtime/clock.h"

namespace sinter {
namespace {

using Lengths = std::vector<int64_t>;
using Texts = std::vector<std::vector<int32_t>>;

int64_t total(llvm::ArrayRef<int64_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

class EncoderCheck {
 public:
  EncoderCheck(const Plans& plans, const ModelSpec& spec, llvm::ArrayRef<int32_t> text,
               const SelfOptions& options, const SelfLimits& limits, EncoderReport& report)
      : plans_(plans),
        spec_(spec),
        text_(text),
        options_(options),
        limits_(limits),
        report_(report) {}

  /// Takes calls, the short ones first, while the work and the memory allow it.
  void choose_calls() {
    const int64_t activation_bytes = options_.prefill.activation_bytes;
    const auto all = self_call_lengths(spec_.max_positions, fused().invariant);
    const int64_t most =
        options_.backend->on_gpu() ? INT64_MAX : affordable_tokens(fused(), limits_.text_products);
    int64_t used = 0;
    for (const Lengths& lengths : all) {
      used += total(lengths);
      const int64_t arena = arena_bytes(*plans_.unfused, packed_rows(lengths, fused().invariant));
      if (report_.calls.empty() || (used <= most && arena <= activation_bytes)) {
        report_.calls.push_back(lengths);
        continue;
      }
      report_.left_out = fmt::format(
          "calls of {} tokens and more: {}", total(lengths),
          used > most ? fmt::format("more would be over {:.0e} multiplications on the CPU",
                                    limits_.text_products)
                      : fmt::format("the arena would take {} bytes, {} are allowed", arena,
                                    activation_bytes));
      break;
    }
  }

  /// Every call, fused beside unfused, and, as far as the work allows, beside float64.
  Status run() {
    std::optional<PreciseSession> precise;
    int64_t left = affordable_tokens(fused(), limits_.precise_products);
    report_.not_precise = why_not_precise(fused(), std::min(left, total(report_.calls.back())),
                                          spec_.hidden, 1, limits_);
    if (report_.not_precise.empty()) {
      SINTER_LET(made, PreciseSession::create(plans_.module, *plans_.unfused));
      precise.emplace(std::move(made));
    } else if (!report_.strict) {
      return fail("fast numerics are compared with float64 alone, and " + report_.not_precise,
                  plans_.module.name, "check strict numerics, or a smaller model of its kind");
    }
    // The first call of a process also starts threads and fills caches: one is made beforehand.
    for (const Executable* executable : {plans_.fused.get(), plans_.unfused.get()})
      SINTER_TRY(encode(spec_, *executable, std::vector{std::vector{text_[0]}}));
    for (const Lengths& lengths : report_.calls) {
      options_.stage(fmt::format("call {} of {}, {} tokens", report_.comparison.calls + 1,
                                 report_.calls.size(), total(lengths)));
      left -= total(lengths);
      SINTER_TRY(call(pieces(lengths), precise && left >= 0 ? &*precise : nullptr));
    }
    return {};
  }

  void measure_memory() {
    for (const Weight& weight : fused().weights)
      report_.weight_bytes += storage_bytes(weight.type).constant();
    int64_t largest = 0;
    for (const Lengths& lengths : report_.calls)
      largest = std::max(largest, packed_rows(lengths, fused().invariant));
    report_.fused_arena_bytes = arena_bytes(*plans_.fused, largest);
    report_.unfused_arena_bytes = arena_bytes(*plans_.unfused, largest);
    report_.peak_bytes = peak_memory();
  }

 private:
  const Program& fused() const { return plans_.fused->program(); }

  /// Bytes for the intermediate values of a call of `encode` with `tokens` tokens.
  static int64_t arena_bytes(const Executable& executable, int64_t tokens) {
    const Program& program = executable.program();
    std::vector<int64_t> values = min_symbol_values(program.symbols);
    values[static_cast<size_t>(find_symbol(program.symbols, "N"))] = tokens;
    const auto layout = arena_layout(*program.find_entry("encode"), values);
    return layout ? layout->bytes : 0;
  }

  /// Pieces of the text of these lengths, each from where the last one ended.
  Texts pieces(llvm::ArrayRef<int64_t> lengths) {
    Texts texts;
    for (const int64_t length : lengths) {
      std::vector<int32_t>& piece = texts.emplace_back();
      for (int64_t i = 0; i < length; ++i) piece.push_back(text_[at_++ % text_.size()]);
    }
    return texts;
  }

  Result<RunResult> timed(const Executable& executable, const Texts& texts,
                          const CallOptions& options, double& seconds) const {
    const Clock::time_point begin = Clock::now();
    SINTER_LET(result, encode(spec_, executable, texts, options));
    seconds += seconds_since(begin);
    return std::move(result);
  }

  Status call(const Texts& texts, PreciseSession* precise) {
    const CallOptions options{.poison_freed = true, .keep = plans_.common_values("encode")};
    SINTER_LET(fused, timed(*plans_.fused, texts, options, report_.fused_s));
    SINTER_LET(unfused, timed(*plans_.unfused, texts, options, report_.unfused_s));
    for (const auto& text : texts) report_.tokens += static_cast<int64_t>(text.size());
    SINTER_TRY(compare_runs("encode", fused, unfused, report_.comparison));
    return precise ? compare_with_float64(texts, fused.outputs[0], unfused.outputs[0], *precise)
                   : Status();
  }

  Status compare_with_float64(const Texts& texts, const HostTensor& fused,
                              const HostTensor& unfused, PreciseSession& precise) {
    const Clock::time_point begin = Clock::now();
    const DecoderCall call = pack_texts(spec_, plans_.module.symbols, texts);
    SINTER_LET(outputs, precise.run("encode", call.symbol_values, call.inputs));
    const std::vector<double> exact = to_doubles(outputs[0]);
    SINTER_LET(fused_error, accuracy(fused, exact));
    SINTER_LET(unfused_error, accuracy(unfused, exact));
    const double allowed =
        hidden_bound(relative_variance(plans_.module.find_entry("encode")->graph,
                                       plans_.module.symbols, call.symbol_values),
                     outputs[0]);
    if (!report_.precise) report_.precise.emplace();
    PreciseHidden& found = *report_.precise;
    const bool holds = fused_error.rms <= allowed;
    if (found.calls == 0 || (!holds && found.holds) ||
        fused_error.rms / allowed > found.fused_rms / found.allowed) {
      found.fused_rms = fused_error.rms;
      found.unfused_rms = unfused_error.rms;
      found.allowed = allowed;
    }
    found.holds &= holds;
    ++found.calls;
    found.tokens += outputs[0].dims[0];
    found.seconds += seconds_since(begin);
    return {};
  }

  const Plans& plans_;
  const ModelSpec& spec_;
  llvm::ArrayRef<int32_t> text_;
  const SelfOptions& options_;
  const SelfLimits& limits_;
  EncoderReport& report_;
  size_t at_ = 0;  // where the next piece begins
};

}  // namespace

bool EncoderReport::passed() const {
  return (!strict || comparison.difference.empty()) && (!precise || precise->holds);
}

Status check_encoder_options(const SelfOptions& options) {
  for (const auto& [given, option] : {std::pair(options.steps.has_value(), "--steps"),
                                      {options.prefill.chunk.has_value(), "--prefill-chunk"}})
    if (given)
      return fail("an encoder generates nothing and is fed whole texts", option, "leave it out",
                  ExitCode::usage);
  return {};
}

std::vector<Lengths> self_call_lengths(int64_t positions, bool invariant) {
  std::vector<Lengths> calls;
  for (const int64_t length : {1, 2, 3, 7, 16, 33, 64, 128, 256, 512, 1024, 2048, 4096})
    if (length < positions) calls.push_back({length});
  calls.push_back({positions});
  for (const Lengths& lengths : {Lengths{1, 2}, {5, 16}, {1, 7, 33, 3}, Lengths(8, 16)})
    if (packed_rows(lengths, invariant) <= positions) calls.push_back(lengths);
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Lengths& a, const Lengths& b) { return total(a) < total(b); });
  return calls;
}

Result<EncoderReport> check_self_encoder(const Plans& plans, const ModelSpec& spec,
                                         llvm::ArrayRef<int32_t> text, const SelfOptions& options,
                                         const SelfLimits& limits) {
  EncoderReport report;
  report.dtype = spec.dtype;
  report.device = plans.fused->device();
  report.strict = plans.fused->program().numerics == Numerics::strict;
  if (text.empty()) return fail("the text has no token", plans.module.name, "one is needed");
  EncoderCheck check(plans, spec, text, options, limits, report);
  check.choose_calls();
  SINTER_TRY(check.run());
  check.measure_memory();
  return report;
}

}  // namespace sinter
