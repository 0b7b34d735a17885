// A benchmark as a page, for driver/page/measured.js.
#include <nlohmann/json.hpp>

#include "driver/bench/report.h"
#include "driver/page/page.h"
#include "driver/profile/report.h"
#include "ir/c_locale.h"

namespace sinter {

std::string bench_html(const BenchReport& report, const SavedBench* against) {
  using Json = nlohmann::ordered_json;
  const CLocale numbers_with_a_point;
  // The texts are Sinter's own, so that parsing them again cannot fail.
  Json json = {{"sinter", SINTER_VERSION}, {"bench", Json::parse(bench_json(report))}};
  json["bench"].erase("decode_kernels");
  if (report.decode) json["profile"] = Json::parse(profile_page_json(*report.decode));
  if (against) {
    Json there = Json::array();
    for (const BenchCase& one : report.cases) {
      const SavedCase* saved = against->find(one);
      there.push_back(saved ? Json{saved->fused_s, saved->unfused_s} : Json());
    }
    json["against"] = {{"model", against->model}, {"device", against->device}, {"cases", there}};
  }
  return page(report.model + ": benchmark", "measured.js",
              json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace sinter
