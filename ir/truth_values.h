// Elements of i1 in memory: bytes 0 and 1. Code that computes with truth values relies on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace sinter {

/// The first byte among elements of i1 that is neither 0 nor 1; nullopt: there is none.
inline std::optional<size_t> find_no_truth(std::span<const std::byte> elements) {
  const auto bad = std::find_if(elements.begin(), elements.end(),
                                [](std::byte element) { return element > std::byte{1}; });
  if (bad == elements.end()) return std::nullopt;
  return static_cast<size_t>(bad - elements.begin());
}

}  // namespace sinter
