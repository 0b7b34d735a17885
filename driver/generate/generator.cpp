#include "driver/generate/generator.h"

#include <algorithm>
#include <numeric>

#include "driver/generate/cuda_generator.h"
#include "driver/generate/decode_steps.h"
#include "driver/generate/feed_prompts.h"
#include "driver/generate/finite_logits.h"
#include "driver/text_table.h"
#include "frontends/load_model.h"
#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

template <typename T>
HostTensor repeated(DType dtype, T value, size_t count) {
  return vector_tensor<T>(dtype, std::vector<T>(count, value));
}

HostTensor counting_up(size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return i32_tensor(values);
}

HostTensor seeds(int32_t seed, size_t count) {
  std::vector<int32_t> values;
  for (size_t s = 0; s < count; ++s) values.push_back(sequence_seed(seed, s));
  return i32_tensor(values);
}

Status check_generation(const Program& program, llvm::ArrayRef<std::vector<int32_t>> prompts,
                        int64_t most, const std::optional<StreamingCache>& streaming) {
  SINTER_TRY(require_generation(program));
  const auto largest = [&](std::string_view symbol) {
    return program.symbols[static_cast<size_t>(find_symbol(program.symbols, symbol))].high;
  };
  const int64_t together = streaming ? 1 : largest("B");
  if (prompts.empty() || static_cast<int64_t>(prompts.size()) > together)
    return fail(
        fmt::format("{}, 1 to {} decode together", counted(prompts.size(), "sequence"), together),
        program.name);
  const int64_t positions = longest_text(program.symbols);
  for (const auto& prompt : prompts) {
    if (prompt.empty()) return fail("a prompt has no tokens", program.name, "give at least one");
    const int64_t length = text_tokens(prompt.size(), most);
    if (!streaming && length > positions)
      return fail(fmt::format("{} tokens and {} more, the model has {} positions", prompt.size(),
                              most, positions),
                  program.name, "ask for fewer");
  }
  return {};
}

/// Runs decode and sample one after the other, on any device.
class SteppedGenerator final : public Generator {
 public:
  SteppedGenerator(std::shared_ptr<const Executable> executable, Started state,
                   std::vector<int32_t> first, int64_t most)
      : executable_(std::move(executable)),
        state_(std::move(state)),
        first_(std::move(first)),
        left_(most) {}

  Result<std::vector<int32_t>> next() override {
    SINTER_CHECK(left_ > 0, "more tokens than announced");
    --left_;
    if (first_) return *std::exchange(first_, std::nullopt);
    SINTER_TRY(decode_step(*executable_, state_));
    return choose_tokens(*executable_, state_);
  }

 private:
  std::shared_ptr<const Executable> executable_;
  Started state_;
  std::optional<std::vector<int32_t>> first_;
  int64_t left_;
};

}  // namespace

Status require_generation(const Program& program) {
  for (std::string_view name : {"prefill", "decode", "sample"})
    if (!program.find_entry(name))
      return fail(fmt::format("the plan has no entry {}", name), program.name,
                  "only language models generate");
  return require_decoder_symbols(program);
}

int32_t sequence_seed(int32_t seed, size_t index) {
  return static_cast<int32_t>(static_cast<uint32_t>(seed) +
                              static_cast<uint32_t>(index) * 0x9E3779B9u);
}

std::string_view carried_input(std::string_view output) {
  constexpr std::string_view kPrefix = "next.";
  return output.starts_with(kPrefix) ? output.substr(kPrefix.size()) : std::string_view();
}

Result<Started> start_generation(const Executable& executable,
                                 llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t most,
                                 const Sampling& sampling,
                                 const std::optional<StreamingCache>& streaming,
                                 const PrefillOptions& prefill) {
  const Program& program = executable.program();
  SINTER_TRY(check_generation(program, prompts, most, streaming));
  int64_t longest = 0;
  for (const auto& prompt : prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.size()));
  const int64_t capacity = sequence_rows(
      program.symbols, static_cast<int64_t>(prompts.size()),
      streaming ? streaming->rows() : text_tokens(static_cast<size_t>(longest), most));
  std::vector<std::vector<int32_t>> heads(prompts.begin(), prompts.end());
  if (streaming && longest > streaming->rows())
    heads[0].resize(static_cast<size_t>(streaming->rows()));

  Started state;
  SINTER_LET(chunk,
             choose_chunk(program, prompt_sizes(heads, capacity, Wanted::last_of_each), prefill));
  state.chunk = chunk;
  state.symbol_values = min_symbol_values(program.symbols);
  for (const auto& [name, value] : {std::pair("R", static_cast<int64_t>(heads.size()) * capacity),
                                    {"B", static_cast<int64_t>(heads.size())}})
    state.symbol_values[static_cast<size_t>(find_symbol(program.symbols, name))] = value;
  SINTER_LET(session, executable.new_session(state.symbol_values));
  state.session = std::move(session);
  SINTER_LET(logits, feed_prompts(*state.session, program, heads, capacity, chunk.tokens, prefill));
  state.logits = std::move(logits);
  if (streaming) state.inputs["row_pos"] = counting_up(static_cast<size_t>(capacity));

  std::vector<int32_t> pos, slot, first;
  for (size_t s = 0; s < heads.size(); ++s) {
    pos.push_back(static_cast<int32_t>(heads[s].size()) - 1);
    first.push_back(static_cast<int32_t>(static_cast<int64_t>(s) * capacity));
    slot.push_back(first.back() + pos.back());
  }
  state.inputs["pos"] = i32_tensor(pos);
  state.inputs["slot"] = i32_tensor(slot);
  state.inputs["first"] = i32_tensor(first);
  state.inputs["step"] = repeated(DType::i32, int32_t{0}, heads.size());
  state.inputs["temperature"] = repeated(DType::f32, sampling.temperature, heads.size());
  state.inputs["top_k"] = repeated(DType::i32, sampling.top_k, heads.size());
  state.inputs["top_p"] = repeated(DType::f32, sampling.top_p, heads.size());
  state.inputs["seed"] = seeds(sampling.seed, heads.size());
  // Prompt tokens that a streaming cache cannot take at once are fed one by one.
  for (size_t i = heads[0].size(); i < prompts[0].size(); ++i)
    SINTER_TRY(force_token(executable, state, prompts[0][i]));
  return state;
}

Status decode_step(const Executable& executable, Started& state) {
  SINTER_LET(inputs,
             in_order(*executable.program().find_entry("decode"), state.inputs, &state.logits));
  SINTER_LET(result, state.session->run("decode", state.symbol_values, inputs));
  state.logits = std::move(result.outputs[0]);
  return {};
}

Status force_token(const Executable& executable, Started& state, int32_t token) {
  SINTER_TRY(choose_tokens(executable, state));
  state.inputs["tokens"] = i32_tensor({token});
  return decode_step(executable, state);
}

Result<std::vector<int32_t>> choose_tokens(const Executable& executable, Started& state) {
  const EntryPlan& sample = *executable.program().find_entry("sample");
  SINTER_LET(inputs, in_order(sample, state.inputs, &state.logits));
  SINTER_LET(result, state.session->run("sample", state.symbol_values, inputs));
  const std::vector<int32_t> fed = state.inputs["pos"].elements<int32_t>().vec();
  for (size_t i = 0; i < sample.outputs.size(); ++i)
    if (const std::string_view name = carried_input(sample.output_names[i]); !name.empty())
      state.inputs[std::string(name)] = std::move(result.outputs[i]);
  const auto tokens = state.inputs["tokens"].elements<int32_t>();
  SINTER_TRY(check_chosen(tokens, fed, 1));
  return tokens.vec();
}

Result<std::unique_ptr<Generator>> Generator::create(std::shared_ptr<const Executable> executable,
                                                     llvm::ArrayRef<std::vector<int32_t>> prompts,
                                                     int64_t most, const Sampling& sampling,
                                                     const std::optional<StreamingCache>& streaming,
                                                     const PrefillOptions& prefill) {
  SINTER_CHECK(most >= 1, "{} tokens", most);
  SINTER_LET(state, start_generation(*executable, prompts, most, sampling, streaming, prefill));
  const PrefillChunk chunk = state.chunk;
  std::unique_ptr<Generator> generator;
  if (executable->on_cuda()) {
    SINTER_LET(recorded, record_generation(std::move(executable), std::move(state), most));
    generator = std::move(recorded);
  } else {
    SINTER_LET(first, choose_tokens(*executable, state));
    generator = std::make_unique<SteppedGenerator>(std::move(executable), std::move(state),
                                                   std::move(first), most);
  }
  generator->prefill_ = chunk;
  return generator;
}

}  // namespace sinter
