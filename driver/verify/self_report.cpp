#include "driver/verify/self_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "driver/generate/prefill_report.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// The rate of `count` things in `seconds`; 0 if nothing was timed.
double rate(size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}
double text_rate(const SelfReport& report, const SelfRun& run) {
  return rate(static_cast<size_t>(report.tokens), run.text_s);
}
/// The first token comes with the prompt.
double generated_rate(const SelfRun& run) {
  return run.generated.size() > 1 ? rate(run.generated.size() - 1, run.generated_s) : 0;
}

std::string tokens_text(const SelfReport& report) {
  const std::string all =
      fmt::format("{} of {}", report.text_tokens,
                  report.random_text ? "seeded random ids: the model has no tokenizer"
                                     : "the bundled text, by the model's tokenizer");
  if (report.shortened.empty()) return all;
  return fmt::format("the first {} of {} ({})", report.tokens, all, report.shortened);
}

std::string comparison_text(const SelfReport& report) {
  const DTypeReport& found = report.comparison;
  const std::string size =
      fmt::format("{}, {}, {}", counted(found.values, "value"), counted(found.elements, "element"),
                  counted(found.calls, "call"));
  if (found.difference.empty()) return "bit for bit: " + size;
  return self_difference(found, report.strict);
}

std::string generated_text(const SelfReport& report) {
  if (report.same_tokens())
    return fmt::format("the same {} after the first {}: {}", report.fused.generated.size(),
                       report.prompt_tokens, fmt::join(report.fused.generated, " "));
  size_t at = 0;
  while (report.fused.generated[at] == report.unfused.generated[at]) ++at;
  return fmt::format("{}token {} is {} fused and {} unfused", report.strict ? "NO: " : "", at,
                     report.fused.generated[at], report.unfused.generated[at]);
}

std::string precise_text(const SelfReport& report) {
  if (!report.precise) return "not compared: " + report.not_precise;
  const PreciseLoss& found = *report.precise;
  return fmt::format(
      "{}over the first {}: perplexity {:.7g} beside {:.7g} fused; mean loss off by {:.1e}, "
      "allowed {:.1e}",
      found.holds() ? "" : "TOO FAR, ",
      counted(static_cast<uint64_t>(found.predictions), "prediction"), std::exp(found.precise),
      std::exp(found.fused), std::abs(found.fused - found.precise), found.allowed);
}

/// A guess among all tokens of a vocabulary has its size as perplexity, and none is this large.
constexpr double kLargestVocabulary = 1e6;

std::string memory_text(const SelfReport& report) {
  const auto bytes = [](int64_t count) { return with_unit(static_cast<double>(count), "B"); };
  return fmt::format(
      "weights {}, caches {}, arena {} fused and {} unfused in calls of {}; host's peak {}",
      bytes(report.weight_bytes), bytes(report.state_bytes), bytes(report.fused.arena_bytes),
      bytes(report.unfused.arena_bytes),
      counted(static_cast<uint64_t>(report.prefill.tokens), "token"), bytes(report.peak_bytes));
}

std::string times_text(const SelfReport& report) {
  std::string text = fmt::format("plans {:.2f} s, text {:.2f} s fused and {:.2f} s unfused",
                                 report.plans_s, report.fused.text_s, report.unfused.text_s);
  if (report.precise) text += fmt::format(", float64 {:.2f} s", report.precise->seconds);
  return text;
}

nlohmann::ordered_json run_json(const SelfReport& report, const SelfRun& run) {
  return {{"perplexity", std::exp(run.mean_loss())},     {"loss", run.mean_loss()},
          {"text_tokens_per_s", text_rate(report, run)}, {"tokens", run.generated},
          {"tokens_per_s", generated_rate(run)},         {"arena_bytes", run.arena_bytes}};
}

}  // namespace

std::string self_difference(const DTypeReport& comparison, bool strict) {
  return (strict ? "NO: " : "not promised by fast numerics: ") + comparison.difference;
}

std::string_view self_verdict(bool passed, bool compared) {
  if (!passed) return "BROKEN: a promise does not hold, see above";
  if (!compared) return "verified: fused and unfused agree; neither is compared with float64";
  return "verified: every promise holds";
}

std::string self_text(const SelfReport& report) {
  TextTable facts("ll");
  facts.add({"text", tokens_text(report)});
  facts.add({"fused = unfused", comparison_text(report)});
  facts.add({"greedy tokens", generated_text(report)});
  facts.add({"against float64", precise_text(report)});
  if (std::exp(report.fused.mean_loss()) > kLargestVocabulary)
    facts.add({"",
               "a guess among all tokens is better: the model is not made for this text, which "
               "says nothing about the plans"});
  facts.add({"memory", memory_text(report)});
  facts.add({"time", times_text(report)});
  TextTable runs("lrrr");
  runs.add({"plan", "perplexity", "text tokens/s", "greedy tokens/s"});
  for (const auto& [name, run] : {std::pair("fused", &report.fused), {"unfused", &report.unfused}})
    runs.add({name, fmt::format("{:.7g}", std::exp(run->mean_loss())),
              fmt::format("{:.4g}", text_rate(report, *run)),
              fmt::format("{:.4g}", generated_rate(*run))});
  return fmt::format("{} on {}\n{}{}\n{}\n", to_string(report.dtype), report.device, facts.str(2),
                     runs.str(2), self_verdict(report.passed(), report.precise.has_value()));
}

std::string self_json(const SelfReport& report) {
  using Json = nlohmann::ordered_json;
  Json precise;
  if (report.precise)
    precise = {{"predictions", report.precise->predictions},
               {"loss", report.precise->precise},
               {"fused_loss", report.precise->fused},
               {"allowed", report.precise->allowed},
               {"holds", report.precise->holds()}};
  Json object = {{"passed", report.passed()},
                 {"dtype", to_string(report.dtype)},
                 {"device", report.device},
                 {"numerics", report.strict ? "strict" : "fast"},
                 {"text",
                  {{"random", report.random_text},
                   {"all_tokens", report.text_tokens},
                   {"tokens", report.tokens},
                   {"shortened", report.shortened}}},
                 {"bitwise", report.comparison.difference.empty()},
                 {"difference", report.comparison.difference},
                 {"values", report.comparison.values},
                 {"elements", report.comparison.elements},
                 {"calls", report.comparison.calls},
                 {"prompt_tokens", report.prompt_tokens},
                 {"prefill", prefill_json(report.prefill)},
                 {"fused", run_json(report, report.fused)},
                 {"unfused", run_json(report, report.unfused)},
                 {"float64", std::move(precise)},
                 {"float64_left_out", report.not_precise},
                 {"memory",
                  {{"weight_bytes", report.weight_bytes},
                   {"state_bytes", report.state_bytes},
                   {"host_peak_bytes", report.peak_bytes}}},
                 {"seconds",
                  {{"plans", report.plans_s},
                   {"fused_text", report.fused.text_s},
                   {"unfused_text", report.unfused.text_s},
                   {"float64", report.precise ? report.precise->seconds : 0}}}};
  return object.dump(2) + "\n";
}

}  // namespace sinter
