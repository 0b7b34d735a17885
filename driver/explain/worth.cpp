#include "driver/explain/worth.h"

#include <llvm/ADT/IntEqClasses.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "driver/explain/joined_costs.h"
#include "driver/explain/layers.h"
#include "driver/explain/option_lifts.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// Two kernels of the plan, by their steps, the earlier first.
using KernelPair = std::pair<uint32_t, uint32_t>;

/// The plan in which kernels of some pairs are one, less the plan.
class JoinedPlans {
 public:
  JoinedPlans(const EntryLedger& entry, const JoinedCosts& costs) : entry_(entry), costs_(costs) {}

  struct Saving {
    double seconds = 0, bytes = 0;
  };

  /// The saving if one kernel replaces the two.
  const Saving& of(KernelPair pair) {
    const auto [at, is_new] = known_.try_emplace(pair);
    if (is_new) at->second = component({pair.first, pair.second});
    return at->second;
  }

  /// The saving of all pairs at once: kernels that pairs connect become one, where that saves time.
  Saving of(const std::set<KernelPair>& pairs) {
    std::vector<uint32_t> all;
    for (const auto& [a, b] : pairs) all.insert(all.end(), {a, b});
    llvm::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto number = [&](uint32_t kernel) {
      return static_cast<uint32_t>(llvm::lower_bound(all, kernel) - all.begin());
    };
    llvm::IntEqClasses connected(static_cast<uint32_t>(all.size()));
    for (const auto& [a, b] : pairs) connected.join(number(a), number(b));
    connected.compress();
    std::vector<llvm::SmallVector<uint32_t, 4>> components(connected.getNumClasses());
    for (uint32_t kernel : all) components[connected[number(kernel)]].push_back(kernel);
    Saving sum;
    for (const auto& kernels : components) {
      const Saving saving =
          kernels.size() == 2 ? of(KernelPair(kernels[0], kernels[1])) : component(kernels);
      if (saving.seconds <= 0) continue;
      sum.seconds += saving.seconds;
      sum.bytes += saving.bytes;
    }
    return sum;
  }

 private:
  /// A measured kernel keeps its part of the joined launch: that takes as much longer than
  /// predicted as its kernels did.
  Saving component(llvm::ArrayRef<uint32_t> kernels) const {
    double now = 0, predicted = 0, bytes = 0;
    for (uint32_t kernel : kernels) {
      now += entry_.steps[kernel].seconds();
      predicted += entry_.steps[kernel].predicted_s;
      bytes += entry_.steps[kernel].bytes.total();
    }
    const double stretched = predicted > 0 ? now / predicted : 1;
    return {now - stretched * costs_.seconds(kernels), bytes - costs_.bytes(kernels).total()};
  }

  const EntryLedger& entry_;
  const JoinedCosts& costs_;
  std::map<KernelPair, Saving> known_;
};

/// Values outside the layers that several layers read: tables of rotations, masks.
std::vector<bool> tables_of(const Graph& graph) {
  std::vector<int64_t> layer_that_reads(graph.size(), -1);
  std::vector<bool> is_table(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const int64_t layer = layer_of(graph.ops()[i].name);
    if (layer < 0) continue;
    for (ValueId operand : graph.ops()[i].operands) {
      const ValueId root = root_of(graph, operand);
      if (layer_of(graph[root].name) >= 0) continue;
      int64_t& known = layer_that_reads[root.index];
      if (known >= 0 && known != layer) is_table[root.index] = true;
      known = layer;
    }
  }
  return is_table;
}

bool reads(const FusionProblem& problem, ValueId a, ValueId b) {
  return llvm::any_of(problem.facts(b).reads, [&](const Read& read) { return read.root == a; });
}

}  // namespace

void add_worths(const Compiled& compiled, const FusionCosts& costs, EntryLedger& entry) {
  const Fusion& fusion = compiled.fusions[entry.entry];
  const Graph& graph = compiled.module.entries[entry.entry].graph;
  const std::vector<uint32_t>& group_of = fusion.grouping.group_of;
  const JoinedCosts joined(fusion, costs);
  JoinedPlans plans(entry, joined);
  OptionLifts options(compiled, entry.entry, costs);
  const std::vector<bool> is_table = tables_of(graph);
  const auto pair_of = [&](const LedgerDecision& d) {
    const LedgerEntry& asked = fusion.ledger[&d - entry.decisions.data()];
    return KernelPair(std::minmax(group_of[asked.a.index], group_of[asked.b.index]));
  };
  for (size_t i = 0; i < entry.decisions.size(); ++i) {
    LedgerDecision& d = entry.decisions[i];
    if (d.fused) continue;
    const auto [a, b, verdict] = fusion.ledger[i];
    const auto& saving = plans.of(pair_of(d));
    d.worth_s = saving.seconds;
    d.worth_bytes = saving.bytes;
    const int64_t of_a = layer_of(d.a), of_b = layer_of(d.b);
    d.unasked = is_table[a.index] || is_table[b.index] ||
                (of_a >= 0 && of_b >= 0 && of_a != of_b && !reads(costs.problem(), a, b));
  }
  for (const DecisionReason& reason : decisions_by_reason(entry, false)) {
    std::set<KernelPair> of_reason;
    for (const DecisionKind& kind : reason.kinds) {
      RefusalWorth worth;
      worth.count = kind.count();
      std::set<KernelPair> pairs;
      for (const LedgerDecision* d : kind.all) pairs.insert(pair_of(*d));
      worth.kernels = *pairs.begin();
      worth.first = &kind.first() - entry.decisions.data();
      worth.unasked = kind.first().unasked;
      const auto sum = plans.of(pairs);
      worth.seconds = sum.seconds;
      worth.bytes = sum.bytes;
      of_reason.insert(pairs.begin(), pairs.end());
      const LedgerEntry& asked = fusion.ledger[worth.first];
      worth.direct = reads(costs.problem(), asked.a, asked.b);
      if (const auto lift = options.lift(asked.a, asked.b, asked.verdict.reason)) {
        worth.option = lift->option;
        worth.option_s = lift->seconds * static_cast<double>(pairs.size());
      }
      entry.worths.push_back(std::move(worth));
    }
    const auto sum = plans.of(of_reason);
    entry.reasons.push_back(
        {reason.first->reason, reason.first->text, reason.count, sum.seconds, sum.bytes});
  }
  std::stable_sort(
      entry.worths.begin(), entry.worths.end(),
      [](const RefusalWorth& x, const RefusalWorth& y) { return x.seconds > y.seconds; });
}

bool is_final(std::string_view reason) {
  return reason == reason_id(Reason::convexity_path) || reason == reason_id(Reason::state_version);
}

std::vector<const RefusalWorth*> worths_that_matter(const EntryLedger& entry) {
  std::vector<const RefusalWorth*> list;
  // Several refusals between the same two kernels: the first one that an option lifts, else one
  // about a value and its reader, else the first one.
  const auto rank = [](const RefusalWorth& worth) {
    return std::pair(!worth.option.empty(), worth.direct);
  };
  std::map<KernelPair, size_t> place;
  for (const RefusalWorth& worth : entry.worths) {
    if (worth.unasked || is_final(entry.decisions[worth.first].reason) ||
        stated_s(worth) < kMinShare * entry.seconds())
      continue;
    const auto [at, is_new] = place.try_emplace(worth.kernels, list.size());
    if (is_new)
      list.push_back(&worth);
    else if (rank(worth) > rank(*list[at->second]))
      list[at->second] = &worth;
  }
  llvm::stable_sort(list, [](const RefusalWorth* x, const RefusalWorth* y) {
    const auto key = [](const RefusalWorth* worth) {
      return std::pair(!worth->option.empty(), stated_s(*worth));
    };
    return key(x) > key(y);
  });
  if (list.size() > kMaxShown) list.resize(kMaxShown);
  return list;
}

double stated_s(const RefusalWorth& worth) {
  return worth.option.empty() ? worth.seconds : worth.option_s;
}

std::string stated_text(const RefusalWorth& worth) {
  return (worth.option.empty() ? "at most " : "") + duration(stated_s(worth));
}

std::string option_text(const RefusalWorth& worth) {
  if (worth.option.empty()) return "";
  return fmt::format("{} {} {}", worth.option, worth.option_s < 0 ? "costs" : "saves",
                     duration(std::abs(worth.option_s)));
}

}  // namespace sinter
