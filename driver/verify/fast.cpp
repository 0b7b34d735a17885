// Fast numerics, checked: over 16 calls of each entry the fused plan is about as close to float64
// as the unfused one, which rounds as strict numerics do.
#include <algorithm>

#include "driver/embed/encode.h"
#include "driver/verify/parts.h"
#include "driver/verify/precise_session.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr uint64_t kSeeds = 16;
constexpr int64_t kMaxSteps = 4;  // of decoding, for each seed

/// The three runs of one seed: fused and unfused plan, and float64.
class FastCheck {
 public:
  FastCheck(const Plans& plans, PreciseSession& precise, const CallOptions& run,
            DTypeReport& report)
      : plans_(plans), precise_(precise), run_(run), report_(report) {}

  Status decoder(llvm::ArrayRef<std::vector<int32_t>> tokens, llvm::ArrayRef<int32_t> next) {
    int64_t longest = 0;
    for (const auto& sequence : tokens)
      longest = std::max<int64_t>(longest, static_cast<int64_t>(sequence.size()));
    precise_.restart();
    std::vector<Decoder> decoders;
    for (const auto& plan : {plans_.fused, plans_.unfused}) {
      SINTER_LET(decoder, Decoder::create(plan, static_cast<int64_t>(tokens.size()),
                                          longest + static_cast<int64_t>(next.size())));
      decoders.push_back(std::move(decoder));
    }
    const auto call = [&](std::string_view entry,
                          llvm::ArrayRef<std::vector<int32_t>> lists) -> Status {
      const DecoderCall packed = pack_sequences(entry, plans_.module.symbols, lists,
                                                decoders[0].lengths(), decoders[0].rows());
      std::vector<RunResult> results;
      for (Decoder& decoder : decoders) {
        SINTER_LET(result, decoder.run(entry, lists, run_, Wanted::all));
        results.push_back(std::move(result));
      }
      return compare(entry, results[0], results[1], packed.symbol_values, packed.inputs);
    };
    SINTER_TRY(call("prefill", tokens));
    for (int32_t token : next)
      SINTER_TRY(call("decode", std::vector<std::vector<int32_t>>(tokens.size(), {token})));
    return {};
  }

  Status encoder(const ModelSpec& spec, llvm::ArrayRef<std::vector<int32_t>> tokens) {
    precise_.restart();
    SINTER_LET(fused, encode(spec, *plans_.fused, tokens, run_));
    SINTER_LET(unfused, encode(spec, *plans_.unfused, tokens, run_));
    const DecoderCall call = pack_texts(spec, plans_.module.symbols, tokens);
    return compare("encode", fused, unfused, call.symbol_values, call.inputs);
  }

  Status entry(const Entry& original, llvm::ArrayRef<int64_t> values, uint64_t seed) {
    precise_.restart();
    SINTER_LET(inputs, random_inputs(original.graph, plans_.module.symbols, values, seed));
    std::vector<const HostTensor*> pointers = addresses_of(inputs);
    SINTER_LET(a, plans_.fused->new_session(values));
    SINTER_LET(b, plans_.unfused->new_session(values));
    SINTER_LET(fused, a->run(original.name, values, pointers, run_));
    SINTER_LET(unfused, b->run(original.name, values, pointers, run_));
    SINTER_TRY(compare(original.name, fused, unfused, values, inputs));
    for (size_t i = 0; i < plans_.module.states.size(); ++i) {
      SINTER_LET(x, a->state(i));
      SINTER_LET(y, b->state(i));
      const std::string name = fmt::format("{} %{}", original.name, plans_.module.states[i].name);
      SINTER_TRY(compare_values(name, x, y, precise_.states()[i]));
    }
    return {};
  }

 private:
  Status compare(std::string_view entry, const RunResult& fused, const RunResult& unfused,
                 llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<HostTensor> inputs) {
    SINTER_LET(exact, precise_.run(entry, symbol_values, inputs));
    ++report_.calls;
    if (run_.check_kernels) report_.host_checked_calls += 2;
    const EntryPlan& plan = *plans_.fused->program().find_entry(entry);
    for (size_t i = 0; i < exact.size(); ++i)
      SINTER_TRY(compare_values(fmt::format("{} %{}", entry, plan.output_names[i]),
                                fused.outputs[i], unfused.outputs[i], exact[i]));
    return {};
  }

  Status compare_values(const std::string& name, const HostTensor& fused, const HostTensor& unfused,
                        const HostTensor& exact) {
    if (!is_float(fused.dtype)) return {};
    ++report_.values;
    report_.elements += fused.volume();
    return add_errors(name, fused, unfused, exact, report_.bounds);
  }

  const Plans& plans_;
  PreciseSession& precise_;
  const CallOptions& run_;
  DTypeReport& report_;
};

}  // namespace

Status verify_fast(const Plans& plans, const Model& model, const VerifyOptions& options,
                   DTypeReport& report) {
  const CallOptions run{
      .poison_freed = true, .keep = {}, .check_kernels = options.backend->on_gpu()};
  // Every seed has as many tokens.
  if (model.spec && !is_small(plans, random_tokens(*model.spec, options.seed)))
    return fail(
        "the model is too large for the check of fast numerics, which is against float64 "
        "on the host",
        model.module.name,
        "check a smaller one of its kind: a spec with --random-weights, or strict numerics",
        ExitCode::bad_input);
  SINTER_LET(precise, PreciseSession::create(plans.module, *plans.unfused));
  FastCheck check(plans, precise, run, report);
  const uint64_t first = options.calls.seed.value_or(options.seed);
  for (uint64_t seed = first; seed - first < kSeeds; ++seed) {
    if (!model.spec) {
      SINTER_LET(calls, module_calls(model, options));
      for (size_t i = 0; i < calls.count(); ++i)
        SINTER_TRY(check.entry(*calls[i].entry, calls[i].symbol_values, seed));
      continue;
    }
    const auto tokens = random_tokens(*model.spec, 2 * seed);
    const int64_t steps =
        std::min({options.steps, kMaxSteps,
                  model.spec->max_positions - static_cast<int64_t>(tokens[0].size())});
    const auto next = random_ids(model.spec->vocabulary, std::max<int64_t>(steps, 0), seed + 7);
    SINTER_LET(calls, text_calls(*model.spec, plans.module.symbols, tokens, model.origin));
    for (const TextList texts : calls)
      SINTER_TRY(model.spec->encoder ? check.encoder(*model.spec, texts)
                                     : check.decoder(texts, next));
  }
  const bool chooses = llvm::any_of(plans.module.entries, [](const Entry& entry) {
    return llvm::any_of(entry.graph.ops(), [](const Op& op) { return op.kind == OpKind::top_k; });
  });
  for (ErrorBound& bound : report.bounds) bound.chooses = chooses;
  return {};
}

}  // namespace sinter
