#include "driver/verify/self_limits.h"

#include <algorithm>

#include "driver/memory_use.h"
#include "driver/text_table.h"
#include "driver/verify/parts.h"
#include "ir/sym_expr.h"

namespace sinter {

int64_t affordable_tokens(const Program& program, double products) {
  return static_cast<int64_t>(std::min(products / std::max(weight_elements(program), 1.0), 1e9));
}

std::string why_not_precise(const Program& program, int64_t tokens, int64_t width, int64_t least,
                            const SelfLimits& limits) {
  if (tokens < least)
    return fmt::format("{} {:.2g} multiplications, the bound is {:.0e}",
                       least == 1 ? "1 token needs" : fmt::format("{} tokens need", least),
                       static_cast<double>(least) * weight_elements(program),
                       limits.precise_products);
  // All weights once more, one matrix in float64, and the results as float64 three times.
  double largest = 0, needed = 24.0 * static_cast<double>(tokens * width);
  for (const Weight& weight : program.weights) {
    largest = std::max(largest, static_cast<double>(volume(weight.type.dims).constant()));
    needed += static_cast<double>(storage_bytes(weight.type).constant());
  }
  needed += 8 * largest;
  const std::optional<int64_t> available = limits.memory ? limits.memory : available_memory();
  if (!available || needed <= static_cast<double>(*available)) return {};
  return fmt::format("it needs {} of the host's memory, {} are available", with_unit(needed, "B"),
                     with_unit(static_cast<double>(*available), "B"));
}

}  // namespace sinter
