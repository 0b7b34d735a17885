// Chains of products by mma.sync and by wgmma, and by wgmma with the operands exchanged, of the
// same random operands: invariant plans mix them, since all three add in the same order.
#pragma once

#include "kernels/isa/mma.cuh"
#include "kernels/tile/sums/wgmma.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

struct ComparedOrdersMemory {
  alignas(1024) unsigned char a[tile_bytes(64, 64)], b[tile_bytes(64, 64)];
  float exchanged[64][64 + 1];
};

// `Steps`: the order of mma's steps in a stage.
template <typename T, typename Steps = AscendingSteps>
class ComparedOrders {
  static constexpr int kSide = 64, kStages = 8;  // rows and columns; K is 64 kStages

 public:
  // Adds to *differing the sums, of kSide² for either comparison, that have other bits than
  // wgmma's. The block is one warpgroup. Operands are ± 2^u, u in -8 .. 8, so that every order of
  // additions has other roundings.
  // `memory`: the block's shared memory.
  SINTER_DEVICE void run(unsigned* differing, ComparedOrdersMemory& memory) {
    unsigned char *const a = memory.a, *const b = memory.b;
    float(&exchanged)[kSide][kSide + 1] = memory.exchanged;
    float sums[kSide / 2] = {}, of_exchange[kSide / 2] = {}, of_mma[kSide / 2] = {};
#pragma unroll 1
    for (int stage = 0; stage < kStages; ++stage) {
      fill(a, 2 * stage);
      fill(b, 2 * stage + 1);
      fence_proxy_async();
      __syncthreads();
      multiply_tiles<T, kSide, kSide, kSide>(sums, a, 0, b, stage > 0);
      multiply_tiles<T, kSide, kSide, kSide>(of_exchange, b, 0, a, stage > 0);
      wgmma_commit_group();
      wgmma_wait_group<0>(sums);
      warpgroup_fence_operand(of_exchange);
      multiply_by_warps(of_mma, a, b);
      __syncthreads();
    }
    each_sum([&](int i, int row, int column) { exchanged[column][row] = of_exchange[i]; });
    __syncthreads();
    unsigned count = 0;
    each_sum([&](int i, int row, int column) {
      count += __float_as_uint(of_mma[i]) != __float_as_uint(sums[i]);
      count += __float_as_uint(exchanged[row][column]) != __float_as_uint(sums[i]);
    });
    if (count > 0) atomicAdd(differing, count);
  }

 private:
  static SINTER_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static SINTER_DEVICE int first_row() { return static_cast<int>(threadIdx.x) / 32 * 16; }

  static SINTER_DEVICE void fill(unsigned char* tile, unsigned seed) {
    for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide; i += 128) {
      unsigned bits = (seed * kSide * kSide + static_cast<unsigned>(i) + 1) * 0x9e3779b9u;
      bits = (bits ^ bits >> 16) * 0x85ebca6bu;
      bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
      const float x = exp2f(static_cast<float>(bits >> 8) * 0x1p-20f - 8.0f);
      store(reinterpret_cast<T*>(tile) + i, bits & 1 ? -x : x);
    }
  }

  // Two neighbouring elements of a tile.
  static SINTER_DEVICE unsigned word(const unsigned char* tile, int row, int element) {
    return *reinterpret_cast<const unsigned*>(tile + tile_offset(kSide, kSide, row, element / 8) +
                                              element % 8 * 2);
  }
  static SINTER_DEVICE void multiply_by_warps(float (&sums)[kSide / 2], const unsigned char* a,
                                              const unsigned char* b) {
    const int row = first_row() + lane() / 4;
    for (int step = 0; step < kSide / 16; ++step) {
      const int k = 16 * Steps::at(step, kSide / 16) + lane() % 4 * 2;
#pragma unroll
      for (int column = 0; column < kSide; column += 8)
        mma_m16n8k16(reinterpret_cast<float(&)[4]>(sums[column / 2]),
                     static_cast<const T*>(nullptr), word(a, row, k), word(a, row + 8, k),
                     word(a, row, k + 8), word(a, row + 8, k + 8), word(b, column + lane() / 4, k),
                     word(b, column + lane() / 4, k + 8));
    }
  }

  template <typename Body>
  static SINTER_DEVICE void each_sum(Body body) {
#pragma unroll
    for (int i = 0; i < kSide / 2; ++i)
      body(i, first_row() + lane() / 4 + i % 4 / 2 * 8, i / 4 * 8 + lane() % 4 * 2 + i % 2);
  }
};

}  // namespace sinter
#endif
