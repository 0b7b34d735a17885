#include "driver/generate/generate.h"

#include <algorithm>

#include "driver/generate/finite_logits.h"
#include "driver/text_table.h"
#include "runtime/clock.h"

namespace sinter {

Result<Sampling> to_sampling(const SamplingOptions& options) {
  const Sampling sampling{
      static_cast<float>(options.temperature.value_or(options.of_draws() ? 1 : 0)),
      options.top_k.value_or(0), static_cast<float>(options.top_p.value_or(1)),
      options.seed.value_or(0)};
  if (!(sampling.temperature >= 0) || sampling.temperature > 1e6f)
    return fail(fmt::format("a temperature of {}", sampling.temperature), "--temperature",
                "give 0 or more", ExitCode::usage);
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    return fail(fmt::format("top-p of {}", sampling.top_p), "--top-p",
                "give a share above 0, at most 1", ExitCode::usage);
  if (sampling.top_k < 0)
    return fail(fmt::format("top-k of {}", sampling.top_k), "--top-k", "give 0 or more",
                ExitCode::usage);
  return sampling;
}

bool is_end_token(const Model& model, bool stop_at_eos, llvm::ArrayRef<int32_t> more,
                  int32_t token) {
  return llvm::is_contained(more, token) ||
         (stop_at_eos && llvm::is_contained(model.spec->eos, token));
}

Status check_prompts(const Model& model, llvm::ArrayRef<std::vector<int32_t>> prompts,
                     int64_t count) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    SINTER_TRY(check_tokens(model, prompts[i]));
    const int64_t length = text_tokens(prompts[i].size(), count);
    if (!model.spec->streaming && length > model.spec->max_positions)
      return fail(
          fmt::format("{}{} and {} more, the model has {}",
                      prompts.size() > 1 ? fmt::format("prompt {}: ", i + 1) : std::string(),
                      counted(prompts[i].size(), "token"), count,
                      counted(static_cast<uint64_t>(model.spec->max_positions), "position")),
          model.origin, "ask for fewer, or give --kv sink=4,window=W");
  }
  return {};
}

Result<Generation> generate(const OpenedModel& model, llvm::ArrayRef<std::vector<int32_t>> prompts,
                            const GenerateOptions& options) {
  SINTER_TRY(check_prompts(model, prompts, options.count));
  SINTER_LET(ready, make_ready(model, options.compile, *options.backend));
  return generate(model, ready, prompts, options);
}

namespace {

Result<Generation> run(const Model& model, const ReadyPlan& ready,
                       llvm::ArrayRef<std::vector<int32_t>> prompts,
                       const GenerateOptions& options) {
  Generation result;
  result.tokens.resize(prompts.size());
  for (const auto& prompt : prompts) result.prompt_tokens += static_cast<int64_t>(prompt.size());
  if (options.count <= 0) return result;

  const Clock::time_point begin = Clock::now();
  SINTER_LET(generator,
             Generator::create(ready.executable, prompts, options.count, options.sampling,
                               model.spec->streaming, options.prefill));
  result.prefill = generator->prefill();
  std::vector<uint8_t> ended(prompts.size(), 0);
  Clock::time_point first = begin;
  bool wanted = true;  // by the callback
  while (wanted && result.steps < options.count) {
    SINTER_LET(tokens, generator->next());
    if (result.steps++ == 0) {
      result.first_s = seconds_since(begin);
      first = Clock::now();
    }
    for (size_t s = 0; s < tokens.size(); ++s) {
      ended[s] |= is_end_token(model, options.stop_at_eos, options.ends, tokens[s]) ? 1 : 0;
      if (ended[s]) continue;
      result.tokens[s].push_back(tokens[s]);
      if (options.on_token) wanted = options.on_token(s, tokens[s]) && wanted;
    }
    if (std::find(ended.begin(), ended.end(), 0) == ended.end()) break;
  }
  if (result.steps > 2)
    result.per_token_s = seconds_since(first) / static_cast<double>(result.steps - 1);
  return result;
}

}  // namespace

Result<Generation> generate(const Model& model, const ReadyPlan& ready,
                            llvm::ArrayRef<std::vector<int32_t>> prompts,
                            const GenerateOptions& options) {
  return explained(run(model, ready, prompts, options), model);
}

}  // namespace sinter
