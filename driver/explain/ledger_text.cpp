#include <llvm/ADT/STLExtras.h>

#include "driver/explain/layers.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

constexpr size_t kFewExamples = 3;  // of a reason

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
      text += fmt::format("{:>5}  {:<{}}  {:>8}  {:>7}  {}\n", index, step.name, name_width,
                          with_unit(step.bytes.total(), "B"), duration(step.predicted_s),
                          printable(fmt::format("{}", fmt::join(step.values, " ")), 400));
      if (all_lines) text += overlap_line(step);
    }
    if (const std::string rest = repeats_text(sections[i]); !rest.empty()) text += rest + '\n';
  }
  return text;
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

std::string refusals(const EntryLedger& ledger, size_t examples) {
  std::string text;
  for (const DecisionReason& reason : decisions_by_reason(ledger, false)) {
    text += fmt::format("\n{}: {} ({})\n", counted(reason.count, "refusal"), reason.first->text,
                        reason.first->reason);
    for (const DecisionKind& kind : llvm::ArrayRef(reason.kinds).take_front(examples)) {
      const LedgerDecision& d = kind.first();
      std::string line = fmt::format("  {:>4}×  {} and {}", kind.count(), d.a, d.b);
      if (!d.detail.empty()) line += ": " + d.detail;
      if (!d.path.empty()) line += ": " + path_text(d.path);
      text += printable(line, kLongestLine) + '\n';
      if (!d.change.empty()) text += "         " + printable(d.change, kLongestLine) + '\n';
    }
    if (reason.kinds.size() > examples)
      text += fmt::format("         and {} (-v shows all)\n",
                          counted(reason.kinds.size() - examples, "more kind"));
  }
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
  if (fused > 0)
    savings =
        fmt::format(" {} {}", fused == 1 ? "saves" : "save", with_unit(ledger.saved_bytes(), "B"));
  return fmt::format("{}{}{}: {}, {}{}; {}{}, {}; predicted {}", printable(ledger.title),
                     ledger.sizes.empty() ? "" : ", ", printable(ledger.sizes),
                     counted(steps("kernel"), "kernel launch", "kernel launches"),
                     counted(steps("gemm"), "GEMM call"), copies, counted(fused, "fusion"), savings,
                     counted(ledger.decisions.size() - fused, "refusal"),
                     duration(ledger.predicted_s()));
}

std::string ledger_text(const EntryLedger& ledger, bool all) {
  std::string choices;
  for (const LedgerChoice& choice : ledger.choices) choices += choice_text(choice) + '\n';
  if (ledger.relaxed) choices += "  --attention relaxed " + savings_text(*ledger.relaxed) + '\n';
  return ledger_headline(ledger) + "\n" + choices + "\n" + kernels_by_layer(ledger, all) +
         (all ? fusions(ledger) : "") + refusals(ledger, all ? SIZE_MAX : kFewExamples);
}

}  // namespace sinter
