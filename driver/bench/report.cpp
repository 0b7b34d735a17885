#include "driver/bench/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/profile/report.h"
#include "driver/text_table.h"
#include "ir/c_locale.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTail = 0.95;

/// Differences of a form are less than three digits show.
std::string microseconds(double seconds) { return fmt::format("{:.1f} µs", seconds * 1e6); }

std::string rate_unit(BenchCase::Work work) {
  return work == BenchCase::Work::bytes ? "B/s" : "FLOP/s";
}

std::string table(const BenchReport& report) {
  TextTable table("llrrrrrrrr");
  table.add({"", "plan", "median", "predicted", "p95", "host", "rate", "of ceiling", "launches",
             "speedup"});
  for (const BenchCase& one : report.cases)
    for (const auto& [plan, times] : {std::pair("fused", &one.fused), {"unfused", &one.unfused}}) {
      const bool first = times == &one.fused;
      table.add({first ? case_title(one) : "", plan, duration(median(times->device_s)),
                 times->predicted_s ? duration(*times->predicted_s) : "–",
                 duration(quantile(times->device_s, kTail)), duration(median(times->host_s)),
                 with_unit(one.per_s(*times), rate_unit(one.work)),
                 fmt::format("{:.1f} %", 100 * one.of_ceiling(*times)),
                 std::to_string(times->launches),
                 first ? fmt::format("{:.2f}", one.speedup()) : ""});
    }
  return table.str();
}

/// A line for each kernel that was tuned: both forms, and a token with one and with the other.
std::string forms_table(const FormSearch& search) {
  TextTable table("lllrr");
  table.add({"form of", "usual form", "chosen", "a token", "with it"});
  for (const FormDecision& one : search.decisions) {
    const bool same = one.chosen == one.usual;
    table.add({one.family + " " + one.key, to_string(one.usual),
               same ? "the same" : to_string(one.chosen), microseconds(one.usual_s),
               same ? "" : microseconds(one.chosen_s)});
  }
  table.add({"all", "", "", microseconds(search.usual_s), microseconds(search.chosen_s)});
  return table.str();
}

Json forms_json(const FormSearch& search) {
  Json list = Json::array();
  for (const FormDecision& one : search.decisions)
    list.push_back({{"family", one.family},
                    {"key", one.key},
                    {"usual", one.usual.numbers},
                    {"chosen", one.chosen.numbers},
                    {"usual_s", one.usual_s},
                    {"chosen_s", one.chosen_s}});
  return {{"decisions", list}, {"usual_s", search.usual_s}, {"chosen_s", search.chosen_s}};
}

Json samples_json(const BenchCase& one, const PlanTimes& times) {
  return {{"median_s", median(times.device_s)},
          {"p95_s", quantile(times.device_s, kTail)},
          {"per_s", one.per_s(times)},
          {"of_ceiling", one.of_ceiling(times)},
          {"launches", times.launches},
          {"host_median_s", median(times.host_s)},
          {"predicted_s", times.predicted_s ? Json(*times.predicted_s) : Json()},
          {"device_s", times.device_s},
          {"host_s", times.host_s}};
}

Json case_json(const BenchCase& one) {
  Json sizes = Json::object();
  for (const auto& [name, value] : one.sizes) sizes[name] = value;
  return {{"name", one.name},
          {"sizes", sizes},
          {"amount", one.amount},
          {"unit", one.work == BenchCase::Work::bytes ? "B" : "FLOP"},
          {"ceiling",
           {{"name", one.ceiling_name},
            {"per_s", one.ceiling.per_s},
            {"amount", one.ceiling.amount},
            {"by", one.ceiling.by},
            {"seconds", one.ceiling.seconds}}},
          {"speedup", one.speedup()},
          {"fused", samples_json(one, one.fused)},
          {"unfused", samples_json(one, one.unfused)}};
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  TextTable facts("ll");
  const BenchMachine& machine = report.machine;
  facts.add({"model", printable(report.model) + (report.dtype.empty() ? "" : ", " + report.dtype) +
                          (report.numerics == Numerics::fast ? ", fast numerics" : "") +
                          ", weights of " + with_unit(report.weight_bytes, "B")});
  facts.add({"device", fmt::format("{}, {}, {}", machine.device, machine.driver,
                                   fmt::join(machine.libraries, ", "))});
  if (report.experts) facts.add({"routing", step_experts_text(*report.experts)});
  std::string stages;
  for (const auto& [name, seconds] : report.seconds)
    stages += fmt::format("{}{} {}", stages.empty() ? "" : ", ", name, duration(seconds));
  facts.add({"before", stages});
  facts.add(
      {"samples",
       fmt::format("{} of each plan, in turns; products {}", report.repeat,
                   report.tuned ? "tuned" : "by the library's first proposal or the record")});
  std::vector<std::string> shown;
  for (const BenchCase& one : report.cases) {
    std::string ceiling = fmt::format(
        "{} {} ({}, {} a call)", one.ceiling_name,
        with_unit(one.ceiling.per_s, rate_unit(one.work)), one.ceiling.by,
        with_unit(one.ceiling.amount, one.work == BenchCase::Work::bytes ? "B" : "FLOP"));
    if (std::find(shown.begin(), shown.end(), ceiling) != shown.end()) continue;
    facts.add({shown.empty() ? "ceilings" : "", ceiling});
    shown.push_back(std::move(ceiling));
  }
  std::string text = facts.str() + "\n";
  if (!report.forms.decisions.empty()) text += forms_table(report.forms) + "\n";
  text += table(report);
  if (report.decode) text += "\n" + profile_text(*report.decode);
  return text;
}

std::string bench_json(const BenchReport& report) {
  Json stages = Json::object(), cases = Json::array();
  for (const auto& [name, seconds] : report.seconds) stages[name] = seconds;
  for (const BenchCase& one : report.cases) cases.push_back(case_json(one));
  Json json = {{"model", report.model},
               {"dtype", report.dtype.empty() ? Json(nullptr) : Json(report.dtype)},
               {"numerics", to_string(report.numerics)},
               {"weight_bytes", report.weight_bytes},
               {"machine",
                {{"device", report.machine.device},
                 {"driver", report.machine.driver},
                 {"libraries", report.machine.libraries},
                 {"multiprocessors", report.machine.multiprocessors},
                 {"memory_bytes", report.machine.memory_bytes},
                 {"l2_bytes", report.machine.l2_bytes}}},
               {"measured_board", report.measured_board},
               {"repeat", report.repeat},
               {"tuned", report.tuned},
               {"seconds", stages},
               {"cases", cases}};
  if (report.experts) json["experts"] = step_experts_json(*report.experts);
  if (!report.forms.decisions.empty()) json["forms"] = forms_json(report.forms);
  const CLocale numbers_with_a_point;
  if (report.decode) json["decode_kernels"] = Json::parse(profile_json(*report.decode));
  return json.dump(2) + "\n";
}

}  // namespace sinter
