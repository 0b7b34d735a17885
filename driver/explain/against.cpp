#include "driver/explain/against.h"

#include <llvm/ADT/IntEqClasses.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/explain/layers.h"
#include "driver/json_lists.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

constexpr std::string_view kLedgerFormat = "sinter.ledger";
constexpr double kMaxStepBytes = 1e18;
constexpr double kSameTime = 1e-6;  // relative: times of one cost model, printed and read again

Result<LedgerStep> read_step(const JsonView& json) {
  LedgerStep step;
  SINTER_LET(name, json["name"].string());
  SINTER_LET(kind, json["kind"].string());
  SINTER_LET(read, json["read_bytes"].number(0, kMaxStepBytes));
  SINTER_LET(written, json["written_bytes"].number(0, kMaxStepBytes));
  SINTER_LET(predicted, json["predicted_s"].number(0, kLongestTime));
  SINTER_LET(values, json_strings(json["values"]));
  step.values = std::move(values);
  step.name = std::move(name);
  step.kind = std::move(kind);
  step.bytes = {read, written};
  step.predicted_s = predicted;
  return step;
}

Result<LedgerDecision> read_decision(const JsonView& json) {
  LedgerDecision d;
  SINTER_LET(a, json["a"].string());
  SINTER_LET(b, json["b"].string());
  SINTER_LET(fused, json["fused"].boolean());
  SINTER_LET(reason, json["reason"].string());
  SINTER_LET(text, json["text"].string());
  d.a = std::move(a);
  d.b = std::move(b);
  d.fused = fused;
  d.reason = std::move(reason);
  d.text = std::move(text);
  return d;
}

Result<EntryLedger> read_entry(const JsonView& json) {
  EntryLedger entry;
  SINTER_LET(name, json["name"].string());
  SINTER_LET(title, json["title"].string());
  entry.name = std::move(name);
  entry.title = std::move(title);
  SINTER_LET(steps, json_list<LedgerStep>(json["kernels"], read_step));
  SINTER_LET(decisions, json_list<LedgerDecision>(json["decisions"], read_decision));
  entry.steps = std::move(steps);
  entry.decisions = std::move(decisions);
  return entry;
}

std::string any_layer(const std::string& value) { return with_layer(value, "*"); }

/// "gemm: l*.qkv".
std::string step_text(const LedgerStep& step) {
  std::string text = step.name + ":";
  for (const std::string& value : step.values) text += " " + any_layer(value);
  return text;
}

/// The step of an entry that computes each value.
using Places = llvm::StringMap<size_t>;

Places places_of(const EntryLedger& entry) {
  Places places;
  for (size_t i = 0; i < entry.steps.size(); ++i)
    for (const std::string& value : entry.steps[i].values) places[value] = i;
  return places;
}

class EntryComparison {
 public:
  EntryComparison(const EntryLedger& here, const EntryLedger& there)
      : sides_{&here, &there}, places_{places_of(here), places_of(there)} {}

  ComparedEntry run() {
    ComparedEntry entry;
    entry.title = sides_[0]->title;
    entry.against = sides_[1]->title;
    for (size_t side : {0, 1})
      for (const LedgerStep& step : sides_[side]->steps) {
        ++(step.kind == "gemm" ? entry.calls : entry.launches)[side];
        entry.bytes[side] += step.bytes.total();
        entry.seconds[side] += step.predicted_s;
      }
    entry.kernels = kernels();
    entry.decisions = decisions();
    return entry;
  }

 private:
  /// Kernels that a value connects, which one of either plan computes, are compared together.
  std::vector<ComparedKernels> kernels() const {
    const size_t first_there = sides_[0]->steps.size();
    const size_t steps = first_there + sides_[1]->steps.size();
    llvm::IntEqClasses connected(static_cast<unsigned>(steps));
    for (const auto& [value, step] : places_[0])
      if (const auto at = places_[1].find(value.str()); at != places_[1].end())
        connected.join(static_cast<unsigned>(step),
                       static_cast<unsigned>(first_there + at->second));
    connected.compress();
    std::vector<ComparedKernels> components(connected.getNumClasses());
    for (size_t i = 0; i < steps; ++i) {
      const bool is_here = i < first_there;
      const LedgerStep& step = is_here ? sides_[0]->steps[i] : sides_[1]->steps[i - first_there];
      ComparedKernels& kernels = components[connected[static_cast<unsigned>(i)]];
      (is_here ? kernels.here : kernels.there).push_back(step_text(step));
      (is_here ? kernels.here_s : kernels.there_s) += step.predicted_s;
    }
    std::vector<ComparedKernels> list;
    llvm::StringMap<size_t> known;
    for (ComparedKernels& own : components) {
      if (own.here == own.there && std::abs(own.here_s - own.there_s) <= kSameTime * own.here_s)
        continue;
      const std::string key =
          fmt::format("{}\n\n{}", fmt::join(own.here, "\n"), fmt::join(own.there, "\n"));
      const auto [at, is_new] = known.try_emplace(key, list.size());
      if (is_new) {
        own.count = 1;
        list.push_back(std::move(own));
        continue;
      }
      ComparedKernels& sum = list[at->second];
      ++sum.count;
      sum.here_s += own.here_s;
      sum.there_s += own.there_s;
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const ComparedKernels& x, const ComparedKernels& y) {
                       return std::abs(x.here_s - x.there_s) > std::abs(y.here_s - y.there_s);
                     });
    return list;
  }

  /// The verdict of a plan that did not refuse the two: empty where a value is not in it, or where
  /// it has them apart and did not ask.
  std::string unrefused(size_t side, const LedgerDecision& d) const {
    const auto a = places_[side].find(d.a), b = places_[side].find(d.b);
    if (a == places_[side].end() || b == places_[side].end() || a->second != b->second) return "";
    return "they share a kernel";
  }

  std::vector<ComparedDecision> decisions() const {
    using Asked = std::map<std::pair<std::string, std::string>, std::string>;
    Asked refused[2];
    for (size_t side : {0, 1})
      for (const LedgerDecision& d : sides_[side]->decisions)
        if (!d.fused) refused[side][{d.a, d.b}] = fmt::format("{} ({})", d.text, d.reason);
    std::vector<ComparedDecision> list;
    llvm::StringMap<size_t> known;
    for (size_t side : {0, 1})
      for (const LedgerDecision& d : sides_[side]->decisions) {
        if (d.fused) continue;
        const size_t other = 1 - side;
        const auto also = refused[other].find({d.a, d.b});
        // A pair that both refuse is told once.
        if (also != refused[other].end() && side == 1) continue;
        std::string verdicts[2];
        verdicts[side] = refused[side].at({d.a, d.b});
        verdicts[other] = also != refused[other].end() ? also->second : unrefused(other, d);
        if (verdicts[other].empty() || verdicts[0] == verdicts[1]) continue;
        ComparedDecision own{any_layer(d.a), any_layer(d.b), 1, verdicts[0], verdicts[1]};
        const auto [at, is_new] = known.try_emplace(
            fmt::format("{}\n{}\n{}\n{}", own.a, own.b, own.here, own.there), list.size());
        if (is_new)
          list.push_back(std::move(own));
        else
          ++list[at->second].count;
      }
    return list;
  }

  const EntryLedger* sides_[2];
  Places places_[2];
};

std::string signed_duration(double seconds) {
  return (seconds < 0 ? "−" : "+") + duration(std::abs(seconds));
}

std::string entry_text(const ComparedEntry& entry) {
  if (entry.title.empty() || entry.against.empty())
    return fmt::format("{}: only {}\n",
                       printable(entry.title.empty() ? entry.against : entry.title),
                       entry.title.empty() ? "there" : "here");
  const auto difference = [](double here, double there) {
    return there > 0 ? fmt::format("{:+.1f} %", 100 * (here / there - 1)) : std::string();
  };
  TextTable totals("lrrr");
  totals.add({"", "here", "there", ""});
  const auto add = [&](std::string_view what, double here, double there, auto show) {
    totals.add({std::string(what), show(here), show(there), difference(here, there)});
  };
  const auto whole = [](double count) { return fmt::format("{:.0f}", count); };
  add("kernel launches", static_cast<double>(entry.launches[0]),
      static_cast<double>(entry.launches[1]), whole);
  add("GEMM calls", static_cast<double>(entry.calls[0]), static_cast<double>(entry.calls[1]),
      whole);
  add("bytes", entry.bytes[0], entry.bytes[1], [](double n) { return with_unit(n, "B"); });
  add("predicted", entry.seconds[0], entry.seconds[1], [](double s) { return duration(s); });
  std::string text = printable(entry.title) + '\n' + totals.str(2);
  if (entry.kernels.empty() && entry.decisions.empty()) return text + "  the same kernels\n";
  const auto is_seen = [](const ComparedKernels& kernels) {
    return duration(std::abs(kernels.here_s - kernels.there_s)) != duration(0);
  };
  size_t unseen = 0;
  for (const ComparedKernels& kernels : entry.kernels)
    if (!is_seen(kernels)) unseen += kernels.count;
  if (!entry.kernels.empty()) text += "\nkernels that differ, here less there\n";
  for (const ComparedKernels& kernels : entry.kernels) {
    if (!is_seen(kernels)) continue;
    text += fmt::format("  {:>4}×  {}\n", kernels.count,
                        signed_duration(kernels.here_s - kernels.there_s));
    for (const auto& [side, list] : {std::pair("here ", &kernels.here), {"there", &kernels.there}})
      for (const std::string& kernel : *list)
        text += fmt::format("         {}  {}\n", side, printable(kernel, kLongestLine));
  }
  if (unseen > 0)
    text += fmt::format("  {}, equally fast (--json lists them)\n",
                        counted(unseen, "other set of kernels", "other sets of kernels"));
  if (!entry.decisions.empty()) text += "\ndecisions that differ\n";
  for (const ComparedDecision& d : entry.decisions)
    text += fmt::format("  {:>4}×  {} and {}\n         here   {}\n         there  {}\n", d.count,
                        printable(d.a), printable(d.b), printable(d.here, kLongestLine),
                        printable(d.there, kLongestLine));
  return text;
}

}  // namespace

Result<std::vector<EntryLedger>> read_ledger(const std::string& path) {
  SINTER_LET(document, read_json(path, kLargestReport));
  const JsonView root = document.view();
  SINTER_LET(format, root["format"].string_or(""));
  if (format != kLedgerFormat)
    return fail("the file is no ledger", path,
                "give what `sinter explain --json` printed, or a plan's fusion.json");
  SINTER_LET(version, root["version"].integer());
  if (version != 1)
    return fail(fmt::format("the ledger has version {}, this sinter reads version 1", version),
                path, "write it again with this sinter");
  return json_list<EntryLedger>(root["entries"], read_entry);
}

Result<bool> is_ledger(const std::string& path) {
  if (!std::filesystem::path(path).extension().string().starts_with(".json")) return false;
  SINTER_LET(document, read_json(path, kLargestReport));
  SINTER_LET(format, document.view()["format"].string_or(""));
  return format == kLedgerFormat;
}

std::vector<ComparedEntry> compare_ledgers(const std::vector<EntryLedger>& here,
                                           const std::vector<EntryLedger>& there) {
  std::vector<bool> taken(there.size());
  const auto partner = [&](const EntryLedger& entry) -> const EntryLedger* {
    for (const auto key : {&EntryLedger::title, &EntryLedger::name})
      for (size_t i = 0; i < there.size(); ++i)
        if (!taken[i] && there[i].*key == entry.*key) {
          taken[i] = true;
          return &there[i];
        }
    return nullptr;
  };
  std::vector<ComparedEntry> entries;
  for (const EntryLedger& entry : here) {
    const EntryLedger* other = partner(entry);
    if (other) {
      entries.push_back(EntryComparison(entry, *other).run());
    } else {
      entries.emplace_back().title = entry.title;
    }
  }
  for (size_t i = 0; i < there.size(); ++i)
    if (!taken[i]) entries.emplace_back().against = there[i].title;
  return entries;
}

std::string comparison_text(const std::vector<ComparedEntry>& entries) {
  std::string text;
  for (const ComparedEntry& entry : entries) text += (text.empty() ? "" : "\n") + entry_text(entry);
  return text;
}

std::string comparison_json(const std::vector<ComparedEntry>& entries) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const ComparedEntry& entry : entries) {
    const auto side = [&](size_t i) -> Json {
      if ((i == 0 ? entry.title : entry.against).empty()) return nullptr;
      return {{"title", i == 0 ? entry.title : entry.against},
              {"launches", entry.launches[i]},
              {"calls", entry.calls[i]},
              {"bytes", static_cast<int64_t>(entry.bytes[i])},
              {"predicted_s", entry.seconds[i]}};
    };
    Json kernels = Json::array(), decisions = Json::array();
    for (const ComparedKernels& own : entry.kernels)
      kernels.push_back({{"count", own.count},
                         {"here", own.here},
                         {"there", own.there},
                         {"here_s", own.here_s},
                         {"there_s", own.there_s}});
    for (const ComparedDecision& d : entry.decisions)
      decisions.push_back(
          {{"a", d.a}, {"b", d.b}, {"count", d.count}, {"here", d.here}, {"there", d.there}});
    list.push_back(
        {{"here", side(0)}, {"there", side(1)}, {"kernels", kernels}, {"decisions", decisions}});
  }
  return Json{{"entries", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace sinter
