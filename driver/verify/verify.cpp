#include "driver/verify/verify.h"

#include <xxhash.h>

#include <algorithm>

#include "driver/compile/compile.h"
#include "driver/generate/decoder.h"
#include "driver/generate/generator.h"
#include "driver/verify/parts.h"
#include "driver/verify/ranks.h"
#include "ir/sym_expr.h"
#include "passes/products/choose_kernels.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kRandomTokens = 16;  // of each of two sequences, where there is no reference
// Multiplications of the prefill in float64, on the host, that are still worth waiting for.
constexpr double kMaxPreciseProducts = 2e10;

}  // namespace

double weight_elements(const Program& program) {
  double elements = 0;
  for (const Weight& weight : program.weights)
    elements += static_cast<double>(volume(weight.type.dims).constant());
  return elements;
}

std::vector<int32_t> random_ids(int64_t vocabulary, int64_t count, uint64_t seed) {
  const auto ids = random_tensor(DType::i32, {count}, seed, {1, 0, vocabulary - 1});
  SINTER_CHECK(ids.has_value(), "random tokens");
  return {ids->data<int32_t>(), ids->data<int32_t>() + count};
}

std::vector<std::vector<int32_t>> random_tokens(const ModelSpec& spec, uint64_t seed) {
  return {random_ids(spec.vocabulary, std::min(kRandomTokens, spec.max_positions), seed),
          random_ids(spec.vocabulary, std::min(kRandomTokens - 3, spec.max_positions), seed + 1)};
}

bool is_small(const Plans& plans, TextList texts) {
  double count = 0;
  for (const auto& sequence : texts) count += static_cast<double>(sequence.size());
  return weight_elements(plans.fused->program()) * count < kMaxPreciseProducts;
}

namespace {

/// A decoder for the fused plan and one for the unfused plan.
Result<std::vector<Decoder>> new_decoders(const Plans& plans, int64_t sequences, int64_t capacity) {
  std::vector<Decoder> decoders;
  for (const auto& plan : {plans.fused, plans.unfused}) {
    SINTER_LET(decoder, Decoder::create(plan, sequences, capacity));
    decoders.push_back(std::move(decoder));
  }
  return decoders;
}

/// Prefill of all sequences, in these calls, then greedy decoding of the first, fused beside
/// unfused.
Status verify_decoder(const Plans& plans, const Model& model, const ReferenceFile* reference,
                      llvm::ArrayRef<TextList> calls, bool small, const VerifyOptions& options,
                      DTypeReport& report) {
  int64_t longest = 0;
  for (const TextList texts : calls)
    for (const auto& text : texts) longest = std::max<int64_t>(longest, text.size());
  // The first step is the prefill's, and the token that the last one gives is not fed.
  const int64_t steps = std::min(options.steps, model.spec->max_positions - longest + 1);
  CallOptions run{.poison_freed = true,
                  .keep = plans.common_values("prefill"),
                  .check_kernels = small && options.backend->on_gpu()};

  std::vector<RunResult> fused, unfused;
  std::vector<DecoderCall> packed;
  for (const TextList texts : calls) {
    SINTER_LET(decoders, new_decoders(plans, static_cast<int64_t>(texts.size()), longest));
    SINTER_LET(a, decoders[0].prefill(texts, run));
    SINTER_LET(b, decoders[1].prefill(texts, run));
    SINTER_TRY(compare_runs("prefill", a, b, report));
    SINTER_TRY(compare_states(decoders[0].session(), decoders[1].session(), plans.fused->program(),
                              report));
    b.kept.clear();
    fused.push_back(std::move(a));
    unfused.push_back(std::move(b));
    packed.push_back(pack_sequences("prefill", plans.module.symbols, texts,
                                    std::vector<int64_t>(texts.size(), 0), decoders[0].rows()));
  }
  if (reference) SINTER_TRY(reference->check(*model.spec, fused, report));
  if (small) SINTER_TRY(measure_float64(plans, "prefill", packed, fused, unfused, report));

  // Continuation of the first sequence alone, both plans fed with the same tokens: the fused plan's
  // likeliest, or seeded ones.
  run.keep.clear();
  const std::vector<int32_t>& prompt = calls[0][0];
  SINTER_LET(alone, new_decoders(plans, 1, text_tokens(prompt.size(), steps)));
  const std::vector<int32_t> forced = random_ids(model.spec->vocabulary, steps, options.seed + 7);
  XXH3_state_t* hash = XXH3_createState();
  XXH3_64bits_reset(hash);
  Status done = {};
  for (int64_t step = 0; step < steps && done; ++step)
    done = [&]() -> Status {
      std::vector<RunResult> results;
      for (Decoder& decoder : alone) {
        const int32_t last = step == 0        ? 0
                             : options.forced ? forced[static_cast<size_t>(step - 1)]
                                              : report.tokens.back();
        auto result = step == 0 ? decoder.prefill({prompt}, run) : decoder.decode({last}, run);
        if (!result) return tl::make_unexpected(std::move(result.error()));
        results.push_back(std::move(*result));
      }
      SINTER_TRY(compare_runs(step == 0 ? "prefill" : "decode", results[0], results[1], report));
      const HostTensor& logits = results[0].outputs[0];
      XXH3_64bits_update(hash, logits.bytes.data(), logits.bytes.size());
      report.tokens.push_back(greedy_token(logits, logits.dims[0] - 1));
      return {};
    }();
  report.logits_hash = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  SINTER_TRY(done);
  if (run.check_kernels) report.host_checked_calls = report.calls * 2;
  // In narrow types another token may win by a rounding: only float32 must follow the reference.
  if (reference && report.dtype == DType::f32)
    report.tokens_match = reference->tokens_match(report.tokens);
  if (!options.forced && options.backend->on_gpu()) {
    SINTER_LET(generator, Generator::create(plans.fused, {prompt}, steps, {}));
    std::vector<int32_t> recorded;
    for (int64_t step = 0; step < steps; ++step) {
      SINTER_LET(next, generator->next());
      recorded.push_back(next[0]);
    }
    report.recorded_match = recorded == report.tokens;
  }
  return {};
}

/// Combinations of options that no kind of model takes.
Status check_options(const VerifyOptions& options, bool module, const std::string& path) {
  const bool fast = options.compile.fusion.numerics == Numerics::fast;
  const CallsOptions& calls = options.calls;
  if (fast && !options.reference.empty())
    return fail("fast numerics are compared with float64, not with a reference", options.reference,
                "drop --reference, or check strict numerics", ExitCode::usage);
  if (calls.given() && !module)
    return fail("a language model is verified on tokens, not on inputs of its entries", path,
                "leave out --inputs, --random-inputs, --symbol and --calls", ExitCode::usage);
  if (fast && (!calls.inputs.empty() || calls.repeat != 1))
    return fail("fast numerics are checked on random inputs of 16 seeds, a call of each entry",
                path, "leave out --inputs and --calls, or check strict numerics", ExitCode::usage);
  return {};
}

/// One model in its element type.
Status verify_one(const OpenedModel& model, const VerifyOptions& options, const ReferenceFile* file,
                  DTypeReport& one) {
  std::vector<std::vector<int32_t>> texts;
  std::vector<TextList> calls;
  if (model.spec) {
    texts = file ? file->sequences() : random_tokens(*model.spec, options.seed);
    SINTER_LET(fitting, text_calls(*model.spec, model.module.symbols, texts,
                                   file ? options.reference : model.origin,
                                   compile_options(model, options.compile).recipe.invariant));
    calls = std::move(fitting);
  }
  SINTER_LET(plans, make_plans(model, options.compile, *options.backend));
  if (model.spec) one.dtype = model.spec->dtype;
  for (const Entry& entry : plans.module.entries)
    one.rounded_matrices += static_cast<int64_t>(rounded_matrices(entry.graph).size());
  for (const EntryPlan& entry : plans.fused->program().entries)
    one.fused_launches += entry.steps.size();
  for (const EntryPlan& entry : plans.unfused->program().entries)
    one.unfused_launches += entry.steps.size();
  if (plans.fused->program().numerics == Numerics::fast) {
    SINTER_TRY(verify_fast(plans, model, options, one));
  } else if (model.spec) {
    const bool small = is_small(plans, texts);
    SINTER_TRY(
        model.spec->encoder
            ? verify_encoder(plans, *model.spec, calls, file, small, options.backend->on_gpu(), one)
            : verify_decoder(plans, model, file, calls, small, options, one));
  } else {
    SINTER_TRY(verify_module(plans, model, options, one));
  }
  return {};
}

}  // namespace

bool VerifyReport::passed() const {
  return llvm::all_of(dtypes, [](const DTypeReport& report) {
    return report.difference.empty() && report.tokens_match.value_or(true) &&
           report.recorded_match.value_or(true) &&
           llvm::all_of(report.bounds, [](const ErrorBound& bound) { return bound.holds(); }) &&
           llvm::all_of(report.reference, [](const ValueCheck& check) { return check.passed; });
  });
}

Result<VerifyReport> verify_opened(const OpenedModel& model, const VerifyOptions& options) {
  VerifyReport report;
  SINTER_TRY(check_options(options, true, model.origin));
  SINTER_TRY(verify_one(model, options, nullptr, report.dtypes.emplace_back()));
  return report;
}

Result<VerifyReport> verify_model(const std::string& path, const VerifyOptions& options) {
  VerifyReport report;
  if (options.ranks > 1) {
    SINTER_LET(ranks, verify_ranks(path, options));
    report.dtypes.push_back(std::move(ranks));
    return report;
  }
  std::optional<ReferenceFile> reference;
  SINTER_LET(module, is_module(path));
  SINTER_TRY(check_options(options, module, path));
  if (!options.reference.empty() && !module) {
    SINTER_LET(file, ReferenceFile::open(options.reference));
    reference.emplace(std::move(file));
  }
  // A module or a plan is verified in its own types (nullopt), and refuses any other.
  std::vector<std::optional<DType>> dtypes(options.dtypes.begin(), options.dtypes.end());
  if (dtypes.empty() && (module || is_plan_folder(path))) dtypes = {std::nullopt};
  if (dtypes.empty())
    for (const DTypeInfo& type : kDTypes)
      if (is_float(type.dtype)) dtypes.push_back(type.dtype);
  for (const std::optional<DType> dtype : dtypes) {
    OpenOptions load = options.open;
    load.dtype = dtype;
    if (reference)
      load.context = text_tokens(static_cast<size_t>(reference->longest()), options.steps);
    SINTER_LET(model, open_model(path, load));
    DTypeReport& one = report.dtypes.emplace_back();
    one.dtype = dtype;
    SINTER_TRY(verify_one(model, options, reference ? &*reference : nullptr, one));
  }
  return report;
}

}  // namespace sinter
