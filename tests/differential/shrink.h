// Makes a failing case small enough to read.
#pragma once

#include <functional>

#include "differential/generate.h"

namespace sinter {

/// Drops results and ops, and makes extents smaller, as long as `fails` stays true; gives up after
/// `tries` calls of it. The result is verified, like everything that `fails` is asked about.
Case shrink(Case test, int tries, const std::function<bool(const Case&)>& fails);

}  // namespace sinter
