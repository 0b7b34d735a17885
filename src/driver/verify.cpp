#include "driver/verify.h"

#include <algorithm>

#include "driver/compile.h"
#include "driver/host_decoder.h"
#include "driver/verify_parts.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kRandomTokens = 16;   // of each of two sequences, where there is no reference
constexpr int64_t kDecodeSteps = 16;    // after the first call

std::vector<std::vector<int32_t>> random_tokens(int64_t vocabulary, uint64_t seed) {
  std::vector<std::vector<int32_t>> tokens;
  for (uint64_t s = 0; s < 2; ++s) {
    const auto ids = random_tensor(DType::i32, {kRandomTokens - static_cast<int64_t>(3 * s)}, seed + s,
                                   {1, 0, vocabulary - 1});
    SINTER_CHECK(ids.has_value(), "random tokens");
    const auto* data = ids->data<int32_t>();
    tokens.emplace_back(data, data + ids->volume());
  }
  return tokens;
}

/// Prefill of all sequences, then greedy decoding of the first, fused beside unfused.
Status verify_decoder(const Plans& plans, const LoadedModel& model, const ReferenceFile* reference,
                      const VerifyOptions& options, DTypeReport& report) {
  const auto tokens = reference ? reference->sequences() : random_tokens(model.spec->vocabulary, options.seed);
  int64_t longest = 0;
  for (const auto& sequence : tokens) longest = std::max<int64_t>(longest, sequence.size());
  const int64_t steps = std::min(kDecodeSteps, model.spec->max_positions - longest);
  const std::vector<std::string> keep = plans.common_values("prefill");

  std::vector<HostDecoder> decoders;
  for (const HostModel* plan : {&plans.fused, &plans.unfused}) {
    SINTER_LET(decoder, HostDecoder::create(*plan, static_cast<int64_t>(tokens.size()), longest + steps));
    decoders.push_back(std::move(decoder));
  }
  HostRunOptions run{.poison_freed = true, .keep = keep};
  SINTER_LET(fused, decoders[0].prefill(tokens, run));
  SINTER_LET(unfused, decoders[1].prefill(tokens, run));
  SINTER_TRY(compare_runs("prefill", fused, unfused, report));
  SINTER_TRY(compare_states(decoders[0].session(), decoders[1].session(), plans.fused.program(), report));
  if (reference) SINTER_TRY(reference->check(fused, report));
  SINTER_TRY(measure_float64(plans, tokens, fused.outputs[0], unfused.outputs[0], report));

  // Greedy continuation of the first sequence alone, both plans fed with the fused plan's tokens.
  decoders.clear();
  for (const HostModel* plan : {&plans.fused, &plans.unfused}) {
    SINTER_LET(decoder, HostDecoder::create(*plan, 1, static_cast<int64_t>(tokens[0].size()) + steps));
    decoders.push_back(std::move(decoder));
  }
  run.keep.clear();
  HostTensor logits;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<RunResult> results;
    for (HostDecoder& decoder : decoders) {
      auto result = step == 0 ? decoder.prefill({tokens[0]}, run) : decoder.decode({report.tokens.back()}, run);
      if (!result) return tl::make_unexpected(std::move(result.error()));
      results.push_back(std::move(*result));
    }
    SINTER_TRY(compare_runs(step == 0 ? "prefill" : "decode", results[0], results[1], report));
    logits = std::move(results[0].outputs[0]);
    report.tokens.push_back(greedy_token(logits, logits.dims[0] - 1));
  }
  // In narrow types another token may win by a rounding: only float32 must follow the reference.
  if (reference && report.dtype == DType::f32) report.tokens_match = reference->tokens_match(report.tokens);
  return {};
}

/// Every entry of a module once, on random inputs.
Status verify_entries(const Plans& plans, const Module& original, uint64_t seed, DTypeReport& report) {
  const llvm::ArrayRef<Symbol> symbols = plans.module.symbols;
  std::vector<int64_t> values = least_symbol_values(symbols);
  for (const Entry& entry : plans.module.entries) {
    const Graph& graph = original.find_entry(entry.name)->graph;
    SINTER_LET(inputs, random_inputs(graph, symbols, values, seed));
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& input : inputs) pointers.push_back(&input);
    const HostRunOptions run{.poison_freed = true, .keep = plans.common_values(entry.name)};
    SINTER_LET(a, HostSession::create(plans.fused, values));
    SINTER_LET(b, HostSession::create(plans.unfused, values));
    SINTER_LET(fused, a.run(entry.name, values, pointers, run));
    SINTER_LET(unfused, b.run(entry.name, values, pointers, run));
    SINTER_TRY(compare_runs(entry.name, fused, unfused, report));
    SINTER_TRY(compare_states(a, b, plans.fused.program(), report));
  }
  return {};
}

}  // namespace

bool VerifyReport::passed() const {
  return llvm::all_of(dtypes, [](const DTypeReport& report) {
    return report.difference.empty() && report.tokens_match.value_or(true) &&
           llvm::all_of(report.reference, [](const ValueCheck& check) { return check.passed; });
  });
}

Result<VerifyReport> verify_model(const std::string& path, const VerifyOptions& options) {
  VerifyReport report;
  std::optional<ReferenceFile> reference;
  if (!options.reference.empty()) {
    SINTER_LET(file, ReferenceFile::open(options.reference));
    reference.emplace(std::move(file));
  }
  std::vector<DType> dtypes = options.dtypes;
  if (dtypes.empty()) dtypes = {DType::f32, DType::f16, DType::bf16};
  for (DType dtype : dtypes) {
    SINTER_LET(model, load_model(path, {.dtype = dtype, .random_weights = options.random_weights}));
    SINTER_LET(plans, make_plans(model, options.target));
    DTypeReport& one = report.dtypes.emplace_back();
    one.dtype = dtype;
    for (const EntryPlan& entry : plans.fused.program().entries) one.fused_launches += entry.steps.size();
    for (const EntryPlan& entry : plans.unfused.program().entries) one.unfused_launches += entry.steps.size();
    if (model.spec) {
      SINTER_TRY(verify_decoder(plans, model, reference ? &*reference : nullptr, options, one));
    } else {
      if (reference)
        return fail("reference tensors need a language model, got a module", path, "drop --reference");
      SINTER_TRY(verify_entries(plans, model.module, options.seed, one));
    }
    if (!model.spec) break;  // a module states its own types
  }
  return report;
}

}  // namespace sinter
