#include "cli/stage_lines.h"

#include <fmt/format.h>

namespace sinter {

std::optional<std::string> StageLines::due(Time now) {
  if (stage_.empty() || now - last_ < interval_) return std::nullopt;
  last_ = now;
  const std::chrono::duration<double> passed = now - start_;
  return fmt::format("{} ... {:.0f} s", stage_, passed.count());
}

}  // namespace sinter
