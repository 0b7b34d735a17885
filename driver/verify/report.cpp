#include "driver/verify/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "driver/text_table.h"

namespace sinter {
namespace {

/// Errors of the fused plan, and their ratios to the unfused plan's errors.
std::string bounds_table(const DTypeReport& report) {
  TextTable values("lrrrrl");
  values.add({"error", "RMS", fmt::format("of unfused ≤ {}", kMaxRmsRatio), "mean max",
              fmt::format("of unfused ≤ {} + 1 ulp", kMaxMaxRatio), ""});
  const auto ratio = [](double a, double b) { return b == 0 ? a == 0 ? 1 : INFINITY : a / b; };
  for (const ErrorBound& bound : report.bounds)
    values.add({"  " + bound.value, fmt::format("{:.2e}", bound.fused.rms()),
                fmt::format("{:.3f}", ratio(bound.fused.rms(), bound.unfused.rms())),
                fmt::format("{:.2e}", bound.fused.mean_max()),
                fmt::format("{:.3f}", ratio(bound.fused.mean_max(), bound.unfused.mean_max())),
                !bound.holds()  ? "TOO FAR"
                : bound.chooses ? "no bound: experts are chosen"
                                : ""});
  return values.str(2);
}

/// "13 values, 103320 elements, 1 call".
std::string compared_text(const DTypeReport& report) {
  return fmt::format("{}, {}, {}", counted(report.values, "value"),
                     counted(report.elements, "element"), counted(report.calls, "call"));
}

std::string dtype_text(const DTypeReport& report) {
  TextTable facts("ll");
  if (!report.bounds.empty())
    facts.add({"against float64", "fused and unfused: " + compared_text(report)});
  else
    facts.add({"fused = unfused", report.difference.empty()
                                      ? "bit for bit: " + compared_text(report)
                                      : "NO: " + report.difference});
  facts.add({"launches", fmt::format("{} → {}", report.unfused_launches, report.fused_launches)});
  if (report.ranks > 1 && report.difference.empty())
    facts.add({"ranks", fmt::format("{}, each with the same bits of {}", report.ranks,
                                    counted(report.reduced_values, "all_reduce result"))});
  if (report.rounded_matrices > 0)
    facts.add({"rounded", fmt::format("elements of quantized matrices, in {}",
                                      counted(report.rounded_matrices, "place"))});
  if (report.host_checked_calls > 0)
    facts.add({"device = host", fmt::format("bit for bit: every kernel without a contraction, {}",
                                            counted(report.host_checked_calls, "call"))});
  if (report.fused_error)
    facts.add(
        {"against float64",
         fmt::format("RMS {:.2e}, max {:.2e}{}", report.fused_error->rms, report.fused_error->max,
                     report.float64_value.empty()
                         ? ""
                         : fmt::format(": {}, the farthest", printable(report.float64_value)))});
  if (report.logits_hash != 0)
    facts.add({"logits' hash", fmt::format("{:016x} over {}", report.logits_hash,
                                           counted(report.tokens.size(), "step"))});
  if (report.recorded_match)
    facts.add({"recorded graph",
               *report.recorded_match ? "gives the same tokens" : "gives OTHER tokens"});
  if (!report.tokens.empty()) {
    std::string_view suffix = !report.tokens_match   ? ""
                              : *report.tokens_match ? "  = reference"
                                                     : "  NOT the reference's";
    facts.add({"greedy tokens", fmt::format("{}{}", fmt::join(report.tokens, " "), suffix)});
  }
  std::string text = fmt::format(
      "{}\n{}", report.dtype ? to_string(*report.dtype) : "its own element types", facts.str(2));
  if (!report.bounds.empty()) text += bounds_table(report);
  if (report.reference.empty()) return text;
  TextTable values("lrrl");
  values.add({"against the reference", "max abs", "allowed", ""});
  for (const ValueCheck& check : report.reference)
    values.add({"  " + check.name, fmt::format("{:.2e}", check.max_abs),
                fmt::format("{:.2e}", check.allowed), check.passed ? "" : "TOO FAR"});
  return text + values.str(2);
}

}  // namespace

std::string verify_text(const VerifyReport& report) {
  std::string text;
  for (const DTypeReport& one : report.dtypes) text += dtype_text(one) + "\n";
  return text + (report.passed() ? "verified: every promise holds\n"
                                 : "BROKEN: a promise does not hold, see above\n");
}

std::string verify_json(const VerifyReport& report) {
  using Json = nlohmann::ordered_json;
  Json dtypes = Json::array();
  for (const DTypeReport& one : report.dtypes) {
    Json reference = Json::array();
    for (const ValueCheck& check : one.reference)
      reference.push_back({{"name", check.name},
                           {"max_abs", check.max_abs},
                           {"max_ulp", check.max_ulp},
                           {"allowed", check.allowed},
                           {"passed", check.passed}});
    Json object = {{"dtype", one.dtype ? Json(to_string(*one.dtype)) : Json()},
                   {"bitwise", one.difference.empty()},
                   {"difference", one.difference},
                   {"calls", one.calls},
                   {"values", one.values},
                   {"elements", one.elements},
                   {"launches", {{"unfused", one.unfused_launches}, {"fused", one.fused_launches}}},
                   {"rounded_matrices", one.rounded_matrices},
                   {"host_checked_calls", one.host_checked_calls},
                   {"logits_hash", fmt::format("{:016x}", one.logits_hash)},
                   {"reference", std::move(reference)},
                   {"tokens", one.tokens}};
    if (!one.bounds.empty()) {
      Json bounds = Json::array();
      for (const ErrorBound& bound : one.bounds)
        bounds.push_back(
            {{"value", bound.value},
             {"rms", {{"unfused", bound.unfused.rms()}, {"fused", bound.fused.rms()}}},
             {"mean_max",
              {{"unfused", bound.unfused.mean_max()}, {"fused", bound.fused.mean_max()}}},
             {"max", {{"unfused", bound.unfused.max}, {"fused", bound.fused.max}}},
             {"ulp", bound.ulp},
             {"holds", bound.holds()}});
      object["bounds"] = std::move(bounds);
      object.erase("bitwise");
      object.erase("difference");
    }
    if (one.fused_error)
      object["float64"] = {{"rms", one.fused_error->rms}, {"max", one.fused_error->max}};
    if (!one.float64_value.empty()) object["float64"]["value"] = printable(one.float64_value);
    if (one.ranks > 1)
      object["ranks"] = {{"count", one.ranks}, {"reduced_values", one.reduced_values}};
    if (one.recorded_match) object["recorded_match"] = *one.recorded_match;
    if (one.tokens_match) object["tokens_match"] = *one.tokens_match;
    dtypes.push_back(std::move(object));
  }
  return Json{{"passed", report.passed()}, {"dtypes", std::move(dtypes)}}.dump(2) + "\n";
}

}  // namespace sinter
