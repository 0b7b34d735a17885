#include <llvm/ADT/STLExtras.h>

#include <map>

#include "driver/explain/layers.h"
#include "driver/explain/worth.h"
#include "driver/shell_word.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

// Kinds of refusals that are shown each, unasked.
constexpr size_t kFewKinds = 12;

/// How the kernel overlaps its neighbours, as a line under its own; empty: in the usual way.
std::string overlap_line(const LedgerStep& step) {
  std::string text;
  if (!step.early.empty()) text = fmt::format("reads early: {}", fmt::join(step.early, " "));
  if (step.triggers_after_wait)
    text += fmt::format("{}triggers after its wait", text.empty() ? "" : "; ");
  return text.empty() ? text : "         " + printable(text, 400) + '\n';
}

std::string kernels_by_layer(const EntryLedger& ledger, bool all_lines) {
  const std::vector<LayerSection> sections = layer_sections(ledger);
  size_t name_width = 0;  // one for all sections
  for (const LedgerStep& step : ledger.steps) name_width = std::max(name_width, step.name.size());
  std::string text;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (const std::string title = section_title(sections, i); !title.empty()) text += title + '\n';
    for (size_t index : sections[i].steps) {
      const LedgerStep& step = ledger.steps[index];
      const std::string measured = !ledger.measured() ? ""
                                   : step.measured_s  ? duration(*step.measured_s)
                                                      : "–";
      text += fmt::format("{:>5}  {:<{}}  {:>8}  {:>7}  {}{}\n", index, step.name, name_width,
                          with_unit(step.bytes.total(), "B"), duration(step.predicted_s),
                          measured.empty() ? "" : fmt::format("{:>7}  ", measured),
                          printable(fmt::format("{}", fmt::join(step.values, " ")), 400));
      if (all_lines) text += overlap_line(step);
    }
    if (const std::string rest = repeats_text(sections[i]); !rest.empty()) text += rest + '\n';
  }
  return text;
}

std::string by_class(const EntryLedger& ledger) {
  TextTable table("lrrrr");
  table.add({"class", "launches", "bytes", ledger.measured() ? "time" : "predicted", "share"});
  const double all = ledger.seconds();
  for (const ClassCosts& one : ledger.classes())
    table.add({std::string(to_string(one.step_class)), fmt::format("{}", one.launches),
               with_unit(one.bytes.total(), "B"), duration(one.seconds),
               fmt::format("{:.1f} %", all > 0 ? 100 * one.seconds / all : 0)});
  return "\n" + table.str();
}

std::string fusions(const EntryLedger& ledger) {
  std::string text;
  for (const DecisionReason& reason : decisions_by_reason(ledger, true)) {
    text += fmt::format("\n{}: {} ({})\n", counted(reason.count, "fusion"), reason.first->text,
                        reason.first->reason);
    for (const DecisionKind& kind : reason.kinds)
      text += printable(fmt::format("  {:>4}×  {} and {}: {}", kind.count(), kind.first().a,
                                    kind.first().b, savings_text(kind)),
                        kLongestLine) +
              '\n';
  }
  return text;
}

/// The refusals that matter, each with what lifts it.
std::string what_would_pay(const EntryLedger& ledger) {
  if (ledger.worths.empty()) return "";
  const std::vector<const RefusalWorth*> shown = worths_that_matter(ledger);
  if (shown.empty())
    return fmt::format("what would pay: no refusal that a kernel could lift costs {:.1f} %\n\n",
                       100 * kMinShare);
  TextTable table("rrrl");
  for (const RefusalWorth* worth : shown) {
    const LedgerDecision& d = ledger.decisions[worth->first];
    table.add({stated_text(*worth),
               fmt::format("{:.1f} %", 100 * stated_s(*worth) / ledger.seconds()),
               fmt::format("{}×", worth->count),
               printable(fmt::format("{} and {}: {} ({}){}", d.a, d.b, d.text, d.reason,
                                     worth->option.empty() ? "" : "; by " + worth->option),
                         kLongestLine)});
  }
  return fmt::format("what would pay, of {}: one launch in the place of two\n{}\n",
                     duration(ledger.seconds()), table.str(2));
}

/// "worth 323 µs"; empty: it would not pay.
std::string worth_text(double seconds) {
  return seconds > 0 ? "worth " + duration(seconds) : "would not pay";
}

std::string refusals(const EntryLedger& ledger, bool all) {
  std::string text;
  const bool each = all || ledger.worths.size() <= kFewKinds;
  std::map<size_t, const RefusalWorth*> worth_of;
  for (const RefusalWorth& worth : ledger.worths) worth_of[worth.first] = &worth;
  const std::vector<DecisionReason> reasons = decisions_by_reason(ledger, false);
  for (size_t i = 0; i < reasons.size(); ++i) {
    const DecisionReason& reason = reasons[i];
    text += fmt::format("{}{}: {} ({}), {}{}\n", each || i == 0 ? "\n" : "",
                        counted(reason.count, "refusal"), reason.first->text, reason.first->reason,
                        is_final(reason.first->reason) ? "no kernel can lift them; " : "",
                        worth_text(ledger.reasons[i].seconds));
    if (!each) continue;
    size_t unasked = 0;
    for (const DecisionKind& kind : reason.kinds) {
      const LedgerDecision& d = kind.first();
      if (d.unasked && !all) {
        ++unasked;
        continue;
      }
      const RefusalWorth& worth = *worth_of.at(&d - ledger.decisions.data());
      std::string line = fmt::format("  {:>4}×  {} and {}", kind.count(), d.a, d.b);
      if (!d.detail.empty()) line += ": " + d.detail;
      if (!d.path.empty()) line += ": " + path_text(d.path);
      text += printable(line, kLongestLine) + '\n';
      std::string below = worth_text(worth.seconds);
      if (const std::string option = option_text(worth); !option.empty()) below += "; " + option;
      if (!d.change.empty()) below += "; " + d.change;
      text += "         " + line_with_words(below, kLongestLine) + '\n';
    }
    if (unasked > 0)
      text += fmt::format("         and {} between layers or with a table (-v shows all)\n",
                          counted(unasked, "kind"));
  }
  if (!each) text += "-v shows each of them\n";
  return text;
}

}  // namespace

std::string ledger_headline(const EntryLedger& ledger) {
  const size_t fused = ledger.fusions();
  const auto steps = [&](std::string_view kind) -> size_t {
    return llvm::count_if(ledger.steps, [&](const LedgerStep& s) { return s.kind == kind; });
  };
  std::string copies, savings;
  if (steps("copy") > 0) copies = ", " + counted(steps("copy"), "copy", "copies");
  if (steps("all_reduce") > 0)
    copies += ", " + counted(steps("all_reduce"), "exchange of ranks", "exchanges of ranks");
  if (fused > 0)
    savings =
        fmt::format(" {} {}", fused == 1 ? "saves" : "save", with_unit(ledger.saved_bytes(), "B"));
  return fmt::format("{}{}{}: {}, {}{}; {}{}, {}; predicted {}{}", printable(ledger.title),
                     ledger.sizes.empty() ? "" : ", ", printable(ledger.sizes),
                     counted(steps("kernel"), "kernel launch", "kernel launches"),
                     counted(steps("gemm"), "GEMM call"), copies, counted(fused, "fusion"), savings,
                     counted(ledger.decisions.size() - fused, "refusal"),
                     duration(ledger.predicted_s()),
                     ledger.measured() ? ", measured " + duration(ledger.seconds()) : "");
}

std::string ledger_text(const EntryLedger& ledger, bool all) {
  std::string choices;
  for (const LedgerChoice& choice : ledger.choices) choices += choice_text(choice) + '\n';
  if (ledger.relaxed) choices += "  --attention relaxed " + savings_text(*ledger.relaxed) + '\n';
  return ledger_headline(ledger) + "\n" + choices + "\n" + what_would_pay(ledger) +
         kernels_by_layer(ledger, all) + (all ? by_class(ledger) + fusions(ledger) : "") +
         refusals(ledger, all);
}

}  // namespace sinter
