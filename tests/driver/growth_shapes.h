// Modules of any size in which something is repeated, as text.
#pragma once

#include <string>

namespace sinter::test {

/// A module with `n` of what the shape repeats.
struct Shape {
  const char* name;
  std::string (*text)(int n);
};

/// One value with many readers, and what may come of them.
extern const Shape kShapes[17];

}  // namespace sinter::test
