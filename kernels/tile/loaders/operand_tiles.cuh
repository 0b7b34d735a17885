// Tiles of both operands of a product in a stage, as boxes of their tensor maps bring them.
//
// Config: Element, Steps, kRows, kColumns, kDepth, kLength, kCluster, kPairs, kGroups, kTransposed
// and kSummedRows, as kernels/products/config.cuh says.
#pragma once

#include "kernels/isa/bar.cuh"
#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/loaders/boxes.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/tiles/work_tile.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// `Tiles` give the tile's first rows in the operands.
template <typename Config, typename Tiles>
class OperandTiles {
  static constexpr int kRows = Config::kRows, kColumns = Config::kColumns, kDepth = Config::kDepth;
  static constexpr bool kSummed = Config::kSummedRows > 0;
  static constexpr bool kSeveral = Config::kGroups > 0 && !kSummed;  // a matrix for each run
  static constexpr int kRowBytes = tile_bytes(kRows, kDepth);

 public:
  static constexpr int kBytes = kRowBytes + tile_bytes(kColumns, kDepth);
  // The steps of a sum over whole rows, a stage each.
  static constexpr int kSteps = (Config::kLength + kDepth - 1) / kDepth;

  explicit SINTER_DEVICE OperandTiles(unsigned char* stage) : stage_(stage) {}

  SINTER_DEVICE unsigned char* rows() const { return stage_; }
  SINTER_DEVICE unsigned char* columns() const { return stage_ + kRowBytes; }

  // Copies what step `step` of a tile's sums takes. Each block of a cluster, of which this is
  // number `rank`, copies its part of the rows to all of them; a box of x has the rows of a part.
  SINTER_DEVICE void fill(const TensorMap& x, const TensorMap& w, const WorkTile& tile, int step,
                          int rank, SharedAddress full) const {
    const int k = tile.first + first_element(tile, step), row = Tiles::first_matrix_row(tile);
    if constexpr (kSummed)
      copy_transposed<kRows, kDepth>(rows(), x, k, Tiles::first_row(tile), full);
    else
      copy_shared_rows<kRows, Config::kCluster>(rows(), x, k, tile.token, rank, full);
    if constexpr (Config::kTransposed)
      copy_transposed<kColumns, kDepth, kSeveral>(columns(), w, k, tile.matrix_row, full,
                                                  tile.group);
    else if constexpr (Config::kPairs > 0)
      copy_pairs<Config::kPairs>(columns(), w, k, row, full);
    else
      cp_async_bulk_tensor_2d(cvta_to_shared(columns()), w, k, row, full);
  }

  // Zeroes what the tiles have of rows behind the last of a run that is summed: 0 times a
  // neighbour's NaN is NaN. The warpgroups behind the first, which multiply, call it.
  SINTER_DEVICE void clear_neighbours(const WorkTile& tile, int step) const {
    if constexpr (!kSummed) return;
    const int left = tile.last - tile.first - first_element(tile, step);
    if (left >= kDepth) return;
    constexpr int of_row = kPanelRow / 16, threads = kWarpgroupThreads * kRows / 64;
    for (int i = static_cast<int>(threadIdx.x) - kWarpgroupThreads; i < kBytes / 16; i += threads)
      if (i / of_row % kDepth >= left) reinterpret_cast<uint4*>(stage_)[i] = make_uint4(0, 0, 0, 0);
    fence_proxy_async();
    bar_sync(1, threads);
  }

 private:
  // The first element of step `step` of a sum.
  static SINTER_DEVICE int first_element(const WorkTile& tile, int step) {
    return Config::Steps::at(step, Tiles::template steps_of<kSteps>(tile)) * kDepth;
  }

  unsigned char* stage_;
};

}  // namespace sinter
#endif
