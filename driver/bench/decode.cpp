#include "driver/bench/costs.h"
#include "driver/bench/parts.h"
#include "driver/compile/plan_summary.h"

namespace sinter {

Result<BenchCase> bench_decode(BenchPlans& plans, const BenchOptions& options, int64_t context,
                               const Ceiling& read) {
  const int64_t length = decode_prompt(context);
  const int64_t count = options.tokens;
  SINTER_LET(prompts,
             random_sequences(plans.spec->vocabulary, options.batch, length, options.seed));
  BenchCase result;
  result.name = "decode";
  result.sizes = {{"context", context}, {"tokens", count}, {"batch", options.batch}};
  // Timed step i, from 0, sees the context and i + 1 more tokens.
  const double visible = static_cast<double>(context) + static_cast<double>(count + 1) / 2;
  result.amount = decode_bytes(plans.frozen, *plans.spec, options.batch, visible,
                               plans.experts ? plans.experts->read : 0);
  result.ceiling_name = "read";
  result.ceiling = read;

  const auto begin = Clock::now();
  SINTER_LET(fused, DecodeRuns::create(plans.fused, prompts, count));
  SINTER_LET(unfused, DecodeRuns::create(plans.unfused, prompts, count));
  SINTER_LET(fused_run, fused.run());
  SINTER_LET(unfused_run, unfused.run());
  plans.first_calls_s += seconds_since(begin);
  if (plans.numerics() == Numerics::strict && fused_run.tokens != unfused_run.tokens)
    return fail("the fused and the unfused plan choose different tokens", "decode",
                "`sinter verify` finds the first value that differs", ExitCode::check_failed);
  for (auto [model, times] :
       {std::pair(&plans.fused, &result.fused), {&plans.unfused, &result.unfused}})
    for (std::string_view entry : {"decode", "sample"})
      times->launches += plan_costs((*model)->program(), *(*model)->program().find_entry(entry),
                                    fused.symbol_values())
                             .launches;
  for (auto [compiled, times] :
       {std::pair(&plans.compiled, &result.fused), {&plans.apart, &result.unfused}}) {
    const auto decode = plans.predicted(*compiled, "decode", fused.symbol_values());
    const auto sample = plans.predicted(*compiled, "sample", fused.symbol_values());
    if (decode && sample) times->predicted_s = *decode + *sample;
  }
  for (int64_t i = 0; i < options.repeat; ++i)
    for (auto [runs, times] : {std::pair(&fused, &result.fused), {&unfused, &result.unfused}}) {
      SINTER_LET(run, runs->run());
      add_sample(*times, run.times, count);
    }
  return result;
}

}  // namespace sinter
