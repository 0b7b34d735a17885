// The results of `verify --self`, for people and programs.
#pragma once

#include "driver/verify/self.h"

namespace sinter {

std::string self_text(const SelfReport& report);
/// One object: passed, dtype, device, numerics, text, bitwise, difference, values, elements, calls,
/// fused and unfused (perplexity, loss, tokens and their rates, arena_bytes), float64 (null, with
/// the reason in float64_left_out, where it was not computed), memory, seconds.
std::string self_json(const SelfReport& report);

std::string self_text(const EncoderReport& report);
/// One object like a language model's: calls is {count, lengths}, left_out says which calls were
/// not made, fused and unfused have tokens_per_s and arena_bytes, float64 has calls, tokens,
/// fused_rms, unfused_rms, allowed and holds.
std::string self_json(const EncoderReport& report);

/// Lines of both reports. How the values of the two plans differ, where they do:
std::string self_difference(const DTypeReport& comparison, bool strict);
/// The last line. `compared`: with float64.
std::string_view self_verdict(bool passed, bool compared);

}  // namespace sinter
