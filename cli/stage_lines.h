// Lines about long work where no terminal shows it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace sinter {

class StageLines {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Between two lines there are `interval` seconds, and before the first one.
  StageLines(std::chrono::duration<double> interval, Time start)
      : interval_(interval), start_(start), last_(start) {}

  /// The work that goes on from now on; empty: none.
  void set_stage(std::string stage) { stage_ = std::move(stage); }
  /// Another line was written.
  void line_written(Time now) { last_ = now; }
  /// The line that is due, with the time since the start; it counts as written.
  std::optional<std::string> due(Time now);

 private:
  std::chrono::duration<double> interval_;
  Time start_, last_;
  std::string stage_;
};

}  // namespace sinter
