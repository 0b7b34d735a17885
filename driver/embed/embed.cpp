#include "driver/embed/embed.h"

#include <algorithm>
#include <cmath>

#include "driver/embed/encode.h"
#include "driver/text_table.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

Status check_texts(const LoadedModel& model, llvm::ArrayRef<std::vector<int32_t>> texts,
                   const Pooling& pooling) {
  if (!model.spec || !model.spec->encoder)
    return fail("embeddings need an encoder, such as BERT", model.origin, "give another model",
                ExitCode::usage);
  const int64_t most =
      std::min(model.spec->max_positions, pooling.max_tokens.value_or(model.spec->max_positions));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<int64_t>(texts[i].size());
    if (length < 1 || length > most)
      return fail(fmt::format("text {} has {}, 1 to {} are possible", i + 1,
                              counted(texts[i].size(), "token"), most),
                  model.origin, "split the text");
    for (int32_t id : texts[i])
      if (id < 0 || id >= model.spec->vocabulary)
        return fail(
            fmt::format("token {} is outside the vocabulary of {}", id, model.spec->vocabulary),
            model.origin);
  }
  return {};
}

/// Of `length` rows of width `width`.
std::vector<double> pool(const double* rows, size_t length, size_t width, const Pooling& pooling) {
  std::vector<double> result(rows, rows + width);
  if (pooling.kind == PoolingKind::mean) {
    for (size_t t = 1; t < length; ++t)
      for (size_t i = 0; i < width; ++i) result[i] += rows[t * width + i];
    for (double& value : result) value /= static_cast<double>(length);
  }
  if (!pooling.normalize) return result;
  double squares = 0;
  for (double value : result) squares += value * value;
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (double& value : result) value /= norm;
  return result;
}

}  // namespace

Result<std::vector<std::vector<double>>> embed(const OpenedModel& model,
                                               llvm::ArrayRef<std::vector<int32_t>> texts,
                                               const EmbedOptions& options) {
  SINTER_TRY(check_texts(model, texts, options.pooling));
  SINTER_LET(ready, make_ready(model, options.compile, *options.backend));
  const auto width = static_cast<size_t>(model.spec->hidden);
  std::vector<std::vector<double>> vectors;
  while (vectors.size() < texts.size()) {
    size_t count = 0, tokens = 0;
    for (const auto& text : texts.drop_front(vectors.size())) {
      if (tokens + text.size() > static_cast<size_t>(model.spec->max_positions)) break;
      tokens += text.size();
      ++count;
    }
    const auto together = texts.slice(vectors.size(), count);
    SINTER_LET(run, encode(*model.spec, *ready.model, together));
    const std::vector<double> hidden = to_doubles(run.outputs[0]);
    const double* rows = hidden.data();
    for (const auto& text : together) {
      vectors.push_back(pool(rows, text.size(), width, options.pooling));
      rows += text.size() * width;
    }
  }
  return vectors;
}

}  // namespace sinter
