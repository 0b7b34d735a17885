#include "driver/run/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "driver/text_table.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low, mean = 0;
  int64_t nans = 0;
};

Range range_of(const HostTensor& tensor) {
  Range range;
  const std::vector<double> values = to_doubles(tensor);
  for (double value : values) {
    if (std::isnan(value)) {
      ++range.nans;
      continue;
    }
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
    range.mean += value / static_cast<double>(values.size());
  }
  return range;
}

constexpr size_t kShownTokens = 5;

/// Ids and logits of the likeliest tokens after the last one; only where `logits` is an output.
std::vector<std::pair<int64_t, double>> likeliest(const TokenRun& run) {
  std::vector<std::pair<int64_t, double>> best;
  for (const NamedHostTensor& value : run.values) {
    if (value.name != "logits" || value.tensor.dims.size() != 2 || value.tensor.dims[0] == 0)
      continue;
    const std::vector<double> all = to_doubles(value.tensor);
    const int64_t width = value.tensor.dims[1];
    for (int64_t id = 0; id < width; ++id) best.push_back({id, all[all.size() - width + id]});
  }
  std::stable_sort(best.begin(), best.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (best.size() > kShownTokens) best.resize(kShownTokens);
  return best;
}

std::string shape(const HostTensor& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.dtype), fmt::join(tensor.dims, ", "));
}

}  // namespace

std::string run_text(const TokenRun& run) {
  TextTable table("llrrr");
  table.add({"value", "type", "min", "mean", "max"});
  for (const NamedHostTensor& value : run.values) {
    const Range range = range_of(value.tensor);
    table.add({printable(value.name), shape(value.tensor), fmt::format("{:.5g}", range.low),
               fmt::format("{:.5g}", range.mean), fmt::format("{:.5g}", range.high)});
    if (range.nans > 0) table.add({"", fmt::format("{} NaNs", range.nans)});
  }
  std::string text = table.str();
  const auto best = likeliest(run);
  if (!best.empty()) {
    TextTable next("rr");
    next.add({"next", "logit"});
    for (const auto& [id, logit] : best)
      next.add({fmt::format("{}", id), fmt::format("{:.6f}", logit)});
    text += "\n" + next.str();
  }
  if (!run.tokens.empty()) text += fmt::format("\ntokens {}\n", fmt::join(run.tokens, " "));
  return text;
}

std::string run_json(const TokenRun& run) {
  using Json = nlohmann::ordered_json;
  Json values = Json::array(), next = Json::array();
  for (const NamedHostTensor& value : run.values) {
    const Range range = range_of(value.tensor);
    values.push_back({{"name", printable(value.name)},
                      {"dtype", to_string(value.tensor.dtype)},
                      {"dims", value.tensor.dims},
                      {"min", range.low},
                      {"mean", range.mean},
                      {"max", range.high},
                      {"nans", range.nans}});
  }
  for (const auto& [id, logit] : likeliest(run)) next.push_back({{"token", id}, {"logit", logit}});
  return Json{{"values", values}, {"next", next}, {"tokens", run.tokens}}.dump(2) + "\n";
}

std::string ranks_text(llvm::ArrayRef<TokenRun> ranks) {
  std::string text;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    text += fmt::format("rank {}\n{}", rank, run_text(ranks[rank]));
  return text;
}

std::string ranks_json(llvm::ArrayRef<TokenRun> ranks) {
  std::vector<std::string> all;
  for (const TokenRun& rank : ranks) all.push_back(run_json(rank));
  return fmt::format("[\n{}]\n", fmt::join(all, ","));
}

}  // namespace sinter
