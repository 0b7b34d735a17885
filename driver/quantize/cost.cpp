#include "driver/quantize/cost.h"

#include <algorithm>

#include "driver/generate/perplexity.h"
#include "driver/text.h"
#include "driver/verify/self_text.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

constexpr int64_t kMinTokens = 64;  // fewer say little of a model
// Multiplications with weights by the host, of one of the two models: a minute or two.
constexpr double kHostProducts = 4e10;

double elements_of(const Module& module) {
  double elements = 0;
  for (const Weight& weight : module.weights)
    elements += static_cast<double>(volume(weight.type.dims).constant());
  return elements;
}

TextCost not_told(std::string why) {
  TextCost cost;
  cost.not_told = std::move(why);
  return cost;
}

}  // namespace

Result<TextCost> text_cost(const OpenedModel& before, const OpenedModel& after,
                           const std::shared_ptr<Backend>& backend,
                           const std::function<void(const std::string&)>& stage) {
  if (before.spec->encoder) return not_told("an encoder predicts no text");
  SINTER_LET(tokenizer, find_tokenizer(before.origin));
  if (!tokenizer) return not_told("the model has no tokenizer");
  SINTER_LET(ids, tokenizer->encode(self_check_text(), true));
  auto length = static_cast<int64_t>(ids.size());
  if (!backend->on_gpu())
    length = std::min(length, static_cast<int64_t>(kHostProducts / elements_of(before.module)));
  if (length < kMinTokens)
    return not_told("the text takes too long on the CPU: `sinter ppl` measures both models");
  PerplexityOptions options;
  options.backend = backend;
  TextCost cost;
  const llvm::ArrayRef<int32_t> text = llvm::ArrayRef(ids).take_front(static_cast<size_t>(length));
  for (const auto& [model, place] : {std::pair(&before, &cost.before), {&after, &cost.after}}) {
    if (stage)
      stage(fmt::format("predicting a text {} rounding", model == &before ? "before" : "after"));
    SINTER_LET(found, perplexity(*model, text, options));
    *place = found.value();
    cost.predicted = found.predicted;
  }
  return cost;
}

}  // namespace sinter
