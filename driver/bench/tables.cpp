// A benchmark's cases as Markdown and as CSV, and beside a saved benchmark's cases.
#include "driver/bench/report.h"
#include "driver/text_table.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

constexpr double kTailShare = 0.95;

/// "+1.2 %", of the time here beside the one there; empty: there is none.
std::string change_text(double here, double there) {
  return there > 0 ? fmt::format("{:+.1f} %", 100 * (here / there - 1)) : "";
}

/// The cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

/// The field of a CSV file.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// Calls visit(case, plan's name, times, the saved median or 0) for each plan of each case.
template <typename Visit>
void for_each_plan(const BenchReport& report, const SavedBench* against, Visit visit) {
  for (const BenchCase& one : report.cases) {
    const SavedCase* saved = against ? against->find(one) : nullptr;
    visit(one, "fused", one.fused, saved ? saved->fused_s : 0);
    visit(one, "unfused", one.unfused, saved ? saved->unfused_s : 0);
  }
}

}  // namespace

std::string case_title(const BenchCase& one) {
  std::string name = printable(one.name);
  for (const auto& [what, value] : one.sizes)
    if (what != "batch" || value != 1) name += fmt::format(", {} {}", printable(what), value);
  return name;
}

std::string bench_against_text(const BenchReport& report, const SavedBench& against) {
  std::string text =
      fmt::format("beside {} on {}\n", printable(against.model), printable(against.device));
  TextTable table("llrrr");
  table.add({"", "plan", "here", "there", ""});
  for_each_plan(report, &against,
                [&](const BenchCase& one, const char* plan, const PlanTimes& times, double there) {
                  const double here = median(times.device_s);
                  table.add({&times == &one.fused ? case_title(one) : "", plan, duration(here),
                             there > 0 ? duration(there) : "–", change_text(here, there)});
                });
  return text + table.str(2);
}

std::string bench_markdown(const BenchReport& report, const SavedBench* against) {
  std::string text = fmt::format("**{}**{} on {}, {} samples\n\n", cell(report.model),
                                 report.dtype.empty() ? "" : ", " + report.dtype,
                                 cell(report.machine.device), report.repeat);
  text += "| case | plan | median | predicted | p95 | of ceiling | launches | speedup |";
  text += against ? " there | change |\n" : "\n";
  text += "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |";
  text += against ? " ---: | ---: |\n" : "\n";
  for_each_plan(report, against,
                [&](const BenchCase& one, const char* plan, const PlanTimes& times, double there) {
                  const double here = median(times.device_s);
                  const bool first = &times == &one.fused;
                  text += fmt::format("| {} | {} | {} | {} | {} | {:.1f} % | {} | {} |",
                                      first ? cell(case_title(one)) : "", plan, duration(here),
                                      times.predicted_s ? duration(*times.predicted_s) : "–",
                                      duration(quantile(times.device_s, kTailShare)),
                                      100 * one.of_ceiling(times), times.launches,
                                      first ? fmt::format("{:.2f}", one.speedup()) : "");
                  if (against)
                    text += fmt::format(" {} | {} |", there > 0 ? duration(there) : "–",
                                        change_text(here, there));
                  text += '\n';
                });
  if (against)
    text += fmt::format("\nthere: {} on {}\n", cell(against->model), cell(against->device));
  return text;
}

std::string bench_csv(const BenchReport& report, const SavedBench* against) {
  std::string text =
      "model,device,case,sizes,plan,median_s,p95_s,host_median_s,predicted_s,of_ceiling,launches";
  text += against ? ",there_median_s\n" : "\n";
  for_each_plan(report, against,
                [&](const BenchCase& one, const char* plan, const PlanTimes& times, double there) {
                  std::string sizes;
                  for (const auto& [name, value] : one.sizes)
                    sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value);
                  text += fmt::format(
                      "{},{},{},{},{},{:.9g},{:.9g},{:.9g},{},{:.9g},{}", field(report.model),
                      field(report.machine.device), field(one.name), field(sizes), plan,
                      median(times.device_s), quantile(times.device_s, kTailShare),
                      median(times.host_s),
                      times.predicted_s ? fmt::format("{:.9g}", *times.predicted_s) : "",
                      one.of_ceiling(times), times.launches);
                  if (against) text += there > 0 ? fmt::format(",{:.9g}", there) : ",";
                  text += '\n';
                });
  return text;
}

}  // namespace sinter
