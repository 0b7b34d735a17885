// The ledger as a Graphviz graph.
#include <map>
#include <set>

#include "driver/explain/layers.h"
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

class EntryDrawing {
 public:
  EntryDrawing(const Compiled& compiled, const EntryLedger& ledger)
      : ledger_(ledger),
        graph_(compiled.module.entries[ledger.entry].graph),
        number_(ledger.entry),
        sections_(layer_sections(ledger)),
        shown_(shown_steps(ledger, sections_)) {
    for (size_t i = 0; i < ledger.steps.size(); ++i)
      for (size_t k = 0; k < ledger.steps[i].values.size(); ++k)
        place_[ledger.steps[i].values[k]] = {i, k};
  }

  std::string run() {
    std::string text =
        fmt::format("  subgraph cluster_{} {{\n    label={};\n", number_,
                    dot_string(ledger_.name + (ledger_.sizes.empty() ? "" : ", ") + ledger_.sizes));
    text += inputs();
    for (size_t i = 0; i < sections_.size(); ++i) text += section(i);
    text += "  }\n";
    return text + edges();
  }

 private:
  struct Place {
    size_t step, position;
    auto operator<=>(const Place&) const = default;
  };

  /// The node that stands for a value; nullopt: a weight, a state or a constant.
  std::optional<std::string> node(ValueId id) const {
    const Op& op = graph_[id];
    if (op.kind == OpKind::input) return fmt::format("e{}i{}", number_, id.index);
    const auto at = place_.find(op.name);
    if (at == place_.end()) return std::nullopt;
    return fmt::format("e{}s{}_{}", number_, shown_[at->second.step], at->second.position);
  }

  std::string inputs() const {
    std::string text;
    for (ValueId id : graph_.inputs)
      text += fmt::format("    {} [label={}, shape=ellipse];\n", *node(id),
                          dot_string(graph_[id].name));
    return text;
  }

  std::string section(size_t index) const {
    const LayerSection& own = sections_[index];
    std::string text, indent = "    ";
    if (own.repeats > 0) {
      text += fmt::format("    subgraph cluster_{}_layer{} {{ style=dashed; label={};\n", number_,
                          own.layer, dot_string(repeats_text(own)));
      indent += "  ";
    }
    for (size_t i : own.steps) {
      const LedgerStep& step = ledger_.steps[i];
      text += fmt::format("{}subgraph cluster_{}_step{} {{ label={};\n", indent, number_, i,
                          dot_string(step.name + ", " + with_unit(step.bytes.total(), "B")));
      for (size_t k = 0; k < step.values.size(); ++k)
        text += fmt::format("{}  e{}s{}_{} [label={}];\n", indent, number_, i, k,
                            dot_string(step.values[k]));
      text += indent + "}\n";
    }
    return own.repeats > 0 ? text + "    }\n" : text;
  }

  /// Between kernels with their bytes. What a repeated layer reads of the one before it leads back.
  std::string edges() const {
    std::map<std::pair<size_t, std::string>, double> bytes;
    for (const LedgerEdge& edge : ledger_.edges) bytes[{edge.to, edge.value}] = edge.bytes;
    std::set<std::pair<std::string, std::string>> drawn;
    std::string text;
    for (const bool repeated : {false, true})
      for (const auto& [name, place] : place_) {
        if ((shown_[place.step] != place.step) != repeated) continue;
        const ValueId to = graph_.find(name);
        if (!to.valid()) continue;
        for (ValueId operand : graph_[to].operands) {
          const ValueId root = root_of(graph_, operand);
          const auto a = node(root), b = node(to);
          if (!a || !b || !drawn.insert({*a, *b}).second) continue;
          std::string style;
          if (const auto at = bytes.find({place.step, graph_[root].name}); at != bytes.end())
            style = "label=" + dot_string(with_unit(at->second, "B"));
          if (repeated)
            style += std::string(style.empty() ? "" : ", ") + "style=dashed, constraint=false";
          text += fmt::format("  {} -> {}{};\n", *a, *b,
                              style.empty() ? "" : fmt::format(" [{}]", style));
        }
      }
    return text;
  }

  const EntryLedger& ledger_;
  const Graph& graph_;
  size_t number_;
  std::vector<LayerSection> sections_;
  std::vector<size_t> shown_;
  std::map<std::string, Place> place_;
};

}  // namespace

std::string ledger_dot(const Compiled& compiled, std::string_view only) {
  std::string text = "digraph fusion {\n  node [shape=box, fontsize=10];\n";
  for (const EntryLedger& entry : ledger(compiled, only))
    text += EntryDrawing(compiled, entry).run();
  return text + "}\n";
}

}  // namespace sinter
