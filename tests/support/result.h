// Helpers for a Result that must not be an error.
#pragma once

#include <doctest/doctest.h>

#include "ir/error.h"

namespace sinter {

/// The value; an error ends the test case with its message.
template <typename T>
T value(Result<T> result) {
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message()));
  return std::move(*result);
}

inline void require(const Status& status) {
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().message()));
}

}  // namespace sinter
