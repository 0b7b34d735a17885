// The time that each refusal costs: what would pay.
#pragma once

#include "driver/explain/ledger.h"

namespace sinter {

/// Fills in the worths of an entry's refusals: LedgerDecision::worth_s, worth_bytes and unasked,
/// EntryLedger::worths and reasons. The entry has its steps, their times, and its decisions, in the
/// order of the fusion's ledger.
void add_worths(const Compiled& compiled, EntryLedger& entry);

/// A refusal that no kernel can lift: something stands between the two, or one writes what the
/// other reads.
bool is_final(std::string_view reason);

/// The refusals that matter: of different pairs of kernels, none unasked or final, from
/// kLeastShare of the entry's time on. By worth, at most kMostShown.
std::vector<const RefusalWorth*> worths_that_matter(const EntryLedger& entry);
inline constexpr double kLeastShare = 0.005;
inline constexpr size_t kMostShown = 6;

/// "--products own saves 310 µs"; empty: no option lifts it.
std::string option_text(const RefusalWorth& worth);

}  // namespace sinter
