// The order in which `cumulative_sum` adds the elements of a row: the same text on host and device,
// whatever the number of threads and blocks.
//
// A row of n elements is read from its first element on; from its last one if `reverse`: its i-th
// element is then x[n - 1 - i], and nothing else changes. It is cut into chunks of 8 elements, 32
// chunks are a group (256 elements), 16 groups a tile (4096). The last of each may be shorter: what
// follows an element takes no part in its sum.
//
//   in a chunk   p_0 = x_0, p_e = p_{e-1} + x_e. The chunk's total is p_7.
//   in a group   v_l begins as the total of chunk l. At level k = 0, 1 .. 4 every v_l whose number
//                l has bit k set becomes v_s + v_l, s = (l >> k << k) - 1: the last chunk of the
//                2^k chunks before (Sklansky 1960). So v_l is the sum of the chunks 0 .. l; the
//                group's total is v_31.
//   in a tile    g = +0; g becomes g + total, group by group.
//   in a row     t = +0; at the end of a tile t becomes t + g.
//
// With t and g as they are before the group, chunk l begins with b = (t + g) + v_{l-1}, where
// v_{-1} is +0. Element e is b + p_e; of an exclusive sum it is b + p_{e-1}, and b for e = 0.
// Sums are float32, rounded once to the element type, or int32 with wrap-around.
//
// The longest chain of additions that an element of a row of n elements passes has
// scan_additions(n) links.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kScanChunk = 8;    // elements
constexpr int kScanLanes = 32;   // chunks of a group
constexpr int kScanLevels = 5;   // 2^5 chunks
constexpr int kScanGroups = 16;  // groups of a tile
constexpr int kScanGroup = kScanChunk * kScanLanes;
constexpr int kScanTile = kScanGroup * kScanGroups;
constexpr int kMaxScanned = 1 << 20;  // elements of a row
constexpr int kMaxScanTiles = kMaxScanned / kScanTile;

SINTER_DEVICE float scan_add(float a, float b) { return math::add(a, b); }
SINTER_DEVICE int scan_add(int a, int b) { return math::add(a, b); }
#ifndef __CUDACC_RTC__
inline double scan_add(double a, double b) { return a + b; }
#endif

/// Whether chunk `l` of a group adds at a level.
SINTER_DEVICE constexpr bool scan_adds(int l, int level) { return (l >> level & 1) != 0; }
/// The chunk whose sum it then adds ahead of its own.
SINTER_DEVICE constexpr int scan_source(int l, int level) { return (l >> level << level) - 1; }

/// Where the i-th element of a row stands: its own mirror image if the sum is reverse.
SINTER_DEVICE constexpr long long scan_position(long long i, long long n, bool reverse) {
  return reverse ? n - 1 - i : i;
}

/// Additions between an element of a row and a result, at most: of a chunk, of a group, of the
/// groups of a tile, of the tiles, and the three that join these.
SINTER_DEVICE constexpr long long scan_additions(long long n) {
  const long long groups = (n + kScanGroup - 1) / kScanGroup;
  const long long tiles = (n + kScanTile - 1) / kScanTile;
  return (kScanChunk - 1) + kScanLevels + (groups < kScanGroups ? groups : kScanGroups) + tiles + 3;
}

/// The sums before a group of a row. Groups are passed in order, and a tile at its end.
template <typename Sum>
struct ScanCarry {
  Sum tiles = Sum(0), groups = Sum(0);

  /// The sum that chunk l begins with; `chunks`: v_{l-1}.
  SINTER_DEVICE Sum before(Sum chunks) const { return scan_add(scan_add(tiles, groups), chunks); }
  SINTER_DEVICE void pass_group(Sum total) { groups = scan_add(groups, total); }
  SINTER_DEVICE void pass_tile() {
    tiles = scan_add(tiles, groups);
    groups = Sum(0);
  }
  /// Group `number` of the row, which ends a tile where it is the last of one.
  SINTER_DEVICE void pass_group(Sum total, int number) {
    pass_group(total);
    if (number % kScanGroups == kScanGroups - 1) pass_tile();
  }
};

}  // namespace sinter
