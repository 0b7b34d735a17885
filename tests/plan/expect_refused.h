// The checker's message about a program that is not safe.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plan/checker.h"

namespace sinter::test {

/// The message must contain all of `parts`.
inline void expect_refused(const Program& program, const std::vector<std::string>& parts) {
  const Status status = check(program);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::check_failed);
  for (const std::string& part : parts) {
    CAPTURE(status.error().message());
    CHECK(status.error().message().find(part) != std::string::npos);
  }
}

}  // namespace sinter::test
