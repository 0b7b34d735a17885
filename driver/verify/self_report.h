// The results of `verify --self`, for people and programs.
#pragma once

#include "driver/verify/self.h"

namespace sinter {

std::string self_text(const SelfReport& report);
/// One object: passed, dtype, device, numerics, text, bitwise, difference, values, elements, calls,
/// fused and unfused (perplexity, loss, tokens and their rates, arena_bytes), float64 (null, with
/// the reason in float64_left_out, where it was not computed), memory, seconds.
std::string self_json(const SelfReport& report);

}  // namespace sinter
