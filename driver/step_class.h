// The kinds of work that a training step, or a token, is made of.
#pragma once

#include <string_view>

#include "plan/program.h"

namespace sinter {

/// A step has the first class that fits one of its ops: a kernel that joins a norm to a product is
/// a product.
enum class StepClass : uint8_t {
  attention,    // scores, results and gradients
  products,     // matrix products, by a library or by an own kernel
  loss,         // a row's sums and the element that a label names
  norms,        // reductions: norms, softmax, their gradients, gradients of biases
  activations,  // functions of elements: GELU, SiLU, gates and their gradients
  optimizer,    // moments and updates of parameters: elements with a square root
  elementwise,  // other arithmetic of elements: residuals, scales
  copies,       // moves and casts, rows of a table, new rows of a cache, values of other ranks
};
inline constexpr size_t kStepClasses = 8;

/// "attention", ...: in tables and JSON.
std::string_view to_string(StepClass step_class);

StepClass step_class(const Program& program, const Step& step);

}  // namespace sinter
