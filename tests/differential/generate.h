// Random modules that the verifier accepts, small enough to run thousands of.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "kernels/recipe.h"

namespace sinter {

/// A module of one entry `main` and values for its symbols.
struct Case {
  Module module;
  std::vector<int64_t> symbol_values;
  Recipe recipe = {};
};

/// The case of a seed: always the same. 12 to 80 ops of every kind in every element type that is
/// legal, sizes from 0 to some hundreds, constants and symbols with values up to the ends of their
/// ranges; constants that are large, infinite and NaN; chains of views, diamonds, values with many
/// readers, computed row numbers, states that are read and then written, results that are used,
/// repeated, or inputs; parts of transformer blocks, so that the usual fusions occur, half of them
/// of at most 8 tokens, as a decoding step has. Most sizes are a few usual ones, so that cases have
/// kernels in common. generate_test.cpp says how often each occurs.
Case generate(uint64_t seed);

/// The first case with a quantized matrix among the cases of seeds that follow from this one
/// (`--graphs quantized`).
Case generate_quantized(uint64_t seed);

/// The case of a seed of one to three products of 16-bit elements, of up to 1 to 290 tokens or of
/// 300 to 384, by Sinter's own kernels (`--products own`) and matrices or their transposes: biases,
/// residuals, activations, casts, SiLU(gate) · up, rotations, writes to caches and sums down the
/// rows are in their epilogues.
Case generate_own_products(uint64_t seed);

/// The case of a seed around gradients of attention of a 16-bit type, as a rule all three: with
/// grouped heads, windows, packed sequences and cross-attention. At most ten ops beside them.
Case generate_attention_gradients(uint64_t seed);

/// The generator of a name that the programs' option --graphs takes; empty: generate().
using Generate = Case (*)(uint64_t seed);
Generate generator_of(std::string_view name);
inline constexpr std::string_view kGradientGraphs = "attention_gradients";
inline constexpr std::string_view kQuantizedGraphs = "quantized";

}  // namespace sinter
