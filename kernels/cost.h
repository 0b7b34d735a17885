// The time of a launch, from the bytes that it moves and the blocks that move them.
#pragma once

#include <optional>

#include "kernels/group.h"

namespace sinter {

struct KernelCost {
  double seconds = 0;
  double blocks = 0;    // of the launch
  int64_t threads = 0;  // of a block
  bool on_chip = true;  // elements needed again stay in registers
};

/// A kernel of the group, each of its blocks at least `min_threads` wide, as its family has it.
/// nullopt: no configuration fits the device.
std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t min_threads = 1);

/// A group that has blocks of its own in a kernel.
struct PartView {
  Members members;
  const GroupShape& shape;
};
/// Time of a launch of these groups side by side, or of one alone. INFINITY: no configuration of
/// all of them fits the device.
double kernel_seconds(const FusionProblem& problem, llvm::ArrayRef<PartView> parts);

/// Bytes that a launch moves.
struct Moved {
  double streamed = 0;  // from and to memory: weights, states, and what the cache does not keep
  double passed = 0;    // from and to the second-level cache, between kernels
  Moved& operator+=(const Moved& other) {
    streamed += other.streamed;
    passed += other.passed;
    return *this;
  }
};
Moved moved(const FusionProblem& problem, Members members);

/// Time in seconds in which a full device moves the bytes. Half of the second-level cache keeps a
/// value from its writer to its reader: a smaller one is passed. Of one as large as the cache, read
/// in the order in which it was written, nothing is left when it is needed.
double memory_seconds(const DeviceDescription& device, const Moved& moved);
/// Time in seconds in which a full device computes what the members compute element by element, and
/// their reductions. Products and attention count in product_cost.
double arithmetic_seconds(const FusionProblem& problem, Members members);
/// Time in seconds of a launch of `blocks` blocks: of its bytes, or of `arithmetic` seconds of a
/// full device where these are more.
double launch_seconds(const DeviceDescription& device, double blocks, const Moved& moved,
                      double arithmetic = 0);

/// The elements of a tile that take as long as a row or a column of its operands, which are copied
/// and read from shared memory: tiles of 128 rows and columns are 5 % slower than tiles of 256
/// rows.
inline constexpr int64_t kElementsOfRow = 16;

/// The part of a product that one block computes at a time.
struct ProductWork {
  double blocks = 0;   // tiles of the result
  double slowest = 0;  // seconds of the multiprocessor that has most of them, without memory
  /// Loads that wait for one another in a block: operands, then what ends the tile.
  int round_trips = 3;
  bool stores_behind = false;  // the result leaves when the products of its tile have ended
};
/// Seconds of the multiprocessor that computes most tiles of this size.
double slowest_tiles(const DeviceDescription& device, DType operands, double tiles, double rows,
                     double columns, double length);
/// The cost of a kernel or a call around products: the bytes of the product, its operations or its
/// slowest multiprocessor, whatever takes longest; then its epilogue, which begins when a tile's
/// products have ended, so that its loads and its arithmetic take time of their own.
KernelCost product_cost(const GroupView& group, const ProductWork& work, int64_t threads = 0);
/// The cost for families that neighbours cannot join: a full device moves the group's bytes.
std::optional<KernelCost> streaming_cost(const GroupView& group, int64_t min_threads);

}  // namespace sinter
