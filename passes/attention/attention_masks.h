// Masks of attention that are functions of positions become ranges of keys:
//
//   %m = less_equal %k, %q          k, q: iota along the axes of keys and tokens
//   %y = attention %q, %keys, %values, %zero, %all, %m {...}
//   =>
//   %y = attention %q, %keys, %values, %zero, %q {any_range = 1, ...}
//
// Masks of log-sums and of gradients, which have no sink, become ranges too. A mask is read as a
// conjunction. Conditions that leave each token of a sequence one range of keys, for all values of
// the symbols, become the operands first and slot: comparisons of the key's position with positions
// or with values that are given for each token. A constant number of leading keys beside that range
// becomes the attribute `sink`. What is left stays the mask. A mask of numbers is read as one of
// truth values where it has 0 and -inf alone; a finite number below -2^100 counts as -inf where
// every token is known to see a key.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool attention_masks(Module& module);

}  // namespace sinter
