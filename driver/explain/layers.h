// The layers of a model, as the names of its values tell them, and reports that show equal layers
// once.
#pragma once

#include "driver/explain/ledger.h"

namespace sinter {

inline constexpr size_t kLongestLine = 1000;  // characters of a line of text

/// The layer of a value: "l12.norm1" of the frontends and "model.layers.12.norm" of PyTorch's
/// modules: 12; -1 for others. It is the first part of the name that is a number behind another
/// part, or one behind the letter l that begins the name.
int64_t layer_of(std::string_view value);
/// The text before the layer's number: "l", "model.layers."; empty: the value has no layer.
std::string_view stack_of(std::string_view value);
/// The name with `layer` in place of its layer's number ("l12.norm1", "*" -> "l*.norm1").
std::string with_layer(const std::string& value, const std::string& layer);

/// The steps that belong to a layer, by the first value that they compute; -1: to none. Steps
/// before and after the layers stand apart.
struct LayerSection {
  std::string stack;  // stack_of() its values
  int64_t layer = -1;
  std::vector<size_t> steps;
  /// How many sections that follow do the same in layers of their own.
  size_t repeats = 0;
};
/// In order; those that repeat an earlier one are left out.
std::vector<LayerSection> layer_sections(const EntryLedger& ledger);
/// For each step of the entry the step that a report shows for it: itself, or the same step of the
/// section which its layer repeats.
std::vector<size_t> shown_steps(const EntryLedger& ledger,
                                const std::vector<LayerSection>& sections);
/// "before the layers", "layer 3", "after the layers"; empty: no step of the entry has a layer.
std::string section_title(const std::vector<LayerSection>& sections, size_t index);
/// "layers 4–7: as layer 3"; empty: it has no repeats.
std::string repeats_text(const LayerSection& section);

/// Decisions with the same reason and savings about the same values of different layers.
struct DecisionKind {
  std::vector<const LedgerDecision*> all;  // at least one

  const LedgerDecision& first() const { return *all.front(); }
  size_t count() const { return all.size(); }
};
struct DecisionReason {
  const LedgerDecision* first = nullptr;  // with the reason
  size_t count = 0;                       // of decisions
  std::vector<DecisionKind> kinds;
};
/// "saves 8.39 MB", of each of several fusions "each saves a launch".
std::string savings_text(const DecisionKind& kind);
/// Refusals, or fusions, by reason, each in the order of their first decisions.
std::vector<DecisionReason> decisions_by_reason(const EntryLedger& ledger, bool fused);

/// "a → b → c"; layers through which a path goes in the same way are told once.
std::string path_text(const std::vector<std::string>& path);

}  // namespace sinter
