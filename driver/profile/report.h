// A profile for people, for programs, and for a viewer of timelines.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "driver/profile/profile.h"

namespace sinter {

/// The token's time and its parts, what crosses the bus, and the table of kernels.
std::string profile_text(const Profile& profile);
/// The same with all numbers, launch configurations and the device's function names.
std::string profile_json(const Profile& profile);
/// The member "experts" of a model that has some; of bench_json(), too.
nlohmann::ordered_json step_experts_json(const StepExperts& step);
/// A page (driver/page): time by kernel and by class, a roofline, the launches of the last token.
std::string profile_html(const Profile& profile);
/// Its data: profile_json() without the steps, with the launches.
std::string profile_page_json(const Profile& profile);
/// Both runs in the trace event format that Perfetto (ui.perfetto.dev) and chrome://tracing open: a
/// process for each run, a track for each stream, an event for each kernel and copy.
std::string profile_trace(const Profile& profile);

}  // namespace sinter
