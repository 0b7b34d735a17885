// Which kernels may compute the ops that several could: what a caller asks for, and what the target
// rules out. Families take no op that a recipe denies them (Choosing::choose).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sinter {

struct Recipe {
  /// Products of 16-bit elements of many tokens.
  enum class Products : uint8_t {
    automatic,  // by kernels of Sinter's own where they gain, else by the library
    library,
    own,
  };
  /// Attention of many tokens.
  enum class Attention : uint8_t {
    tiled,     // one kernel
    composed,  // op by op
    relaxed,   // one kernel, also where primitives round its scores (recognize_attention)
  };
  /// How a product of a 16-bit type reads a matrix of codes.
  enum class Codes : uint8_t {
    as_written,  // rounded to the other operand's type where the graph rounds it
    rounded,     // always rounded to it
    unrounded,   // never
  };
  Products products = Products::automatic;
  Attention attention = Attention::tiled;
  Codes codes = Codes::as_written;
  /// An op of a token has one order of operations, however many tokens and sequences a call has: no
  /// family takes it for few tokens alone, and no product is the library's (docs/invariance.md).
  bool invariant = false;
  /// The target multiplies tiles by warpgroups (wgmma).
  bool has_wgmma = true;

  bool operator==(const Recipe&) const = default;
};

constexpr std::string_view to_string(Recipe::Products products) {
  constexpr std::string_view kNames[] = {"auto", "library", "own"};
  return kNames[static_cast<size_t>(products)];
}
constexpr std::optional<Recipe::Products> parse_products(std::string_view text) {
  using enum Recipe::Products;
  for (Recipe::Products products : {automatic, library, own})
    if (text == to_string(products)) return products;
  return std::nullopt;
}

constexpr std::string_view to_string(Recipe::Attention attention) {
  constexpr std::string_view kNames[] = {"tiled", "composed", "relaxed"};
  return kNames[static_cast<size_t>(attention)];
}
constexpr std::optional<Recipe::Attention> parse_attention(std::string_view text) {
  using enum Recipe::Attention;
  for (Recipe::Attention attention : {tiled, composed, relaxed})
    if (text == to_string(attention)) return attention;
  return std::nullopt;
}

}  // namespace sinter
