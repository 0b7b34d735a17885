#include "driver/generate/generate_many.h"

#include <algorithm>
#include <map>

#include "driver/generate/finite_logits.h"
#include "driver/memory_use.h"
#include "driver/text_table.h"
#include "runtime/clock.h"
#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

// Caches and activations together take this share of the free memory at most.
constexpr double kUsableShare = 0.9;

/// Bytes that are free on the executable's device; nothing where the system does not tell.
Result<std::optional<int64_t>> free_bytes(const Executable& executable) {
  const std::shared_ptr<const CudaExecutable> cuda = executable.on_cuda();
  if (!cuda) return available_memory();
  SINTER_LET(memory, cuda->cuda_device()->memory());
  return std::optional(static_cast<int64_t>(memory.free));
}

/// The most sequences that the plan decodes in one call.
int64_t sequences_together(const Program& program) {
  const int symbol = find_symbol(program.symbols, "B");
  return symbol < 0 ? 1 : program.symbols[static_cast<size_t>(symbol)].high;
}

class ManyPrompts {
 public:
  ManyPrompts(const Model& model, SequenceBatch& batch,
              llvm::ArrayRef<std::vector<int32_t>> prompts, const ManyOptions& options,
              ManyGeneration& result)
      : model_(model), batch_(batch), prompts_(prompts), options_(options), result_(result) {}

  Status run() {
    while (wanted_ && (next_ < prompts_.size() || !open_.empty())) {
      SINTER_TRY(fill());
      SINTER_LET(tokens, batch_.step());
      ++result_.steps;
      for (const SequenceBatch::Token& token : tokens) SINTER_TRY(take(token));
    }
    return {};
  }

 private:
  struct Open {
    size_t prompt;
    std::vector<int32_t> tokens;
  };

  Status fill() {
    for (; batch_.free_places() > 0 && next_ < prompts_.size(); ++next_) {
      Sampling sampling = options_.sampling;
      sampling.seed = sequence_seed(sampling.seed, next_);
      SINTER_LET(id, batch_.add(prompts_[next_], sampling));
      open_[id] = {next_, {}};
      result_.prompt_tokens += static_cast<int64_t>(prompts_[next_].size());
    }
    return {};
  }

  Status take(const SequenceBatch::Token& token) {
    Open& open = open_.at(token.sequence);
    const bool ends = is_end_token(model_, options_.stop_at_eos, options_.ends, token.token);
    if (!ends) {
      open.tokens.push_back(token.token);
      ++result_.tokens;
    }
    if (!ends && static_cast<int64_t>(open.tokens.size()) < options_.count) return {};
    SINTER_TRY(batch_.remove(token.sequence));
    if (wanted_ && options_.on_sequence) wanted_ = options_.on_sequence(open.prompt, open.tokens);
    open_.erase(token.sequence);
    return {};
  }

  const Model& model_;
  SequenceBatch& batch_;
  llvm::ArrayRef<std::vector<int32_t>> prompts_;
  const ManyOptions& options_;
  ManyGeneration& result_;
  size_t next_ = 0;  // prompt that has no place yet
  std::map<SequenceBatch::Id, Open> open_;
  bool wanted_ = true;  // by the callback
};

}  // namespace

Result<int64_t> places_that_fit(const Executable& executable, int64_t wanted, int64_t capacity,
                                const PrefillOptions& prefill) {
  wanted = std::min(wanted, sequences_together(executable.program()));
  SINTER_LET(free, free_bytes(executable));
  if (!free) return wanted;
  const auto usable =
      static_cast<int64_t>(kUsableShare * static_cast<double>(*free)) - prefill.activation_bytes;
  const int64_t place = SequenceBatch::cache_bytes(executable.program(), wanted, capacity) / wanted;
  if (place == 0 || usable / place >= wanted) return wanted;
  if (usable / place > 1) return usable / place;
  const int64_t one = SequenceBatch::cache_bytes(executable.program(), 1, capacity);
  if (usable < one)
    return fail(fmt::format("the caches of one sequence take {}, {} are free",
                            with_unit(static_cast<double>(one), "B"),
                            with_unit(static_cast<double>(*free), "B")),
                executable.device(), "ask for shorter texts, or set --activation-memory lower",
                ExitCode::out_of_memory);
  return 1;
}

Result<ManyGeneration> generate_many(const Model& model, const ReadyPlan& ready,
                                     llvm::ArrayRef<std::vector<int32_t>> prompts,
                                     const ManyOptions& options) {
  ManyGeneration result;
  if (prompts.empty() || options.count < 1) return result;
  const Clock::time_point begin = Clock::now();
  int64_t capacity = 0;
  for (const auto& prompt : prompts)
    capacity = std::max(capacity, text_tokens(prompt.size(), options.count));
  SINTER_LET(places, places_that_fit(*ready.executable,
                                     std::min(options.places, static_cast<int64_t>(prompts.size())),
                                     capacity, options.prefill));
  result.places = places;
  result.cache_bytes = SequenceBatch::cache_bytes(ready.executable->program(), places, capacity);
  if (options.on_places) options.on_places(places, result.cache_bytes);
  SINTER_LET(batch, SequenceBatch::create(ready.executable, places, capacity, options.prefill));
  SINTER_TRY(explained(ManyPrompts(model, *batch, prompts, options, result).run(), model));
  result.seconds = seconds_since(begin);
  return result;
}

}  // namespace sinter
