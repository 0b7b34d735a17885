// The ledger as a Graphviz graph and as a web page.
#include "driver/explain/ledger_report.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

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
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

constexpr std::string_view kPageHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Fusion ledger</title><style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; position: sticky; top: 0; background: #fff; }
td, th { padding: .15em .8em .15em 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td.n { text-align: right; white-space: nowrap; }
code { font: 12px/1.6 ui-monospace, monospace; }
tr.layer td { background: #f4f4f4; font-weight: 600; }
tr.fused td:first-child { color: #087f3a; } tr.refused td:first-child { color: #b3261e; }
input { font: inherit; width: 30em; max-width: 100%; padding: .3em; margin: .5em 0; }
summary { font-weight: 600; cursor: pointer; margin: .5em 0; }
</style></head><body>
)";

// Rows of the decisions whose text holds all words of the search field stay visible.
constexpr std::string_view kPageScript = R"(<script>
for (const field of document.querySelectorAll("input")) {
  const rows = [...field.parentElement.querySelectorAll("tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    rows.forEach((row, i) => row.hidden = !words.every(word => texts[i].includes(word)));
  });
}
</script>
)";

std::string html_kernels(const EntryLedger& entry) {
  std::string text =
      "<details open><summary>Kernels, in order</summary><table><thead><tr>"
      "<th>#</th><th>kernel</th><th>bytes</th><th>computes</th></tr></thead><tbody>\n";
  std::optional<int64_t> layer;
  for (size_t i = 0; i < entry.steps.size(); ++i) {
    const LedgerStep& step = entry.steps[i];
    const int64_t own = layer_of(step.values.front());
    if (layer != own)
      text += fmt::format("<tr class=\"layer\"><td colspan=\"4\">{}</td></tr>\n",
                          own < 0 ? "outside the layers" : fmt::format("layer {}", own));
    layer = own;
    text += fmt::format(
        "<tr><td class=\"n\">{}</td><td><code>{}</code></td><td class=\"n\">{}</td>"
        "<td><code>{}</code></td></tr>\n",
        i, html(step.name), with_unit(step.bytes, "B"),
        html(fmt::format("{}", fmt::join(step.values, " "))));
  }
  return text + "</tbody></table></details>\n";
}

std::string html_decisions(const EntryLedger& entry) {
  std::string text =
      "<details open><summary>Decisions</summary><input type=\"search\" "
      "placeholder=\"search: names, reasons, fused, refused\">"
      "<table><thead><tr><th></th><th>values</th><th>reason</th><th>detail</th></tr></"
      "thead><tbody>\n";
  for (const LedgerDecision& d : entry.decisions) {
    std::string detail =
        d.fused ? fmt::format("saves {}", with_unit(d.saved_bytes, "B")) : d.detail;
    if (!d.path.empty()) detail += fmt::format(" {}", fmt::join(d.path, " → "));
    text += fmt::format(
        "<tr class=\"{0}\"><td>{0}</td><td><code>{1}<br>{2}</code></td><td>{3}</td>"
        "<td><code>{4}</code></td></tr>\n",
        d.fused ? "fused" : "refused", html(d.a), html(d.b), html(d.text), html(detail));
  }
  return text + "</tbody></table></details>\n";
}

}  // namespace

std::string ledger_dot(const Compiled& compiled, size_t entry) {
  const Graph& graph = compiled.module.entries[entry].graph;
  const Grouping& grouping = compiled.fusions[entry].grouping;
  const EntryLedger steps = ledger(compiled)[entry];
  std::string text = "digraph fusion {\n  node [shape=box, fontsize=10];\n";
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    text += fmt::format("  subgraph cluster_{} {{ label={};\n", g, dot_string(steps.steps[g].name));
    for (ValueId id : grouping.groups[g].members)
      text += fmt::format("    v{} [label={}];\n", id.index, dot_string(graph[id].name));
    text += "  }\n";
  }
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.kind == OpKind::input)
      text += fmt::format("  v{} [label={}, shape=ellipse];\n", i, dot_string(op.name));
    if (!computes(op)) continue;
    llvm::SmallVector<ValueId, 3> seen;
    for (ValueId operand : op.operands) {
      const ValueId root = root_of(graph, operand);
      if (!computes(graph[root]) && graph[root].kind != OpKind::input) continue;
      if (llvm::is_contained(seen, root)) continue;
      seen.push_back(root);
      text += fmt::format("  v{} -> v{};\n", root.index, i);
    }
  }
  return text + "}\n";
}

std::string ledger_html(const Compiled& compiled) {
  std::string text(kPageHead);
  text += fmt::format("<h1>{}</h1>\n<p>{}, {}. Bytes moved are those of usual sizes.</p>\n",
                      html(compiled.program->name), html(compiled.program->target),
                      to_string(compiled.program->numerics));
  for (const EntryLedger& entry : ledger(compiled))
    text += fmt::format("<h2>{}</h2>\n", html(entry.name)) + html_kernels(entry) +
            html_decisions(entry);
  text += kPageScript;
  return text + "</body></html>\n";
}

}  // namespace sinter
