// Delta debugging of a module: the smallest that still fails.
//
//   entry @main(%x: f32[N, 64], ...) -> (%y, %z) { 60 ops }
//   =>
//   entry @main(%a: f32[1, 2]) -> (%y) {
//     %y = exp %a : f32[1, 2]
//   }
//
// Every candidate is verified before it is asked about. The steps, until none makes the module
// smaller: entries, variants and results go; the failure's first op is searched by halving; ops go,
// many at a time and then one by one, and what read them reads an input, one of their operands or a
// constant; weights and states become inputs; extents, ranges of symbols, attributes and element
// types become simpler. Two runs with the same answers ask about the same candidates.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace sinter {

struct Reducible {
  Module module;
  /// A value for each symbol, which stays one that the symbol can have; empty: none are known.
  std::vector<int64_t> symbol_values;
};

/// What there is of a module.
struct ModuleSize {
  size_t entries = 0;
  size_t ops = 0;     // of all entries, without inputs, weights and states
  size_t leaves = 0;  // inputs, weights and states
};
ModuleSize size_of(const Module& module);

struct ReduceOptions {
  int64_t tries = -1;  // questions that are asked at most; -1: no limit
  /// Called with every smaller module that fails, and how many questions were asked so far. An
  /// error ends the search.
  std::function<Status(const Reducible& best, int64_t asked)> smaller;
};

/// The smallest module found. `fails` is asked about candidates, never about `start`, which fails.
Result<Reducible> reduce(Reducible start, const std::function<bool(const Reducible&)>& fails,
                         const ReduceOptions& options = {});

}  // namespace sinter
