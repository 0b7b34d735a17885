#include "driver/embed/embed.h"

#include <algorithm>
#include <cmath>

#include "driver/embed/encode.h"
#include "driver/text_table.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

Status check_texts(const Model& model, llvm::ArrayRef<std::vector<int32_t>> texts,
                   const Pooling& pooling) {
  const int64_t most = most_tokens(*model.spec, pooling);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<int64_t>(texts[i].size());
    if (length < 1 || length > most)
      return fail(fmt::format("text {} has {}, 1 to {} are possible", i + 1,
                              counted(texts[i].size(), "token"), most),
                  model.origin, length < 1 ? "leave it out" : "split the text, or give --truncate");
    SINTER_TRY(check_vocabulary(model, texts[i]));
  }
  return {};
}

/// Pools `length` rows of width `width`, without the first `left_out`, into one vector: 0 where
/// none is left, and the first token's where the first token counts.
std::vector<double> pool(const double* rows, size_t length, size_t width, size_t left_out,
                         const Pooling& pooling) {
  std::vector<double> result(width);
  if (pooling.kind == PoolingKind::cls) {
    const double* row = rows + (left_out < length ? left_out : 0) * width;
    result.assign(row, row + width);
  } else if (left_out < length) {
    for (size_t t = left_out; t < length; ++t)
      for (size_t i = 0; i < width; ++i) result[i] += rows[t * width + i];
    for (double& value : result) value /= static_cast<double>(length - left_out);
  }
  if (!pooling.normalize) return result;
  double squares = 0;
  for (double value : result) squares += value * value;
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (double& value : result) value /= norm;
  return result;
}

/// The first of the texts that share a call, one at least, and the arena of that call.
struct Together {
  size_t count = 0;
  int64_t arena_bytes = 0;
};
Result<Together> fitting(const ModelSpec& spec, const Executable& executable,
                         llvm::ArrayRef<std::vector<int32_t>> texts, size_t number,
                         const EmbedOptions& options) {
  const int64_t activation_bytes = options.activation_bytes;
  const int64_t shared_tokens =
      options.shared_tokens.value_or(executable.on_cuda() ? spec.max_positions : kHostSharedTokens);
  const Program& program = executable.program();
  SINTER_LET(entry, encode_entry(program));
  Together together;
  int64_t tokens = 0;
  for (const auto& text : texts) {
    const auto length = static_cast<int64_t>(text.size());
    tokens = text_begin(tokens, length, program.invariant) + length;
    if (tokens > spec.max_positions || (together.count > 0 && tokens > shared_tokens)) break;
    std::vector<int64_t> values = min_symbol_values(program.symbols);
    values[static_cast<size_t>(find_symbol(program.symbols, "N"))] = tokens;
    SINTER_LET(needed, arena_bytes(*entry, values));
    if (needed > activation_bytes) {
      if (together.count > 0) break;
      return fail(fmt::format("text {} of {} tokens needs {} bytes for activations, {} are allowed",
                              number, length, needed, activation_bytes),
                  program.name,
                  fmt::format("set activation-memory to {}B or more, or split the text", needed),
                  ExitCode::usage);
    }
    ++together.count;
    together.arena_bytes = needed;
  }
  return together;
}

}  // namespace

Status require_encoder(const Model& model) {
  if (model.spec && model.spec->encoder) return {};
  return fail("embeddings need an encoder, such as BERT", model.origin, "give another model",
              ExitCode::usage);
}

int64_t most_tokens(const ModelSpec& spec, const Pooling& pooling) {
  return std::min(spec.max_positions, pooling.max_tokens.value_or(spec.max_positions));
}

Result<EmbedCalls> embed(const Model& model, const ReadyPlan& ready,
                         llvm::ArrayRef<std::vector<int32_t>> texts, const EmbedOptions& options,
                         const TakeVector& take) {
  SINTER_TRY(check_texts(model, texts, options.pooling));
  const auto width = static_cast<size_t>(model.spec->hidden);
  const size_t left_out =
      options.pooling.pools_prompt ? 0 : static_cast<size_t>(options.prompt_tokens);
  // All calls are known to fit before the first one runs.
  std::vector<Together> calls;
  EmbedCalls result;
  for (size_t at = 0; at < texts.size(); at += calls.back().count) {
    SINTER_LET(call,
               fitting(*model.spec, *ready.executable, texts.drop_front(at), at + 1, options));
    calls.push_back(call);
    result.arena_bytes = std::max(result.arena_bytes, call.arena_bytes);
  }
  result.calls = static_cast<int64_t>(calls.size());
  for (const Together& call : calls) {
    const auto together = texts.take_front(call.count);
    texts = texts.drop_front(call.count);
    SINTER_LET(run, encode(*model.spec, *ready.executable, together));
    const std::vector<double> hidden = to_doubles(run.outputs[0]);
    const double* rows = hidden.data();
    for (const auto& text : together) {
      SINTER_TRY(take(pool(rows, text.size(), width, left_out, options.pooling)));
      rows += text.size() * width;
    }
  }
  return result;
}

}  // namespace sinter
