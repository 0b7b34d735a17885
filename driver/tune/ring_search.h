// Which forms of matvecs' rings make a token fastest: coordinate descent, a product at a time. What
// counts is the whole token, in which launches overlap, and not a kernel alone.
#pragma once

#include <functional>

#include "ir/matvec_ring.h"

namespace sinter {

/// A product, and the forms that it may have; the first is the schedule's own.
struct RingQuestion {
  std::string product;  // MatvecProduct::key()
  std::vector<MatvecRing> candidates;
};

struct RingDecision {
  std::string product;
  MatvecRing usual, chosen;
  // Of a token before this product was asked for and with the chosen form, each beside the other in
  // time; equal where the usual form stays.
  double usual_s = 0, chosen_s = 0;
};

struct RingSearch {
  std::vector<RingDecision> decisions;  // one for each question, in order
  double usual_s = 0, chosen_s = 0;     // of a token with all the usual and all the chosen forms
};

/// Seconds of a token with these forms; products that are not named have the schedule's.
using TimeToken = std::function<Result<double>(const MatvecRings&)>;

/// A candidate is timed in turns with the best so far. It is taken if in every one of kRingTurns
/// turns it is faster by more than kRingMargin, and given up in the first in which it is not. At
/// last all the chosen forms are measured beside the schedule's: if they are no faster together,
/// all products keep the schedule's.
Result<RingSearch> search_rings(llvm::ArrayRef<RingQuestion> questions, const TimeToken& time);
inline constexpr int kRingTurns = 3;
inline constexpr double kRingMargin = 0.005;

/// "16 warps x 4 x 2048 B"
std::string to_string(const MatvecRing& ring);

/// The forms by product, with their seconds, as a decision record holds them.
MatvecRings rings_of(llvm::ArrayRef<RingDecision> decisions);

}  // namespace sinter
