// The ledger as a Graphviz graph.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <cmath>
#include <map>
#include <set>

#include "driver/explain/layers.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// In quotes; lines are kept.
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

/// Lines are as wide as the bytes are many, from half a point to four.
std::string edge_style(double bytes, double most, bool leads_back) {
  const double width = most > 0 ? 0.5 + 3.5 * std::sqrt(bytes / most) : 0.5;
  return fmt::format("label={}, penwidth={:.2f}{}", dot_string(with_unit(bytes, "B")), width,
                     leads_back ? ", style=dashed, constraint=false" : "");
}

class EntryDrawing {
 public:
  EntryDrawing(const Compiled& compiled, const EntryLedger& ledger)
      : ledger_(ledger),
        graph_(compiled.module.entries[ledger.entry].graph),
        number_(ledger.entry),
        sections_(layer_sections(ledger)),
        shown_(shown_steps(ledger, sections_)) {
    for (uint32_t i = 0; i < graph_.size(); ++i) value_[graph_.ops()[i].name] = {i};
    for (size_t i = 0; i < ledger.steps.size(); ++i)
      for (size_t k = 0; k < ledger.steps[i].values.size(); ++k)
        place_[ledger.steps[i].values[k]] = {i, k};
  }

  std::string run() {
    std::string text = fmt::format(
        "  subgraph cluster_{} {{\n    label={};\n", number_,
        dot_string(ledger_.title + (ledger_.sizes.empty() ? "" : ", ") + ledger_.sizes));
    text += inputs();
    for (size_t i = 0; i < sections_.size(); ++i) text += section(i);
    text += "  }\n";
    return text + inner_edges() + memory_edges();
  }

 private:
  struct Place {
    size_t step, position;
    auto operator<=>(const Place&) const = default;
  };

  ValueId find(const std::string& name) const {
    const auto at = value_.find(name);
    return at == value_.end() ? ValueId{} : at->second;
  }

  /// The node that stands for a value; nullopt: a weight, a state or a constant.
  std::optional<std::string> node(ValueId id) const {
    if (!id.valid()) return std::nullopt;
    const Op& op = graph_[id];
    if (op.kind == OpKind::input) return fmt::format("e{}i{}", number_, id.index);
    const auto at = place_.find(op.name);
    if (at == place_.end()) return std::nullopt;
    return fmt::format("e{}s{}_{}", number_, shown_[at->second.step], at->second.position);
  }

  std::string cluster(size_t step) const { return fmt::format("cluster_{}_step{}", number_, step); }

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
      text += fmt::format(
          "{}subgraph {} {{ style=solid; label={};\n", indent, cluster(i),
          dot_string(fmt::format("{}\n{}, {}", step.name, with_unit(step.bytes.total(), "B"),
                                 duration(step.predicted_s))));
      for (size_t k = 0; k < step.values.size(); ++k)
        text += fmt::format("{}  e{}s{}_{} [label={}];\n", indent, number_, i, k,
                            dot_string(step.values[k]));
      text += indent + "}\n";
    }
    return own.repeats > 0 ? text + "    }\n" : text;
  }

  /// The first op of a kernel that reads the value.
  std::optional<std::string> reader(size_t step, const std::string& value) const {
    for (const std::string& name : ledger_.steps[step].values) {
      const ValueId id = find(name);
      if (id.valid() && llvm::any_of(graph_[id].operands, [&](ValueId operand) {
            return graph_[root_of(graph_, operand)].name == value;
          }))
        return node(id);
    }
    return std::nullopt;
  }

  /// The edges between ops of the same kernel.
  std::string inner_edges() const {
    std::string text;
    for (const LayerSection& section : sections_)
      for (size_t step : section.steps)
        for (const std::string& name : ledger_.steps[step].values) {
          const ValueId to = find(name);
          if (!to.valid()) continue;
          std::set<ValueId> roots;  // one that is read twice is drawn once
          for (ValueId operand : graph_[to].operands) {
            const ValueId root = root_of(graph_, operand);
            const auto from = place_.find(graph_[root].name);
            if (from != place_.end() && from->second.step == step && roots.insert(root).second)
              text += fmt::format("  {} -> {};\n", *node(root), *node(to));
          }
        }
    return text;
  }

  /// The edges from kernels and inputs to the kernels that read them: one for each value and
  /// reading kernel, with its bytes. Edges for the values that a repeated layer reads from the
  /// layer before it lead back.
  std::string memory_edges() const {
    double most = 0;
    for (const LedgerEdge& edge : ledger_.edges)
      if (node(find(edge.value))) most = std::max(most, edge.bytes);
    std::set<std::pair<std::string, std::string>> drawn;
    std::string text;
    for (const bool repeated : {false, true})
      for (const LedgerEdge& edge : ledger_.edges) {
        if ((shown_[edge.to] != edge.to) != repeated) continue;
        const auto from = node(find(edge.value)), to = reader(edge.to, edge.value);
        if (!from || !to || !drawn.insert({*from, *to}).second) continue;
        text += fmt::format("  {} -> {} [lhead={}, {}];\n", *from, *to, cluster(shown_[edge.to]),
                            edge_style(edge.bytes, most, repeated));
      }
    return text;
  }

  const EntryLedger& ledger_;
  const Graph& graph_;
  size_t number_;
  std::vector<LayerSection> sections_;
  std::vector<size_t> shown_;
  llvm::StringMap<ValueId> value_;
  std::map<std::string, Place> place_;
};

}  // namespace

std::string ledger_dot(const Compiled& compiled, std::string_view only) {
  std::string text = "digraph fusion {\n  compound=true;\n  node [shape=box, fontsize=10];\n";
  for (const EntryLedger& entry : ledger(compiled, only))
    text += EntryDrawing(compiled, entry).run();
  return text + "}\n";
}

}  // namespace sinter
