#include <nlohmann/json.hpp>

#include "driver/text_table.h"
#include "driver/verify/invariant.h"

namespace sinter {

std::string invariant_text(const InvariantReport& report) {
  TextTable table("lrrl");
  table.add({"way", "calls", "tokens", "against the text alone"});
  for (const InvariantWay& way : report.ways)
    table.add({way.name, std::to_string(way.calls), std::to_string(way.tokens),
               way.difference.empty() ? "equal" : "NO: " + way.difference});
  std::string text = fmt::format("{} on {}, seeded texts of {} tokens\n{}", to_string(report.dtype),
                                 report.device, fmt::join(report.texts, ", "), table.str(2));
  if (!report.left_out.empty()) text += fmt::format("  not computed: {}\n", report.left_out);
  return text + (report.passed()
                     ? "verified: a token's bits depend on its own sequence alone\n"
                     : "BROKEN: a token's bits depend on more than its own sequence, see above\n");
}

std::string invariant_json(const InvariantReport& report) {
  using Json = nlohmann::ordered_json;
  Json ways = Json::array();
  for (const InvariantWay& way : report.ways)
    ways.push_back({{"way", way.name},
                    {"calls", way.calls},
                    {"tokens", way.tokens},
                    {"equal", way.difference.empty()},
                    {"difference", way.difference}});
  const Json object = {{"passed", report.passed()}, {"dtype", to_string(report.dtype)},
                       {"device", report.device},   {"texts", report.texts},
                       {"ways", std::move(ways)},   {"left_out", report.left_out},
                       {"seconds", report.seconds}};
  return object.dump(2) + "\n";
}

}  // namespace sinter
