#include <nlohmann/json.hpp>

#include "driver/bisect/bisect.h"
#include "driver/shell_word.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

std::string amount(int64_t count, std::string_view noun) {
  return counted(static_cast<uint64_t>(count), noun);
}

std::string fusion_text(const NumberedFusion& fusion) {
  return fmt::format("fusion {} of entry {}: {} with {}{}", fusion.number, printable(fusion.title),
                     printable(fusion.a), printable(fusion.b),
                     fusion.horizontal ? ", side by side in one launch" : "");
}

std::string guilty_text(const GuiltyFusions& guilty) {
  std::string text = guilty.fusions.size() == 1 ? "guilty: " : "guilty together:\n  ";
  for (size_t i = 0; i < guilty.fusions.size(); ++i)
    text += (i == 0 ? "" : "  ") + fusion_text(guilty.fusions[i]) + "\n";
  std::vector<std::string> ops;
  for (const std::string& op : guilty.ops) ops.push_back(printable(op));
  text += fmt::format("  kernel of {}\n", fmt::join(ops, ", "));
  if (guilty.difference)
    text += fmt::format("  entry {}, call {}: {}\n", printable(guilty.difference->entry),
                        guilty.difference->call, to_string(*guilty.difference));
  if (!guilty.failure.empty()) text += fmt::format("  {}\n", printable(guilty.failure, 1000));
  if (guilty.fusions.size() == 1 && !guilty.fusions[0].a.empty())
    text += line_with_words("  without it: --forbid " +
                                shell_word(guilty.fusions[0].a + "," + guilty.fusions[0].b),
                            4096) +
            "\n";
  if (!guilty.reproducer) return text;
  const Reproducer& made = *guilty.reproducer;
  text += fmt::format("  reproducer {}: {}\n", printable(made.folder, 4096),
                      made.fails ? "fails alone"
                                 : "does NOT fail alone: the plan around it is "
                                   "needed");
  if (made.fails) text += fmt::format("    {}\n", printable(made.difference, 1000));
  text += fmt::format("    {} of inputs, {} of the model's {} of weights\n    {}\n",
                      amount(static_cast<int64_t>(made.input_bytes), "byte"), made.weight_bytes,
                      amount(static_cast<int64_t>(made.model_weight_bytes), "byte"),
                      line_with_words(made.command, 4096));
  return text;
}

std::string_view verdict_name(BisectReport::Verdict verdict) {
  switch (verdict) {
    case BisectReport::Verdict::right:
      return "right";
    case BisectReport::Verdict::fusion:
      return "fusion";
    case BisectReport::Verdict::choice:
      return "choice";
    case BisectReport::Verdict::other:
      return "other";
  }
  return "";
}

}  // namespace

std::string bisect_text(const BisectReport& report) {
  std::string text;
  if (report.flaky)
    text += fmt::format(
        "the fault is flaky: wrong in {} of {} of the fused plan; a plan counts as right after "
        "{}\n",
        report.wrong_runs, amount(report.sampled_runs, "run"), amount(report.runs_each, "run"));
  switch (report.verdict) {
    case BisectReport::Verdict::right:
      text += fmt::format("no fusion is guilty: the fused plan is right in {}\n",
                          amount(report.runs, "run"));
      break;
    case BisectReport::Verdict::choice:
      text += fmt::format("it is not fusion: with {} the plan is right\n", report.choice);
      break;
    case BisectReport::Verdict::other:
      text +=
          "it is not fusion: the unfused plan is wrong too, and so are plans with other orders and "
          "kernels\n";
      break;
    case BisectReport::Verdict::fusion:
      for (const GuiltyFusions& guilty : report.guilty) text += guilty_text(guilty);
      if (report.guilty.empty())
        text += "the fused plan is wrong now and then, and no fusion was found guilty\n";
      break;
  }
  return text +
         fmt::format("{} of {}, {}{}\n", amount(report.checks, "check"),
                     amount(report.fusions, "fusion"), amount(report.runs, "run"),
                     report.known == 0 ? "" : fmt::format(", {} known before", report.known));
}

std::string bisect_json(const BisectReport& report, bool with_text) {
  using Json = nlohmann::ordered_json;
  Json guilty = Json::array();
  for (const GuiltyFusions& one : report.guilty) {
    Json item, fusions = Json::array();
    for (const NumberedFusion& fusion : one.fusions)
      fusions.push_back({{"number", fusion.number},
                         {"entry", printable(fusion.title)},
                         {"a", printable(fusion.a)},
                         {"b", printable(fusion.b)},
                         {"horizontal", fusion.horizontal}});
    item["fusions"] = std::move(fusions);
    item["ops"] = one.ops;
    if (const auto& difference = one.difference)
      item["difference"] = {{"entry", printable(difference->entry)},
                            {"call", difference->call},
                            {"value", printable(difference->value)},
                            {"index", difference->index},
                            {"fused", fmt::format("{}", difference->bits.a)},
                            {"unfused", fmt::format("{}", difference->bits.b)},
                            {"fused_bits", fmt::format("0x{:x}", difference->bits.a_bits)},
                            {"unfused_bits", fmt::format("0x{:x}", difference->bits.b_bits)},
                            {"elements", difference->bits.count},
                            {"of", difference->bits.volume}};
    if (!one.failure.empty()) item["failure"] = printable(one.failure, 1000);
    if (const auto& made = one.reproducer)
      item["reproducer"] = {{"folder", made->folder},
                            {"command", made->command},
                            {"fails_alone", made->fails},
                            {"difference", printable(made->difference, 1000)},
                            {"input_bytes", made->input_bytes},
                            {"weight_bytes", made->weight_bytes},
                            {"model_weight_bytes", made->model_weight_bytes}};
    guilty.push_back(std::move(item));
  }
  Json json = {{"verdict", verdict_name(report.verdict)},
               {"choice", report.choice},
               {"guilty", std::move(guilty)},
               {"fusions", report.fusions},
               {"checks", report.checks},
               {"runs", report.runs},
               {"known", report.known},
               {"flaky", report.flaky}};
  if (report.flaky) {
    json["wrong_runs"] = report.wrong_runs;
    json["sampled_runs"] = report.sampled_runs;
    json["runs_each"] = report.runs_each;
  }
  if (with_text) json["text"] = bisect_text(report);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sinter
