// `cumulative_sum` along the last axis: rows of neighbouring elements.
//
// Short rows have some lanes of a warp, others a warp, which walks its row in steps of a few groups
// and keeps what is summed in registers. Where rows are too few for that, a block of 16 warps has a
// row: a warp has the same group of each of a step's tiles. Where they are too few for blocks, the
// blocks of a cluster have a row: each sums its segment's tiles and gives the sums to the others,
// and then reads its segment again. The next step's loads are issued before a step is added.
//
// Config, beside the row's: kLanes (a power of two, fewer than 32 only where no row has more
// chunks), kWarps of a row, 1 or 16, kGroups of a warp's step, kThreads of a block, kSegments of a
// row, which the blocks of a cluster take, or one block one after the other.
#pragma once

#include "kernels/isa/cluster.cuh"
#include "kernels/scan/scan.cuh"

namespace sinter {

template <typename Config>
struct ScanShared {
  using Sum = typename ScanTypes<typename Config::Element>::Sum;
  Sum groups[2][Config::kGroups][kScanGroups];  // of the steps of even and of odd number
  float tiles[kMaxScanTiles];                   // bits of a Sum
};

template <typename Config>
class RowScan {
  static_assert(Config::kWarps == 1 || (Config::kWarps == kScanGroups && Config::kLanes == 32));
  static_assert(Config::kSegments == 1 || Config::kWarps > 1);
  static_assert(kMaxScanTiles % Config::kGroups == 0 && kScanGroups % Config::kGroups == 0);

 public:
  using T = typename Config::Element;
  using Row = ScanRow<T, Config::kReverse, Config::kAligned>;
  using Sum = typename Row::Sum;
  static constexpr int kLanes = Config::kLanes, kWarps = Config::kWarps;
  static constexpr int kGroups = Config::kGroups, kSegments = Config::kSegments;

  // `stored`: the row is this thread's own, not one that stands in for a row after the last.
  SINTER_DEVICE RowScan(const Row& row, bool stored, ScanShared<Config>* shared)
      : row_(row),
        stored_(stored),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % kLanes),
        warp_(kWarps == 1 ? 0 : static_cast<int>(threadIdx.x) / 32) {
    const int groups = (row.n + kScanGroup - 1) / kScanGroup;
    steps_ = (groups + kWarps * kGroups - 1) / (kWarps * kGroups);
  }

  SINTER_DEVICE void run_alone() { scan(0, steps_); }

  // Scans the segments of the row that this block has: rank, rank + blocks, ...
  SINTER_DEVICE void run_segments(int rank, int blocks) {
    const int segment = (steps_ + kSegments - 1) / kSegments;
    for (int p = rank; p < kSegments - 1; p += blocks)  // the last segment's sum nobody wants
      sum(min(p * segment, steps_), min((p + 1) * segment, steps_), blocks);
    if (blocks > 1) {
      barrier_cluster_arrive();
      barrier_cluster_wait();
    } else {
      __syncthreads();
    }
    for (int p = rank; p < kSegments; p += blocks) {
      const int begin = min(p * segment, steps_);
      carry_ = ScanCarry<Sum>();
#pragma unroll 8
      for (int tile = 0; tile < begin * kGroups; ++tile)
        carry_.tiles = scan_add(carry_.tiles, from_word(static_cast<const Sum*>(nullptr),
                                                        math::float_bits(shared_->tiles[tile])));
      scan(begin, min((p + 1) * segment, steps_));
    }
  }

 private:
  using Chunk = typename Row::Chunk;
  static constexpr int kLast = kLanes - 1;

  // The j-th group of this warp in a step.
  SINTER_DEVICE int group(int step, int j) const { return (step * kGroups + j) * kWarps + warp_; }
  SINTER_DEVICE int chunk(int step, int j) const { return group(step, j) * kScanLanes + lane_; }
  SINTER_DEVICE void load(Chunk (&out)[kGroups], int step) const {
#pragma unroll
    for (int j = 0; j < kGroups; ++j) row_.load(out[j], chunk(step, j));
  }

  // Calls use(step, chunks) for each, with the next one's chunks on their way.
  template <typename Use>
  SINTER_DEVICE void walk(int begin, int end, const Use& use) {
    if (begin >= end) return;
    Chunk next[kGroups];
    load(next, begin);
    for (int step = begin; step < end; ++step) {
      Chunk chunks[kGroups];
#pragma unroll
      for (int j = 0; j < kGroups; ++j) chunks[j] = next[j];
      if (step + 1 < end) load(next, step + 1);
      use(step, chunks);
    }
  }

  // The sums of the chunks before this lane's in its groups. The groups' totals are left in
  // `totals`, or for a block of several warps in shared memory.
  SINTER_DEVICE void sum_groups(Sum (&before)[kGroups], Sum (&totals)[kGroups],
                                const Chunk (&chunks)[kGroups]) {
    odd_ = !odd_;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const Sum sum = scan_lanes<kLanes>(Row::total(chunks[j]), lane_);
      before[j] = lane_before<kLanes>(sum, lane_);
      if constexpr (kWarps == 1)
        totals[j] = __shfl_sync(0xffffffffu, sum, kLast, kLanes);
      else if (lane_ == kLast)
        shared_->groups[odd_][j][warp_] = sum;
    }
    if constexpr (kWarps > 1) __syncthreads();
  }

  // Gives the sums of the steps' tiles to all blocks of the row.
  SINTER_DEVICE void sum(int begin, int end, int blocks) {
    const int thread = static_cast<int>(threadIdx.x);
    walk(begin, end, [&](int step, const Chunk(&chunks)[kGroups]) {
      Sum before[kGroups], totals[kGroups];
      sum_groups(before, totals, chunks);
      if (thread >= kGroups * blocks) return;
      const int j = thread % kGroups;
      ScanCarry<Sum> tile;
      for (int w = 0; w < kWarps; ++w) tile.pass_group(shared_->groups[odd_][j][w]);
      float* own = &shared_->tiles[step * kGroups + j];
      const float bits = math::bits_float(to_word(tile.groups));
      if (blocks > 1)
        st_shared_cluster<kSegments>(own, thread / kGroups, bits);
      else
        *own = bits;
    });
  }

  SINTER_DEVICE void scan(int begin, int end) {
    walk(begin, end, [&](int step, const Chunk(&chunks)[kGroups]) {
      Sum before[kGroups], totals[kGroups];
      sum_groups(before, totals, chunks);
#pragma unroll
      for (int j = 0; j < kGroups; ++j) {
        Sum base = Sum(0);
        if constexpr (kWarps == 1) {
          base = carry_.before(before[j]);
          carry_.pass_group(totals[j], group(step, j));
        } else {
#pragma unroll
          for (int w = 0; w < kWarps; ++w) {
            if (w == warp_) base = carry_.before(before[j]);
            carry_.pass_group(shared_->groups[odd_][j][w]);
          }
          carry_.pass_tile();
        }
        Sum out[8];
        Row::template results<Config::kExclusive>(out, chunks[j], base);
        if (stored_) row_.store(out, chunk(step, j));
      }
    });
  }

  const Row row_;
  const bool stored_;
  ScanShared<Config>* const shared_;
  const int lane_, warp_;
  int steps_;
  int odd_ = 1;
  ScanCarry<Sum> carry_;
};

template <typename Config>
SINTER_DEVICE typename RowScan<Config>::Row scanned_row(const typename Config::Element* x,
                                                        long long stride,
                                                        typename Config::Element* y, long long n,
                                                        long long row) {
  return {x + row * stride, y + row * n, static_cast<int>(n)};
}

// Rows of n elements, `stride` apart in x and dense in y; several rows a block.
template <typename Config>
SINTER_DEVICE void scan_rows(const typename Config::Element* x, long long stride,
                             typename Config::Element* y, long long rows, long long n) {
  if (n == 0) return;
  constexpr int of_block = Config::kThreads / Config::kLanes;
  const long long row =
      static_cast<long long>(blockIdx.x) * of_block + threadIdx.x / Config::kLanes;
  const bool own = row < rows;
  const auto taken = scanned_row<Config>(x, stride, y, n, own ? row : rows - 1);
  RowScan<Config>(taken, own, nullptr).run_alone();
}

// The same by a block for each row, or the blocks of a cluster.
template <typename Config>
SINTER_DEVICE void scan_long_rows(const typename Config::Element* x, long long stride,
                                  typename Config::Element* y, long long n,
                                  ScanShared<Config>& shared) {
  if (n == 0) return;
  if constexpr (Config::kSegments == 1) {
    RowScan<Config>(scanned_row<Config>(x, stride, y, n, blockIdx.x), true, &shared).run_alone();
  } else {
    const int blocks = cluster_nctaid_x();
    if (blocks > 1) {  // all have begun, their memory is there
      barrier_cluster_arrive_relaxed();
      barrier_cluster_wait();
    }
    const int number = static_cast<int>(blockIdx.x);
    RowScan<Config>(scanned_row<Config>(x, stride, y, n, number / blocks), true, &shared)
        .run_segments(number % blocks, blocks);
  }
}

}  // namespace sinter
