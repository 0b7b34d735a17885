#include "driver/generate/perplexity.h"

#include <algorithm>
#include <cmath>

#include "driver/generate/generation_state.h"
#include "driver/text_table.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

// Tokens of one call: their logits are in memory at once.
constexpr int64_t kPiece = 256;

/// -log softmax(row)[token] in float64.
double negative_log_likelihood(const double* row, int64_t width, int32_t token) {
  const double largest = *std::max_element(row, row + width);
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(row[i] - largest);
  return largest + std::log(sum) - row[token];
}

/// Adds the rows of `logits`, row i of which predicts tokens[i].
void add_rows(const HostTensor& logits, llvm::ArrayRef<int32_t> tokens, Perplexity& result) {
  for (double loss : prediction_losses(logits, tokens)) result.nll_sum += loss;
  result.predicted += static_cast<int64_t>(tokens.size());
}

Status add_pieces(const std::shared_ptr<const Model>& model, llvm::ArrayRef<int32_t> tokens,
                  int64_t window, Perplexity& result) {
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += static_cast<size_t>(window)) {
    const llvm::ArrayRef<int32_t> text =
        tokens.slice(begin, std::min<size_t>(static_cast<size_t>(window), tokens.size() - begin));
    SINTER_LET(decoder, Decoder::create(model, 1, static_cast<int64_t>(text.size())));
    for (size_t at = 0; at < text.size(); at += kPiece) {
      const llvm::ArrayRef<int32_t> piece =
          text.slice(at, std::min<size_t>(kPiece, text.size() - at));
      SINTER_LET(run, decoder.prefill({piece.vec()}));
      add_rows(run.outputs[0], text.drop_front(at + 1).take_front(piece.size()), result);
    }
  }
  return {};
}

Status add_recomputed(const std::shared_ptr<const Model>& model, llvm::ArrayRef<int32_t> tokens,
                      int64_t window, Perplexity& result) {
  for (size_t at = 1; at < tokens.size(); ++at) {
    const size_t seen = std::min(at, static_cast<size_t>(window));
    SINTER_LET(decoder, Decoder::create(model, 1, static_cast<int64_t>(seen)));
    SINTER_LET(run,
               decoder.prefill({tokens.slice(at - seen, seen).vec()}, {}, Wanted::last_of_each));
    add_rows(run.outputs[0], tokens.slice(at, 1), result);
  }
  return {};
}

Status add_streamed(const Model& model, llvm::ArrayRef<int32_t> tokens, const StreamingCache& cache,
                    Perplexity& result) {
  SINTER_LET(state, start_generation(model, {{tokens.front()}}, 1, {}, cache));
  for (size_t at = 1;; ++at) {
    add_rows(state.logits, tokens.slice(at, 1), result);
    if (at + 1 == tokens.size()) return {};
    SINTER_TRY(force_token(model, state, tokens[at]));
  }
}

}  // namespace

std::vector<double> prediction_losses(const HostTensor& logits, llvm::ArrayRef<int32_t> tokens) {
  const std::vector<double> values = to_doubles(logits);
  const int64_t width = logits.dims.back();
  std::vector<double> losses;
  for (size_t i = 0; i < tokens.size(); ++i)
    losses.push_back(
        negative_log_likelihood(values.data() + static_cast<int64_t>(i) * width, width, tokens[i]));
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
  if (model.spec->streaming)
    SINTER_TRY(add_streamed(*ready.model, tokens, *model.spec->streaming, result));
  else if (options.recompute)
    SINTER_TRY(add_recomputed(ready.model, tokens, window, result));
  else
    SINTER_TRY(add_pieces(ready.model, tokens, window, result));
  return result;
}

}  // namespace sinter
