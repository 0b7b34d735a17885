#include "driver/generate/sequence_batch.h"

#include <algorithm>

#include "driver/generate/finite_logits.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

const Symbol& symbol_of(const Program& program, std::string_view name) {
  return program.symbols[static_cast<size_t>(find_symbol(program.symbols, name))];
}

Status check_sizes(const Program& program, int64_t places, int64_t rows) {
  const int64_t together = symbol_of(program, "B").high;
  if (places < 1 || places > together)
    return fail(fmt::format("{} places, 1 to {} sequences decode together", places, together),
                program.name, "compile the model for more sequences", ExitCode::usage);
  if (rows > symbol_of(program, "R").high)
    return fail(fmt::format("caches of {} rows, the plan has at most {}", rows,
                            symbol_of(program, "R").high),
                program.name, "ask for fewer places or shorter texts", ExitCode::usage);
  return {};
}

}  // namespace

int64_t SequenceBatch::cache_bytes(const Program& program, int64_t places, int64_t capacity) {
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] =
      places * sequence_rows(program.symbols, places, capacity);
  int64_t bytes = 0;
  for (const State& state : program.states) {
    int64_t elements = 1;
    for (int64_t extent : concrete_dims(state.type, values)) elements *= extent;
    bytes += storage_bytes(state.type.dtype, elements);
  }
  return bytes;
}

Result<std::unique_ptr<SequenceBatch>> SequenceBatch::create(
    std::shared_ptr<const Executable> executable, int64_t places, int64_t capacity,
    const PrefillOptions& prefill) {
  const Program& program = executable->program();
  SINTER_TRY(require_generation(program));
  const int64_t place_rows = sequence_rows(program.symbols, places, capacity);
  capacity = rounded_up(capacity, symbol_of(program, "R"));
  const int64_t rows = places * place_rows;
  SINTER_TRY(check_sizes(program, places, rows));
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] = rows;
  SINTER_LET(session, executable->new_session(values));
  SINTER_LET(steps, DecodeSteps::create(executable, *session, rows, places));
  std::unique_ptr<SequenceBatch> batch(new SequenceBatch(std::move(executable), std::move(session),
                                                         places, capacity, place_rows, prefill));
  batch->steps_ = std::move(steps);
  return batch;
}

/// The logits [1, vocabulary] of the prompt's last token.
Result<HostTensor> SequenceBatch::feed(llvm::ArrayRef<int32_t> prompt, size_t place) {
  const Program& program = executable_->program();
  const auto count = static_cast<int64_t>(prompt.size());
  SINTER_LET(chunk, choose_chunk(program,
                                 {.tokens = count,
                                  .sequences = 1,
                                  .rows = places() * place_rows_,
                                  .capacity = place_rows_,
                                  .wanted = Wanted::last_of_each},
                                 prefill_));
  std::vector<std::vector<int32_t>> tokens(taken_.size());
  std::vector<int64_t> lengths(taken_.size(), 0);
  HostTensor logits;
  for (int64_t at = 0; at < count; at += chunk.tokens) {
    const int64_t end = std::min(count, at + chunk.tokens);
    tokens[place] = prompt.slice(static_cast<size_t>(at), static_cast<size_t>(end - at)).vec();
    lengths[place] = at;
    const DecoderCall call = pack_sequences("prefill", program.symbols, tokens, lengths,
                                            place_rows_, Wanted::last_of_each);
    SINTER_LET(run, session_->run("prefill", call.symbol_values, addresses_of(call.inputs)));
    logits = std::move(run.outputs[0]);
    if (prefill_.progress && !prefill_.progress(end, count))
      return fail(fmt::format("the prompt was cancelled after {} of {} tokens", end, count), {},
                  "add it again", ExitCode::cancelled);
  }
  return logits;
}

Result<SequenceBatch::Id> SequenceBatch::add(llvm::ArrayRef<int32_t> prompt,
                                             const Sampling& sampling) {
  const Program& program = executable_->program();
  const auto count = static_cast<int64_t>(prompt.size());
  if (count == 0) return fail("a prompt has no tokens", program.name, "give at least one");
  if (count > capacity_)
    return fail(fmt::format("a prompt of {}, a place has room for {}",
                            counted(static_cast<uint64_t>(count), "token"), capacity_),
                program.name, "make a batch of larger capacity");
  const auto place = static_cast<size_t>(llvm::find(taken_, false) - taken_.begin());
  if (place == taken_.size())
    return fail(fmt::format("all {} places are taken", places()), program.name,
                "remove a sequence first");
  SINTER_LET(logits, feed(prompt, place));
  const int64_t begin = static_cast<int64_t>(place) * place_rows_;
  StepRow row{.token = 0,
              .pos = static_cast<int32_t>(count - 1),
              .slot = static_cast<int32_t>(begin + count - 1),
              .first = static_cast<int32_t>(begin),
              .step = 0,
              .sampling = sampling};
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] = places() * place_rows_;
  SINTER_LET(chosen, sample_tokens(program, *session_, values, logits, row));
  SINTER_TRY(check_chosen(chosen[0], count));
  row.token = chosen[0];
  taken_[place] = true;
  sequences_.push_back({next_, place, count, row, true});
  return next_++;
}

Status SequenceBatch::remove(Id id) {
  const auto at = llvm::find_if(sequences_, [&](const Sequence& one) { return one.id == id; });
  if (at == sequences_.end())
    return fail(fmt::format("no sequence {}", id), executable_->program().name,
                "add gives a sequence its number");
  taken_[at->place] = false;
  sequences_.erase(at);
  return {};
}

Result<std::vector<SequenceBatch::Token>> SequenceBatch::step() {
  std::vector<StepRow> rows;
  for (const Sequence& one : sequences_) {
    if (one.is_new) continue;
    if (one.length == capacity_)
      return fail(fmt::format("sequence {} fills its place of {}", one.id,
                              counted(static_cast<uint64_t>(capacity_), "token")),
                  executable_->program().name, "remove it");
    StepRow row = one.row;
    ++row.pos, ++row.slot, ++row.step;
    rows.push_back(row);
  }
  std::vector<int32_t> chosen;
  if (!rows.empty()) {
    SINTER_LET(tokens, steps_->run(rows));
    chosen = std::move(tokens);
  }
  size_t at = 0;
  for (const Sequence& one : sequences_) {
    if (one.is_new) continue;
    SINTER_TRY(check_chosen(chosen[at], rows[at].pos + 1, fmt::format("sequence {}: ", one.id)));
    ++at;
  }
  std::vector<Token> given;
  size_t next = 0;
  for (Sequence& one : sequences_) {
    if (!std::exchange(one.is_new, false)) {
      one.row = rows[next];
      one.row.token = chosen[next++];
      ++one.length;
    }
    given.push_back({one.id, one.row.token});
  }
  return given;
}

}  // namespace sinter
