#include "driver/generate/perplexity.h"

#include <algorithm>
#include <cmath>

#include "driver/generate/finite_logits.h"
#include "driver/generate/generation_state.h"
#include "driver/text_table.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

/// -log softmax(row)[token] in float64.
double negative_log_likelihood(const double* row, int64_t width, int32_t token) {
  const double largest = *std::max_element(row, row + width);
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(row[i] - largest);
  return largest + std::log(sum) - row[token];
}

/// Adds the rows of `logits`, row i of which predicts tokens[i].
Status add_rows(const HostTensor& logits, llvm::ArrayRef<int32_t> tokens, Perplexity& result) {
  for (double loss : prediction_losses(logits, tokens)) {
    ++result.predicted;
    if (std::isnan(loss))
      return fail(fmt::format("the logits of prediction {} are not finite", result.predicted), {},
                  {}, ExitCode::check_failed);
    result.nll_sum += loss;
  }
  return {};
}

Result<PrefillChunk> chunk_of(const Executable& executable, int64_t length, Wanted wanted,
                              const PrefillOptions& options) {
  return choose_chunk(executable.program(), {length, 1, length, length, wanted}, options);
}

Status add_pieces(const std::shared_ptr<const Executable>& executable,
                  llvm::ArrayRef<int32_t> tokens, size_t window, Perplexity& result) {
  const auto chunk = static_cast<size_t>(result.prefill.tokens);
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += window) {
    const llvm::ArrayRef<int32_t> text =
        tokens.slice(begin, std::min(window, tokens.size() - begin));
    SINTER_LET(decoder, Decoder::create(executable, 1, static_cast<int64_t>(text.size())));
    for (size_t at = 0; at < text.size(); at += chunk) {
      const llvm::ArrayRef<int32_t> call = text.slice(at, std::min(chunk, text.size() - at));
      SINTER_LET(run, decoder.prefill({call.vec()}));
      SINTER_TRY(add_rows(run.outputs[0], text.drop_front(at + 1).take_front(call.size()), result));
    }
  }
  return {};
}

Status add_recomputed(const std::shared_ptr<const Executable>& executable,
                      llvm::ArrayRef<int32_t> tokens, size_t window, Perplexity& result) {
  const auto chunk = static_cast<size_t>(result.prefill.tokens);
  for (size_t at = 1; at < tokens.size(); ++at) {
    const llvm::ArrayRef<int32_t> seen = tokens.take_front(at).take_back(std::min(at, window));
    SINTER_LET(decoder, Decoder::create(executable, 1, static_cast<int64_t>(seen.size())));
    RunResult last;
    for (size_t from = 0; from < seen.size(); from += chunk) {
      SINTER_LET(run, decoder.prefill({seen.slice(from, std::min(chunk, seen.size() - from)).vec()},
                                      {}, Wanted::last_of_each));
      last = std::move(run);
    }
    SINTER_TRY(add_rows(last.outputs[0], tokens.slice(at, 1), result));
  }
  return {};
}

Status add_streamed(const Executable& executable, llvm::ArrayRef<int32_t> tokens,
                    const StreamingCache& cache, Perplexity& result) {
  SINTER_LET(state, start_generation(executable, {{tokens.front()}}, 1, {}, cache));
  result.prefill = state.chunk;
  for (size_t at = 1;; ++at) {
    SINTER_TRY(add_rows(state.logits, tokens.slice(at, 1), result));
    if (at + 1 == tokens.size()) return {};
    SINTER_TRY(force_token(executable, state, tokens[at]));
  }
}

}  // namespace

std::vector<double> prediction_losses(const HostTensor& logits, llvm::ArrayRef<int32_t> tokens) {
  const int64_t width = logits.dims.back();
  const size_t row_bytes = logits.bytes.size() / static_cast<size_t>(logits.dims[0]);
  std::vector<double> losses;
  for (size_t i = 0; i < tokens.size(); ++i) {
    // A row at a time: all logits as float64 would need four times their memory.
    const auto begin = logits.bytes.begin() + static_cast<ptrdiff_t>(i * row_bytes);
    const HostTensor row{logits.dtype, {width}, {begin, begin + static_cast<ptrdiff_t>(row_bytes)}};
    losses.push_back(negative_log_likelihood(to_doubles(row).data(), width, tokens[i]));
  }
  return losses;
}

double Perplexity::value() const { return std::exp(mean()); }

Result<Perplexity> perplexity(const OpenedModel& model, llvm::ArrayRef<int32_t> tokens,
                              const PerplexityOptions& options) {
  SINTER_TRY(check_tokens(model, tokens));
  if (tokens.size() < 2)
    return fail("a text of fewer than two tokens predicts nothing", model.origin);
  const int64_t window = options.window > 0 ? options.window : model.spec->max_positions;
  if (window > model.spec->max_positions)
    return fail(fmt::format("a window of {}, the model has {}",
                            counted(static_cast<uint64_t>(window), "token"),
                            counted(static_cast<uint64_t>(model.spec->max_positions), "position")),
                model.origin);
  SINTER_LET(ready, make_ready(model, options.compile, *options.backend));
  Perplexity result;
  if (model.spec->streaming) {
    SINTER_TRY(
        explained(add_streamed(*ready.executable, tokens, *model.spec->streaming, result), model));
    return result;
  }
  const int64_t longest = std::min(window, static_cast<int64_t>(tokens.size()));
  SINTER_LET(chunk,
             chunk_of(*ready.executable, longest,
                      options.recompute ? Wanted::last_of_each : Wanted::all, options.prefill));
  result.prefill = chunk;
  const auto add = options.recompute ? add_recomputed : add_pieces;
  SINTER_TRY(explained(add(ready.executable, tokens, static_cast<size_t>(window), result), model));
  return result;
}

}  // namespace sinter
