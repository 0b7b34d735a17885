// The cost of rounded weights: how well a model predicts the text of `verify --self` before and
// after.
#pragma once

#include <functional>

#include "driver/backend.h"
#include "driver/opened_model.h"

namespace sinter {

struct TextCost {
  int64_t predicted = 0;         // tokens
  double before = 0, after = 0;  // perplexities
  std::string not_told;          // why there are none; empty: there are
};

/// Without a GPU, the text is as long as the host computes in a minute or two; too short ones are
/// not told. `after` is the folder of `before` with rounded weights.
Result<TextCost> text_cost(const OpenedModel& before, const OpenedModel& after,
                           const std::shared_ptr<Backend>& backend,
                           const std::function<void(const std::string&)>& stage = {});

}  // namespace sinter
