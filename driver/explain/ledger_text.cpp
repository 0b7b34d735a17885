#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <map>

#include "driver/explain/ledger_report.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

constexpr size_t kFewExamples = 3;  // of a reason

/// The steps that belong to a layer, by the first value that they compute; -1: to none. Steps
/// before and after the layers stand apart.
struct Section {
  int64_t layer = -1;
  std::vector<size_t> steps;
  std::string signature;  // equal for layers that do the same
};

/// "l7.res2 l8.norm1" of layer 7 -> "l+0.res2 l+1.norm1".
std::string relative(const std::string& value, int64_t layer) {
  return with_layer(value, fmt::format("l{:+}", layer_of(value) - layer));
}

std::vector<Section> sections(const EntryLedger& ledger) {
  Section before, after;
  std::map<int64_t, Section> layers;
  for (size_t i = 0; i < ledger.steps.size(); ++i) {
    const LedgerStep& step = ledger.steps[i];
    const int64_t layer = layer_of(step.values.front());
    Section& section = layer >= 0 ? layers[layer] : layers.empty() ? before : after;
    section.layer = layer;
    section.steps.push_back(i);
    section.signature += step.name;
    for (const auto* values : {&step.values, &step.early})
      for (const std::string& value : *values) section.signature += "\n" + relative(value, layer);
    section.signature += '\0';
  }
  std::vector<Section> result;
  if (!before.steps.empty()) result.push_back(std::move(before));
  for (auto& [layer, section] : layers) result.push_back(std::move(section));
  if (!after.steps.empty()) result.push_back(std::move(after));
  return result;
}

/// How the kernel overlaps its neighbours, as a line under its own; empty: in the usual way.
std::string overlap_line(const LedgerStep& step) {
  std::string text;
  if (!step.early.empty()) text = fmt::format("reads early: {}", fmt::join(step.early, " "));
  if (step.triggers_after_wait)
    text += fmt::format("{}triggers after its wait", text.empty() ? "" : "; ");
  return text.empty() ? text : "         " + printable(text, 400) + '\n';
}

std::string kernels_by_layer(const EntryLedger& ledger, bool all_lines) {
  const std::vector<Section> all = sections(ledger);
  const bool layered = llvm::any_of(all, [](const Section& s) { return s.layer >= 0; });
  size_t name_width = 0;  // one for all sections
  for (const LedgerStep& step : ledger.steps) name_width = std::max(name_width, step.name.size());
  std::string text;
  for (size_t i = 0; i < all.size();) {
    const Section& section = all[i];
    if (layered)
      text += section.layer >= 0 ? fmt::format("layer {}\n", section.layer)
              : i == 0           ? "before the layers\n"
                                 : "after the layers\n";
    for (size_t index : section.steps) {
      const LedgerStep& step = ledger.steps[index];
      text += fmt::format("{:>5}  {:<{}}  {:>8}  {}\n", index, step.name, name_width,
                          with_unit(step.bytes, "B"),
                          printable(fmt::format("{}", fmt::join(step.values, " ")), 400));
      if (all_lines) text += overlap_line(step);
    }
    size_t next = i + 1;
    while (section.layer >= 0 && next < all.size() && all[next].layer >= 0 &&
           all[next].signature == section.signature)
      ++next;
    if (next > i + 1)
      text += next == i + 2
                  ? fmt::format("layer {}: as layer {}\n", all[i + 1].layer, section.layer)
                  : fmt::format("layers {}–{}: as layer {}\n", all[i + 1].layer,
                                all[next - 1].layer, section.layer);
    i = next;
  }
  return text;
}

struct Pattern {
  const LedgerDecision* first;
  size_t count = 0;
};

std::string refusals(const EntryLedger& ledger, size_t examples) {
  std::vector<std::pair<std::string, std::vector<const LedgerDecision*>>> reasons;
  for (const LedgerDecision& d : ledger.decisions) {
    if (d.fused) continue;
    auto at = llvm::find_if(reasons, [&](const auto& r) { return r.first == d.reason; });
    if (at == reasons.end()) at = reasons.insert(reasons.end(), {d.reason, {}});
    at->second.push_back(&d);
  }
  std::string text;
  for (const auto& [reason, decisions] : reasons) {
    text += fmt::format("\n{}: {} ({})\n", counted(decisions.size(), "refusal"), decisions[0]->text,
                        reason);
    // The same refusal in every layer is one example.
    std::vector<Pattern> patterns;
    llvm::StringMap<size_t> known;
    for (const LedgerDecision* d : decisions) {
      const int64_t layer = std::max(layer_of(d->a), layer_of(d->b));
      std::string key = relative(d->a, layer) + "\n" + relative(d->b, layer);
      for (const std::string& value : d->path) key += "\n" + relative(value, layer);
      const auto [at, is_new] = known.try_emplace(key, patterns.size());
      if (is_new) patterns.push_back({d, 0});
      ++patterns[at->second].count;
    }
    for (size_t i = 0; i < std::min(patterns.size(), examples); ++i) {
      const LedgerDecision& d = *patterns[i].first;
      std::string line = fmt::format("  {:>4}×  {} and {}", patterns[i].count, d.a, d.b);
      if (!d.detail.empty()) line += ": " + d.detail;
      if (!d.path.empty()) line += fmt::format(": {}", fmt::join(d.path, " → "));
      text += printable(line, 1000) + '\n';
    }
    if (patterns.size() > examples)
      text += fmt::format("         and {} (-v shows all)\n",
                          counted(patterns.size() - examples, "more kind"));
  }
  return text;
}

}  // namespace

std::string ledger_text(const EntryLedger& ledger, bool all) {
  const size_t fused = llvm::count_if(ledger.decisions, [](const auto& d) { return d.fused; });
  const auto steps = [&](std::string_view kind) -> size_t {
    return llvm::count_if(ledger.steps, [&](const LedgerStep& s) { return s.kind == kind; });
  };
  std::string copies;
  if (steps("copy") > 0) copies = ", " + counted(steps("copy"), "copy", "copies");
  return fmt::format("{}: {}, {}{}; {}, {}\n\n", printable(ledger.name),
                     counted(steps("kernel"), "kernel launch", "kernel launches"),
                     counted(steps("gemm"), "GEMM call"), copies, counted(fused, "fusion"),
                     counted(ledger.decisions.size() - fused, "refusal")) +
         kernels_by_layer(ledger, all) + refusals(ledger, all ? SIZE_MAX : kFewExamples);
}

}  // namespace sinter
