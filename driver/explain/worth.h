// The time that each refusal costs: what would pay.
#pragma once

#include "driver/explain/ledger.h"
#include "passes/fusion/fusion_costs.h"

namespace sinter {

/// Fills in the worths of an entry's refusals: LedgerDecision::worth_s, worth_bytes and unasked,
/// EntryLedger::worths and reasons. The entry has its steps, their times, and its decisions, in the
/// order of the fusion's ledger. `costs`: of the entry's fusion.
void add_worths(const Compiled& compiled, const FusionCosts& costs, EntryLedger& entry);

/// A refusal that no kernel can lift: something stands between the two, or one writes what the
/// other reads.
bool is_final(std::string_view reason);

/// The time that reports give for refusals of one kind: what an option saves by the engine's own
/// plan, if one lifts them; else what one launch instead of two would save, which no kernel can
/// exceed.
double stated_s(const RefusalWorth& worth);
/// "64 µs", "at most 257 µs".
std::string stated_text(const RefusalWorth& worth);

/// The refusals that matter: of different pairs of kernels, none unasked or final, from
/// kMinShare of the entry's time on. Those that an option lifts come first; by stated_s(), at
/// most kMaxShown.
std::vector<const RefusalWorth*> worths_that_matter(const EntryLedger& entry);
inline constexpr double kMinShare = 0.005;
inline constexpr size_t kMaxShown = 6;

/// "--products own saves 310 µs"; empty: no option lifts it.
std::string option_text(const RefusalWorth& worth);

}  // namespace sinter
