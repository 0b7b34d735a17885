// Random uses of every op that has a gradient.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "differential/random.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// One use of an op as text IR, with the symbols N and M, of which M is at most N.
struct OpUse {
  std::string parameters, ops;          // the result is %y
  double low = -2, high = 2;            // of float inputs
  std::vector<std::string> below = {};  // i32 inputs, in order, are less than these extents
  std::vector<HostTensor> packed = {};  // matrices of codes, i32 inputs in the place of the first
};
/// Draws types, shapes and attributes.
OpUse random_use(std::string_view op, Random& random);

/// All ops with a rule or a decomposition.
std::vector<std::string_view> differentiable_ops();

}  // namespace sinter
