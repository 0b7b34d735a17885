#include "driver/generate/feed_prompts.h"

#include <algorithm>
#include <numeric>

namespace sinter {
namespace {

/// An input that only models with a streaming cache have: the place of each row in the text. While
/// the cache is not full it is the row's number.
constexpr std::string_view kRowPlaces = "row_pos";

bool has_row_places(const EntryPlan& entry) {
  return llvm::any_of(entry.inputs,
                      [&](uint32_t id) { return entry.buffers[id].value == kRowPlaces; });
}

HostTensor counting_up(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return i32_tensor(values);
}

/// Row `from` of a matrix becomes row `to` of another one.
void copy_row(const HostTensor& source, size_t from, HostTensor& target, size_t to) {
  const size_t bytes = target.bytes.size() / static_cast<size_t>(target.dims[0]);
  std::copy_n(source.bytes.begin() + static_cast<ptrdiff_t>(from * bytes), bytes,
              target.bytes.begin() + static_cast<ptrdiff_t>(to * bytes));
}

}  // namespace

std::vector<PromptCall> cut_prompts(llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t chunk) {
  std::vector<PromptCall> calls;
  int64_t room = 0;  // for tokens of the last call
  for (size_t s = 0; s < prompts.size(); ++s) {
    const llvm::ArrayRef<int32_t> prompt = prompts[s];
    for (size_t at = 0; at < prompt.size();) {
      if (room == 0) {
        PromptCall& call = calls.emplace_back();
        call.tokens.resize(prompts.size());
        call.ends.resize(prompts.size(), false);
        for (size_t before = 0; before < s; ++before)
          call.lengths.push_back(static_cast<int64_t>(prompts[before].size()));
        call.lengths.push_back(static_cast<int64_t>(at));
        call.lengths.resize(prompts.size(), 0);
        room = chunk;
      }
      const auto count = std::min(prompt.size() - at, static_cast<size_t>(room));
      calls.back().tokens[s] = prompt.slice(at, count).vec();
      at += count;
      room -= static_cast<int64_t>(count);
      calls.back().ends[s] = at == prompt.size();
    }
  }
  return calls;
}

Result<HostTensor> feed_prompts(Session& session, const Program& program,
                                llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t capacity,
                                int64_t chunk, const PrefillOptions& options) {
  const EntryPlan& entry = *program.find_entry("prefill");
  const auto visible = static_cast<size_t>(find_symbol(program.symbols, "K"));
  const int64_t total = prompt_sizes(prompts, capacity, Wanted::last_of_each).tokens;
  int64_t done = 0;
  HostTensor logits;
  for (const PromptCall& part : cut_prompts(prompts, chunk)) {
    DecoderCall call = pack_sequences("prefill", program.symbols, part.tokens, part.lengths,
                                      capacity, Wanted::last_of_each);
    done += call.inputs[0].dims[0];
    if (has_row_places(entry)) call.inputs.push_back(counting_up(call.symbol_values[visible]));
    SINTER_LET(run, session.run("prefill", call.symbol_values, addresses_of(call.inputs)));
    if (logits.dims.empty()) {
      const HostTensor& some = run.outputs[0];
      SINTER_LET(made,
                 make_tensor(some.dtype, {static_cast<int64_t>(prompts.size()), some.dims[1]}));
      logits = std::move(made);
    }
    size_t row = 0;  // of the call's logits: one for each sequence that has tokens in it
    for (size_t s = 0; s < prompts.size(); ++s) {
      if (part.ends[s]) copy_row(run.outputs[0], row, logits, s);
      if (!part.tokens[s].empty()) ++row;
    }
    if (options.progress && !options.progress(done, total))
      return fail(fmt::format("the prompts were cancelled after {} of {} tokens", done, total), {},
                  "generate again", ExitCode::cancelled);
  }
  return logits;
}

}  // namespace sinter
