#include "driver/explain/page_answers.h"

#include <llvm/ADT/STLExtras.h>

#include <set>

#include "driver/explain/layers.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

/// Pairs of numbers in `values`.
using AnsweredPairs = std::set<std::pair<size_t, size_t>>;

/// All pairs of few values; of many those that the fusion engine asked about, and values of which
/// one reads the other.
AnsweredPairs answered_pairs(const Compiled& compiled, size_t entry,
                             const std::vector<ValueId>& values) {
  AnsweredPairs pairs;
  if (has_all_answers(values.size())) {
    for (size_t j = 0; j < values.size(); ++j)
      for (size_t i = 0; i < j; ++i) pairs.insert({i, j});
    return pairs;
  }
  const Graph& graph = compiled.module.entries[entry].graph;
  std::map<ValueId, size_t> number;
  for (size_t i = 0; i < values.size(); ++i) number[values[i]] = i;
  const auto add = [&](ValueId a, ValueId b) {
    const auto x = number.find(a), y = number.find(b);
    if (x != number.end() && y != number.end()) pairs.insert({x->second, y->second});
  };
  for (const LedgerEntry& asked : compiled.fusions[entry].ledger)
    add(std::min(asked.a, asked.b), std::max(asked.a, asked.b));
  for (const ValueId value : values)
    for (const ValueId operand : graph[value].operands) add(root_of(graph, operand), value);
  return pairs;
}

std::string reason_lines(const LedgerDecision& d) { return d.text + "\n" + d.reason; }

}  // namespace

size_t PageTexts::number(const std::string& text) {
  if (text.empty()) return 0;
  const auto [at, is_new] = known_.try_emplace(text, list_.size());
  if (is_new) list_.push_back(text);
  return at->second;
}

Json page_answers(const WhyAnswers& answers, const Compiled& compiled, size_t entry,
                  const std::vector<ValueId>& values, const llvm::StringMap<size_t>& shown,
                  PageTexts& texts) {
  Json json = Json::array();
  for (const auto& [i, j] : answered_pairs(compiled, entry, values)) {
    // For many values the page itself looks for paths, when it is asked.
    const Why why = answers.of(entry, values[i], values[j], has_all_answers(values.size()));
    const LedgerDecision& d = why.decision;
    Json path = Json::array();
    std::set<size_t> on_path;  // a path through equal layers meets the same shown values again
    for (const std::string& value : d.path)
      if (const auto at = shown.find(value); at != shown.end() && on_path.insert(at->second).second)
        path.push_back(at->second);
    Json refusal = 0;
    if (const auto& first = why.first_refusal)
      refusal = {texts.number(first->a), texts.number(first->b), texts.number(reason_lines(*first)),
                 texts.number(first->detail), texts.number(first->change)};
    Json answer = {i,
                   j,
                   texts.number(reason_lines(d)),
                   texts.number(d.detail),
                   texts.number(d.change),
                   path.empty() ? Json(0) : path,
                   texts.number(path_text(d.path)),
                   refusal,
                   d.merge};
    while (answer.size() > 3 && answer.back() == 0) answer.erase(answer.size() - 1);
    json.push_back(std::move(answer));
  }
  return json;
}

}  // namespace sinter
