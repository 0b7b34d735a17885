// The numerical guarantees of a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinter {

enum class Numerics : uint8_t {
  strict,  // fused = unfused, bit for bit
  fast,    // inside a kernel or a call values stay in float32: as close to float64 as unfused
};

constexpr std::string_view to_string(Numerics numerics) {
  return numerics == Numerics::strict ? "strict" : "fast";
}

constexpr std::optional<Numerics> parse_numerics(std::string_view text) {
  for (Numerics numerics : {Numerics::strict, Numerics::fast})
    if (text == to_string(numerics)) return numerics;
  return std::nullopt;
}

}  // namespace sinter
