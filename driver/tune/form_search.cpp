#include "driver/tune/form_search.h"

#include <algorithm>

namespace sinter {
namespace {

/// Seconds of two sets of forms, measured in turns; the medians of the turns.
struct TimePair {
  double before = 0, after = 0;
};

double middle(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// Stops where `after` is not faster by more than `margin`, if one is given.
Result<std::optional<TimePair>> in_turns(const TimeToken& time, const TunedForms& before,
                                         const TunedForms& after, std::optional<double> margin) {
  std::vector<double> a, b;
  for (int turn = 0; turn < kFormTurns; ++turn) {
    // Neither always runs after the other.
    const bool swapped = turn % 2 == 1;
    SINTER_LET(first, time(swapped ? after : before));
    SINTER_LET(second, time(swapped ? before : after));
    a.push_back(swapped ? second : first);
    b.push_back(swapped ? first : second);
    if (margin && !(b.back() < a.back() * (1 - *margin))) return std::optional<TimePair>();
  }
  return std::optional(TimePair{middle(a), middle(b)});
}

}  // namespace

Result<FormSearch> search_forms(llvm::ArrayRef<FormQuestion> questions, const TimeToken& time) {
  FormSearch search;
  TunedForms best;
  for (const FormQuestion& question : questions) {
    const TunedForm usual = question.candidates.front();
    FormDecision decision{question.family, question.key, usual, usual, 0, 0};
    for (const TunedForm& candidate : llvm::ArrayRef(question.candidates).drop_front()) {
      TunedForms trial = best;
      trial[question.family][question.key] = candidate;
      SINTER_LET(pair, in_turns(time, best, trial, kFormMargin));
      if (!pair) continue;
      if (decision.usual_s == 0) decision.usual_s = pair->before;
      decision.chosen = candidate;
      decision.chosen_s = pair->after;
      best = std::move(trial);
    }
    if (decision.usual_s == 0) {
      SINTER_LET(seconds, time(best));
      decision.usual_s = decision.chosen_s = seconds;
    }
    search.usual_s = search.chosen_s = decision.usual_s;
    search.decisions.push_back(std::move(decision));
  }
  if (best.empty()) return search;
  SINTER_LET(all, in_turns(time, {}, best, std::nullopt));
  search.usual_s = all->before;
  search.chosen_s = std::min(all->before, all->after);
  if (all->after < all->before) return search;
  for (FormDecision& decision : search.decisions) {
    decision.chosen = decision.usual;
    decision.usual_s = decision.chosen_s = all->before;
  }
  return search;
}

TunedForms forms_of(llvm::ArrayRef<FormDecision> decisions) {
  TunedForms forms;
  for (const FormDecision& decision : decisions) {
    TunedForm& form = forms[decision.family][decision.key] = decision.chosen;
    form.seconds = decision.chosen_s;
  }
  return forms;
}

}  // namespace sinter
