// The ledger as a web page: kernels, decisions, the module and the kernels' text, linked.
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>

#include <map>

#include "driver/explain/html.h"
#include "driver/explain/layers.h"
#include "driver/text_table.h"
#include "ir/text.h"

namespace sinter {
namespace {

/// The row of a kernel.
std::string step_id(size_t entry, size_t step) { return fmt::format("e{}k{}", entry, step); }

/// The parts of the page about one entry.
class EntryPage {
 public:
  EntryPage(const Compiled& compiled, const EntryLedger& ledger)
      : compiled_(compiled),
        ledger_(ledger),
        graph_(compiled.module.entries[ledger.entry].graph),
        number_(ledger.entry),
        sections_(layer_sections(ledger)),
        shown_(shown_steps(ledger, sections_)) {
    for (uint32_t i = 0; i < graph_.size(); ++i) value_[graph_.ops()[i].name] = i;
    for (size_t i = 0; i < ledger.steps.size(); ++i)
      for (const std::string& value : ledger.steps[i].values) step_of_[value] = i;
    for (const bool fused : {true, false})
      for (const DecisionReason& reason : decisions_by_reason(ledger, fused))
        for (const DecisionKind& kind : reason.kinds) {
          for (const LedgerDecision* decision : kind.all)
            for (const std::string& value : {decision->a, decision->b})
              if (const auto at = step_of_.find(value); at != step_of_.end()) {
                std::vector<size_t>& about = decisions_of_[shown_[at->second]];
                if (about.empty() || about.back() != decisions_.size())
                  about.push_back(decisions_.size());
              }
          decisions_.push_back(kind);
        }
  }

  std::string run() const {
    return fmt::format("<h2>{}</h2>\n<p>{}</p>\n", html(ledger_.title),
                       html(ledger_headline(ledger_))) +
           kernels() + decisions() + ir();
  }

 private:
  std::string step_id(size_t step) const { return sinter::step_id(number_, step); }
  std::string decision_id(size_t decision) const {
    return fmt::format("e{}d{}", number_, decision);
  }
  std::string value_id(uint32_t value) const { return fmt::format("e{}v{}", number_, value); }

  /// A value's name, linked to its line of the module.
  std::string to_ir(const std::string& name) const {
    const auto at = value_.find(name);
    return at == value_.end() ? html(name) : link(value_id(at->second), name);
  }
  /// A value's name, linked to the kernel that computes it.
  std::string to_kernel(const std::string& name) const {
    const auto at = step_of_.find(name);
    return at == step_of_.end() ? to_ir(name) : link(step_id(shown_[at->second]), name);
  }

  /// Links to the rows of the decisions about a kernel's values.
  std::string decisions_about(size_t step) const {
    std::string text;
    const auto at = decisions_of_.find(step);
    if (at == decisions_of_.end()) return text;
    for (size_t decision : at->second)
      text += fmt::format("{}<a class=\"{}\" href=\"#{}\">{}</a>", text.empty() ? "" : " ",
                          decisions_[decision].first().fused ? "fused" : "refused",
                          decision_id(decision), decision);
    return text;
  }

  std::string kernel_row(size_t index) const {
    const LedgerStep& step = ledger_.steps[index];
    std::string values;
    for (const std::string& value : step.values)
      values += (values.empty() ? "" : " ") + to_ir(value);
    const std::string name =
        step.kind == "kernel" ? link("cuda-" + step.name, step.name) : html(step.name);
    return fmt::format(
        "<tr id=\"{}\"><td class=\"n\">{}</td><td><code>{}</code></td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td><code>{}</code></td><td class=\"links\">{}</td></tr>\n",
        step_id(index), index, name, with_unit(step.bytes.total(), "B"), duration(step.predicted_s),
        values, decisions_about(index));
  }

  std::string kernels() const {
    std::string text =
        "<details open><summary>Kernels, in order</summary><table><thead><tr><th class=\"n\">#</th>"
        "<th>kernel</th><th class=\"n\">bytes</th><th class=\"n\">predicted</th><th>computes</th>"
        "<th>decisions</th></tr></thead><tbody>\n";
    const auto title = [&](const std::string& line) {
      if (!line.empty())
        text += fmt::format("<tr class=\"layer\"><td colspan=\"6\">{}</td></tr>\n", html(line));
    };
    for (size_t i = 0; i < sections_.size(); ++i) {
      title(section_title(sections_, i));
      for (size_t step : sections_[i].steps) text += kernel_row(step);
      title(repeats_text(sections_[i]));
    }
    return text + "</tbody></table></details>\n";
  }

  std::string decision_row(size_t index) const {
    const DecisionKind& kind = decisions_[index];
    const LedgerDecision& d = kind.first();
    std::string about = d.detail;
    const auto add = [&](const std::string& line) {
      if (!line.empty()) about += (about.empty() ? "" : "\n") + line;
    };
    add(path_text(d.path));
    add(d.change);
    if (d.fused) add(savings_text(kind));
    std::string lines;
    for (char c : html(about)) lines += c == '\n' ? std::string("<br>") : std::string(1, c);
    return fmt::format(
        "<tr id=\"{7}\"><td class=\"n\">{8}</td><td class=\"{0}\">{0}</td><td class=\"n\">{1}×</td>"
        "<td><code>{2}<br>{3}</code></td><td>{4}<br><code>{5}</code></td><td>{6}</td></tr>\n",
        d.fused ? "fused" : "refused", kind.count(), to_kernel(d.a), to_kernel(d.b), html(d.text),
        d.reason, lines, decision_id(index), index);
  }

  std::string decisions() const {
    std::string text =
        "<details open><summary>Decisions</summary><input type=\"search\" "
        "placeholder=\"search: names, reasons, fused, refused\">"
        "<table><thead><tr><th class=\"n\">#</th><th></th><th></th><th>values</th><th>reason</th>"
        "<th>what decided, and what would have to change</th></tr></thead><tbody>\n";
    for (size_t i = 0; i < decisions_.size(); ++i) text += decision_row(i);
    return text + "</tbody></table></details>\n";
  }

  /// By layer, the section that says of it "as layer 3".
  std::map<int64_t, const LayerSection*> repeated_layers() const {
    std::map<int64_t, const LayerSection*> repeated;
    for (const LayerSection& section : sections_)
      for (size_t k = 1; k <= section.repeats; ++k)
        repeated[section.layer + static_cast<int64_t>(k)] = &section;
    return repeated;
  }

  /// The entry's text: equal layers once, else a line for each value that is no input, with the
  /// kernel that computes it.
  std::string ir() const {
    llvm::SmallVector<llvm::StringRef, 0> lines;
    const std::string printed = print_graph(graph_, compiled_.module.symbols);
    llvm::StringRef(printed).rtrim().split(lines, '\n');
    std::string text = fmt::format("<details><summary>Module</summary><pre>{}\n",
                                   html(lines.empty() ? "" : lines.front().str()));
    size_t line = 1;
    const std::map<int64_t, const LayerSection*> repeated = repeated_layers();
    const LayerSection* told = nullptr;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
      if (const auto at = repeated.find(layer_of(op.name)); at != repeated.end()) {
        text += fmt::format("<span id=\"{}\"></span>", value_id(i));
        if (std::exchange(told, at->second) != at->second)
          text += html("  // " + repeats_text(*told)) + '\n';
        ++line;
        continue;
      }
      if (op.kind == OpKind::input) {
        text += fmt::format("<span id=\"{}\"></span>", value_id(i));
        continue;
      }
      const auto at = step_of_.find(op.name);
      const std::string kernel =
          at == step_of_.end()
              ? ""
              : "  " + link(step_id(shown_[at->second]), fmt::format("kernel {}", at->second));
      text += fmt::format("<span id=\"{}\">{}</span>{}\n", value_id(i),
                          line < lines.size() ? html(lines[line].str()) : "", kernel);
      ++line;
    }
    return text + "}</pre></details>\n";
  }

  const Compiled& compiled_;
  const EntryLedger& ledger_;
  const Graph& graph_;
  size_t number_;
  std::vector<LayerSection> sections_;
  std::vector<size_t> shown_;
  llvm::StringMap<uint32_t> value_;
  llvm::StringMap<size_t> step_of_;
  std::vector<DecisionKind> decisions_;                 // rows of the table
  std::map<size_t, std::vector<size_t>> decisions_of_;  // by the step that is shown
};

std::string header_list(const Compiled& compiled, const ReportHeader& header) {
  std::string text = "<dl>";
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += fmt::format("<dt>{}</dt><dd>{}</dd>", what, html(value));
  };
  add("model", header.model.empty() ? compiled.program->name : header.model);
  add("target", compiled.program->target);
  add("numerics", std::string(to_string(compiled.program->numerics)));
  std::string sizes;
  for (size_t i = 0; i < compiled.program->symbols.size() && i < compiled.sizes.size(); ++i)
    sizes +=
        fmt::format("{}{}={}", i ? " " : "", compiled.program->symbols[i].name, compiled.sizes[i]);
  add("sizes", sizes);
  add("sinter", SINTER_VERSION);
  add("command", header.command);
  return text + "</dl>\n";
}

/// The CUDA text of these entries' kernels, with links to where they are launched.
std::string cuda_texts(const Program& program, llvm::ArrayRef<EntryLedger> ledgers) {
  llvm::StringMap<std::string> launches;
  for (const EntryLedger& entry : ledgers)
    for (const LayerSection& section : layer_sections(entry))
      for (size_t step : section.steps)
        launches[entry.steps[step].name] +=
            " " + link(step_id(entry.entry, step), fmt::format("{} {}", entry.title, step));
  std::string text = "<h2>CUDA text</h2>\n";
  for (const Kernel& kernel : program.kernels)
    if (const auto at = launches.find(kernel.name); at != launches.end())
      text += fmt::format(
          "<details class=\"cuda\" id=\"cuda-{0}\"><summary><code>{0}</code></summary>"
          "<p>launched as{1}</p><pre>{2}</pre></details>\n",
          kernel.name, at->second, html(kernel.source));
  return text;
}

}  // namespace

std::string ledger_html(const Compiled& compiled, const ReportHeader& header) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}: fusion "
      "ledger</title>{1}</head><body>\n<h1>{0}</h1>\n",
      html(compiled.program->name), html_style());
  text += header_list(compiled, header);
  const std::vector<EntryLedger> ledgers = ledger(compiled, header.only);
  for (const EntryLedger& entry : ledgers) text += EntryPage(compiled, entry).run();
  text += cuda_texts(*compiled.program, ledgers);
  text += html_script();
  return text + "</body></html>\n";
}

}  // namespace sinter
