// The ledger as a web page: kernels, decisions, the module and the kernels' text, linked.
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/StringSet.h>

#include "driver/explain/layers.h"
#include "driver/text_table.h"
#include "ir/text.h"

namespace sinter {
namespace {

std::string html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

constexpr std::string_view kStyle = R"(<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 78em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; position: sticky; top: 0; background: #fff; }
td, th { padding: .15em .8em .15em 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
code, pre { font: 12px/1.6 ui-monospace, monospace; }
pre { overflow-x: auto; background: #f8f8f8; padding: .6em; }
a { color: inherit; text-decoration-color: #aaa; }
:target { background: #fff3c4; }
tr.layer td { background: #f4f4f4; font-weight: 600; }
tr.fused td:first-child { color: #087f3a; } tr.refused td:first-child { color: #b3261e; }
input { font: inherit; width: 30em; max-width: 100%; padding: .3em; margin: .5em 0; }
summary { font-weight: 600; cursor: pointer; margin: .5em 0; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1em; } dd { margin: 0; }
</style>)";

// A search field filters the rows after it. A link into a closed part opens it.
constexpr std::string_view kScript = R"(<script>
for (const field of document.querySelectorAll("input")) {
  const rows = [...field.parentElement.querySelectorAll("tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    rows.forEach((row, i) => row.hidden = !words.every(word => texts[i].includes(word)));
  });
}
const open = () => {
  const at = location.hash && document.getElementById(location.hash.slice(1));
  for (let part = at; part; part = part.parentElement) if (part.tagName == "DETAILS") part.open = true;
  if (at) at.scrollIntoView();
};
addEventListener("hashchange", open);
open();
</script>
)";

std::string link(std::string_view to, std::string_view text) {
  return fmt::format("<a href=\"#{}\">{}</a>", to, html(text));
}

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
  }

  std::string run() const {
    return fmt::format("<h2>{}</h2>\n<p>{}{} predicted {}.</p>\n", html(ledger_.name),
                       html(ledger_.sizes), ledger_.sizes.empty() ? "" : ";",
                       duration(ledger_.predicted_s())) +
           kernels() + decisions() + ir();
  }

 private:
  std::string step_id(size_t step) const { return fmt::format("e{}k{}", number_, step); }
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

  std::string kernel_row(size_t index) const {
    const LedgerStep& step = ledger_.steps[index];
    std::string values;
    for (const std::string& value : step.values)
      values += (values.empty() ? "" : " ") + to_ir(value);
    const std::string name =
        step.kind == "kernel" ? link("cuda-" + step.name, step.name) : html(step.name);
    return fmt::format(
        "<tr id=\"{}\"><td class=\"n\">{}</td><td><code>{}</code></td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td><code>{}</code></td></tr>\n",
        step_id(index), index, name, with_unit(step.bytes.total(), "B"), duration(step.predicted_s),
        values);
  }

  std::string kernels() const {
    std::string text =
        "<details open><summary>Kernels, in order</summary><table><thead><tr><th class=\"n\">#</th>"
        "<th>kernel</th><th class=\"n\">bytes</th><th class=\"n\">predicted</th><th>computes</th>"
        "</tr></thead><tbody>\n";
    const auto title = [&](const std::string& line) {
      if (!line.empty())
        text += fmt::format("<tr class=\"layer\"><td colspan=\"5\">{}</td></tr>\n", html(line));
    };
    for (size_t i = 0; i < sections_.size(); ++i) {
      title(section_title(sections_, i));
      for (size_t step : sections_[i].steps) text += kernel_row(step);
      title(repeats_text(sections_[i]));
    }
    return text + "</tbody></table></details>\n";
  }

  std::string decision_row(const DecisionKind& kind) const {
    const LedgerDecision& d = *kind.first;
    std::string about = d.detail;
    const auto add = [&](const std::string& line) {
      if (!line.empty()) about += (about.empty() ? "" : "\n") + line;
    };
    add(path_text(d.path));
    add(d.change);
    if (d.fused && d.saved_bytes > 0) add("saves " + with_unit(d.saved_bytes, "B"));
    std::string lines;
    for (char c : html(about)) lines += c == '\n' ? std::string("<br>") : std::string(1, c);
    return fmt::format(
        "<tr class=\"{0}\"><td>{0}</td><td class=\"n\">{1}×</td><td><code>{2}<br>{3}</code></td>"
        "<td>{4}<br><code>{5}</code></td><td>{6}</td></tr>\n",
        d.fused ? "fused" : "refused", kind.count, to_kernel(d.a), to_kernel(d.b), html(d.text),
        d.reason, lines);
  }

  std::string decisions() const {
    std::string text =
        "<details open><summary>Decisions</summary><input type=\"search\" "
        "placeholder=\"search: names, reasons, fused, refused\">"
        "<table><thead><tr><th></th><th class=\"n\"></th><th>values</th><th>reason</th>"
        "<th>what decided, and what would have to change</th></tr></thead><tbody>\n";
    for (const bool fused : {true, false})
      for (const DecisionReason& reason : decisions_by_reason(ledger_, fused))
        for (const DecisionKind& kind : reason.kinds) text += decision_row(kind);
    return text + "</tbody></table></details>\n";
  }

  /// The entry's text; a line for each value that is no input, with the kernel that computes it.
  std::string ir() const {
    llvm::SmallVector<llvm::StringRef, 0> lines;
    const std::string printed = print_graph(graph_, compiled_.module.symbols);
    llvm::StringRef(printed).rtrim().split(lines, '\n');
    std::string text = fmt::format("<details><summary>Module</summary><pre>{}\n",
                                   html(lines.empty() ? "" : lines.front().str()));
    size_t line = 1;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
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

/// Of the kernels of these entries.
std::string cuda_texts(const Program& program, llvm::ArrayRef<EntryLedger> ledgers) {
  llvm::StringSet<> used;
  for (const EntryLedger& entry : ledgers)
    for (const LedgerStep& step : entry.steps) used.insert(step.name);
  std::string text = "<h2>CUDA text</h2>\n";
  for (const Kernel& kernel : program.kernels)
    if (used.contains(kernel.name))
      text += fmt::format(
          "<details id=\"cuda-{0}\"><summary><code>{0}</code></summary><pre>{1}</pre></details>\n",
          kernel.name, html(kernel.source));
  return text;
}

}  // namespace

std::string ledger_html(const Compiled& compiled, const ReportHeader& header) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}: fusion "
      "ledger</title>{1}</head><body>\n<h1>{0}</h1>\n",
      html(compiled.program->name), kStyle);
  text += header_list(compiled, header);
  const std::vector<EntryLedger> ledgers = ledger(compiled, header.only);
  for (const EntryLedger& entry : ledgers) text += EntryPage(compiled, entry).run();
  text += cuda_texts(*compiled.program, ledgers);
  text += kScript;
  return text + "</body></html>\n";
}

}  // namespace sinter
