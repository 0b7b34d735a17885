#include "driver/explain/page_answers.h"

#include <llvm/ADT/STLExtras.h>

#include <set>

#include "driver/explain/layers.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

/// Pairs of numbers in `values`.
using Pairs = std::set<std::pair<size_t, size_t>>;

Pairs asked_pairs(const Graph& graph, const std::vector<ValueId>& values) {
  Pairs pairs;
  if (values.size() <= kMostValuesWithAllAnswers) {
    for (size_t j = 0; j < values.size(); ++j)
      for (size_t i = 0; i < j; ++i) pairs.insert({i, j});
    return pairs;
  }
  std::map<ValueId, std::vector<size_t>> readers;
  std::map<ValueId, size_t> number;
  for (size_t i = 0; i < values.size(); ++i) number[values[i]] = i;
  for (size_t i = 0; i < values.size(); ++i)
    for (ValueId operand : graph[values[i]].operands) {
      const ValueId root = root_of(graph, operand);
      std::vector<size_t>& others = readers[root];
      for (size_t other : others)
        if (other < i) pairs.insert({other, i});
      others.push_back(i);
      if (const auto at = number.find(root); at != number.end() && at->second < i)
        pairs.insert({at->second, i});
    }
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
  const Graph& graph = compiled.module.entries[entry].graph;
  Json json = Json::array();
  for (const auto& [i, j] : asked_pairs(graph, values)) {
    const Why why = answers.of(entry, values[i], values[j]);
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
