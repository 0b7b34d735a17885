// A profile as a page, for driver/page/measured.js.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/page/page.h"
#include "driver/profile/report.h"
#include "ir/c_locale.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

// Launches of a time line; later ones are left out, so that a page stays small.
constexpr size_t kMaxShownLaunches = 20000;

}  // namespace

std::string profile_page_json(const Profile& profile) {
  const CLocale numbers_with_a_point;
  Json json = Json::parse(profile_json(profile));
  json.erase("steps");
  std::map<std::string, size_t> row_of;
  for (size_t i = 0; i < profile.rows.size(); ++i) row_of[profile.rows[i].title] = i;
  const ProfileRun& run = profile.matched ? profile.recorded : profile.stepped;
  Json launches = Json::array();  // [start, seconds, row or -1, stream] of the last token
  size_t left_out = 0;
  if (!run.tokens.empty()) {
    const std::vector<ProfiledKernel>& kernels = run.tokens.back().kernels;
    uint64_t begin = UINT64_MAX;
    for (const ProfiledKernel& kernel : kernels) begin = std::min(begin, kernel.record.start_ns);
    for (const ProfiledKernel& kernel : kernels) {
      if (launches.size() == kMaxShownLaunches) {
        ++left_out;
        continue;
      }
      const KernelRecord& record = kernel.record;
      int64_t row = -1;
      if (kernel.step < profile.steps.size())
        if (const auto at = row_of.find(profile.steps[kernel.step].title); at != row_of.end())
          row = static_cast<int64_t>(at->second);
      launches.push_back(
          {static_cast<double>(record.start_ns - begin) * 1e-9,
           static_cast<double>(std::max(record.end_ns, record.start_ns) - record.start_ns) * 1e-9,
           row, record.stream});
    }
  }
  json["launches"] = std::move(launches);
  json["launches_left_out"] = left_out;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string profile_html(const Profile& profile) {
  const CLocale numbers_with_a_point;
  const Json json = {{"sinter", SINTER_VERSION},
                     {"profile", Json::parse(profile_page_json(profile))}};
  return page(profile.model + ": " + profile.phase, "measured.js",
              json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace sinter
