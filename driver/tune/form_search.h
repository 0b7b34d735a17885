// Which forms of kernels make a token fastest: coordinate descent, a question at a time. What
// counts is the whole token, in which launches overlap, and not a kernel alone.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <vector>

#include "device/tuned_form.h"
#include "ir/error.h"

namespace sinter {

/// The kernel to choose a configuration for, and the candidates; the first is the schedule's own.
struct FormQuestion {
  std::string family, key;  // as in TunedForms
  std::vector<TunedForm> candidates;
};

struct FormDecision {
  std::string family, key;
  TunedForm usual, chosen;
  // Seconds of a token before this question was asked and with the chosen form, measured in turns;
  // equal if the usual form stays.
  double usual_s = 0, chosen_s = 0;
};

struct FormSearch {
  std::vector<FormDecision> decisions;  // one for each question, in order
  double usual_s = 0, chosen_s = 0;     // of a token with all the usual and all the chosen forms
};

/// Seconds of a token with these forms; kernels that are not named have their schedule's.
using TimeToken = std::function<Result<double>(const TunedForms&)>;

/// A candidate is timed in turns with the best so far. It is taken if in every one of kFormTurns
/// turns it is faster by more than kFormMargin, and given up in the first in which it is not. At
/// last all the chosen forms are measured beside the schedule's: if they are no faster together,
/// all keep the schedule's.
Result<FormSearch> search_forms(llvm::ArrayRef<FormQuestion> questions, const TimeToken& time);
inline constexpr int kFormTurns = 3;
inline constexpr double kFormMargin = 0.005;

/// The chosen forms, with their seconds, as a decision record holds them.
TunedForms forms_of(llvm::ArrayRef<FormDecision> decisions);

}  // namespace sinter
