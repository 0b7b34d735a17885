#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/text_table.h"
#include "driver/verify/self_report.h"

namespace sinter {
namespace {

double rate(const EncoderReport& report, double seconds) {
  return seconds > 0 ? static_cast<double>(report.tokens) / seconds : 0;
}

std::string calls_text(const EncoderReport& report) {
  int64_t longest = 0;
  size_t most_texts = 0;
  for (const auto& lengths : report.calls) {
    longest = std::max(longest, *std::max_element(lengths.begin(), lengths.end()));
    most_texts = std::max(most_texts, lengths.size());
  }
  return fmt::format(
      "{} of 1 to {} and 1 to {} of {}{}", counted(report.calls.size(), "call"),
      counted(most_texts, "text"), counted(static_cast<uint64_t>(longest), "token"),
      report.random_text ? "seeded random ids: the model has no tokenizer"
                         : "the bundled text, by the model's tokenizer",
      report.left_out.empty() ? "" : fmt::format(" (left out: {})", report.left_out));
}

std::string comparison_text(const EncoderReport& report) {
  const DTypeReport& found = report.comparison;
  if (!found.difference.empty()) return self_difference(found, report.strict);
  return fmt::format("bit for bit: {}, {}", counted(found.values, "value"),
                     counted(found.elements, "element"));
}

std::string precise_text(const EncoderReport& report) {
  if (!report.precise) return "not compared: " + report.not_precise;
  const PreciseHidden& found = *report.precise;
  return fmt::format("{}over {} of {}: rms error {:.1e} fused and {:.1e} unfused, allowed {:.1e}",
                     found.holds ? "" : "TOO FAR, ",
                     counted(static_cast<uint64_t>(found.calls), "call"),
                     counted(static_cast<uint64_t>(found.tokens), "token"), found.fused_rms,
                     found.unfused_rms, found.allowed);
}

std::string memory_text(const EncoderReport& report) {
  const auto bytes = [](int64_t count) { return with_unit(static_cast<double>(count), "B"); };
  return fmt::format(
      "weights {}, arena {} fused and {} unfused in the largest call; host's peak {}",
      bytes(report.weight_bytes), bytes(report.fused_arena_bytes),
      bytes(report.unfused_arena_bytes), bytes(report.peak_bytes));
}

std::string times_text(const EncoderReport& report) {
  std::string text = fmt::format("plans {:.2f} s, calls {:.2f} s fused and {:.2f} s unfused",
                                 report.plans_s, report.fused_s, report.unfused_s);
  if (report.precise) text += fmt::format(", float64 {:.2f} s", report.precise->seconds);
  return text;
}

}  // namespace

std::string self_text(const EncoderReport& report) {
  TextTable facts("ll");
  facts.add({"texts", calls_text(report)});
  facts.add({"fused = unfused", comparison_text(report)});
  facts.add({"against float64", precise_text(report)});
  facts.add(
      {"tokens/s", fmt::format("{:.4g} fused and {:.4g} unfused", rate(report, report.fused_s),
                               rate(report, report.unfused_s))});
  facts.add({"memory", memory_text(report)});
  facts.add({"time", times_text(report)});
  return fmt::format("{} on {}\n{}\n{}\n", to_string(report.dtype), report.device, facts.str(2),
                     self_verdict(report.passed(), report.precise.has_value()));
}

std::string self_json(const EncoderReport& report) {
  using Json = nlohmann::ordered_json;
  Json precise;
  if (report.precise)
    precise = {
        {"calls", report.precise->calls},         {"tokens", report.precise->tokens},
        {"fused_rms", report.precise->fused_rms}, {"unfused_rms", report.precise->unfused_rms},
        {"allowed", report.precise->allowed},     {"holds", report.precise->holds}};
  const auto run = [&](double seconds, int64_t arena) -> Json {
    return {{"tokens_per_s", rate(report, seconds)}, {"arena_bytes", arena}};
  };
  const Json object = {
      {"passed", report.passed()},
      {"dtype", to_string(report.dtype)},
      {"device", report.device},
      {"numerics", report.strict ? "strict" : "fast"},
      {"text", {{"random", report.random_text}, {"tokens", report.tokens}}},
      {"bitwise", report.comparison.difference.empty()},
      {"difference", report.comparison.difference},
      {"values", report.comparison.values},
      {"elements", report.comparison.elements},
      {"calls", {{"count", report.comparison.calls}, {"lengths", report.calls}}},
      {"left_out", report.left_out},
      {"fused", run(report.fused_s, report.fused_arena_bytes)},
      {"unfused", run(report.unfused_s, report.unfused_arena_bytes)},
      {"float64", std::move(precise)},
      {"float64_left_out", report.not_precise},
      {"memory", {{"weight_bytes", report.weight_bytes}, {"host_peak_bytes", report.peak_bytes}}},
      {"seconds",
       {{"plans", report.plans_s},
        {"fused", report.fused_s},
        {"unfused", report.unfused_s},
        {"float64", report.precise ? report.precise->seconds : 0}}}};
  return object.dump(2) + "\n";
}

}  // namespace sinter
