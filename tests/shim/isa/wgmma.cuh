// wgmma.m64nNk16.
#pragma once

#include "kernels/isa/address.cuh"
#include "kernels/isa/pending_groups.cuh"
#include "kernels/isa/warp_words.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

struct MatrixDescriptor {
  const char* p;
  int step, panel, row_bytes;

  MatrixDescriptor advanced(int bytes) const { return {p + bytes, step, panel, row_bytes}; }

  // The 16-bit element at these bytes after p, which are within a panel.
  unsigned short at(const char* start, int bytes) const {
    const math::u64 address = reinterpret_cast<math::u64>(start) + static_cast<math::u64>(bytes);
    const math::u64 bits = static_cast<math::u64>(row_bytes / 16 - 1);
    return *reinterpret_cast<const unsigned short*>(address ^ (address >> 3 & bits << 4));
  }
  unsigned short k_major(int row, int k) const {
    return at(p, row / 8 * step + row % 8 * row_bytes + 2 * k);
  }
  unsigned short mn_major(int column, int k) const {
    const int in_panel = row_bytes / 2;
    return at(p + column / in_panel * panel,
              k / 8 * step + k % 8 * row_bytes + 2 * (column % in_panel));
  }
};
template <int row_bytes>
SINTER_DEVICE MatrixDescriptor matrix_descriptor(const void* p, int step, int panel) {
  return {static_cast<const char*>(p), step, panel, row_bytes};
}

struct PendingProduct {
  void (*multiply)(float* sums, const MatrixDescriptor& first, const unsigned* words,
                   const MatrixDescriptor& second, bool adds);
  float* sums;
  MatrixDescriptor first;
  const unsigned* words;  // of an operand in registers
  MatrixDescriptor second;
  bool adds;

  void compute() const { multiply(sums, first, words, second, adds); }
};
using PendingProducts = PendingGroups<PendingProduct, 64>;

SINTER_DEVICE void begin_product(const PendingProduct& product) {
  PendingProducts& pending = PendingProducts::of_thread();
  if (pending.block() % 2 == 0)
    product.compute();
  else
    pending.add(product);
}

SINTER_DEVICE void fence_proxy_async() {}
template <int count>
SINTER_DEVICE void warpgroup_fence_operand(float (&)[count]) {}
template <int count>
SINTER_DEVICE void wgmma_fence(float (&)[count]) {
  PendingProducts::of_thread();
}
SINTER_DEVICE void wgmma_commit_group() { PendingProducts::of_thread().end_group(); }
template <int groups, int count>
SINTER_DEVICE void wgmma_wait_group(float (&)[count]) {
  __syncwarp();
  PendingProducts::of_thread().wait(groups, [](const PendingProduct& p) { p.compute(); });
}

template <int columns, typename T>
struct Wgmma {
  static float element(unsigned short bits) {
    return low_half(static_cast<const T*>(nullptr), bits);
  }

  // Sums of the lane: f(sum, row of the 64, column).
  template <typename Each>
  static void each(float* sums, Each f) {
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    for (int i = 0; i < columns / 2; ++i)
      f(sums[i], 16 * warp + lane / 4 + i % 4 / 2 * 8, i / 4 * 8 + 2 * (lane % 4) + i % 2);
  }
  static void mma_async_ss(float (&sums)[columns / 2], MatrixDescriptor first,
                           MatrixDescriptor second, bool adds) {
    begin_product({multiply_shared<true, true>, sums, first, nullptr, second, adds});
  }
  static void mma_async_ss_mn_major(float (&sums)[columns / 2], MatrixDescriptor first,
                                    MatrixDescriptor second, bool adds) {
    begin_product({multiply_shared<true, false>, sums, first, nullptr, second, adds});
  }
  static void mma_async_ss_both_mn_major(float (&sums)[columns / 2], MatrixDescriptor first,
                                         MatrixDescriptor second, bool adds) {
    begin_product({multiply_shared<false, false>, sums, first, nullptr, second, adds});
  }
  static void mma_async_rs(float (&sums)[columns / 2], const unsigned* first,
                           MatrixDescriptor second) {
    begin_product({multiply_registers<false>, sums, second, first, second, true});
  }
  static void mma_async_rs_k_major(float (&sums)[columns / 2], const unsigned* first,
                                   MatrixDescriptor second, bool adds) {
    begin_product({multiply_registers<true>, sums, second, first, second, adds});
  }

 private:
  template <bool a_k_major, bool b_k_major>
  static void multiply_shared(float* sums, const MatrixDescriptor& first, const unsigned*,
                              const MatrixDescriptor& second, bool adds) {
    each(sums, [&](float& sum, int row, int column) {
      sum = multiply_step(
          adds ? sum : 0.0f,
          [&](int k) {
            return element(a_k_major ? first.k_major(row, k) : first.mn_major(row, k));
          },
          [&](int k) {
            return element(b_k_major ? second.k_major(column, k) : second.mn_major(column, k));
          });
    });
  }
  template <bool k_major>
  static void multiply_registers(float* sums, const MatrixDescriptor&, const unsigned* first,
                                 const MatrixDescriptor& second, bool adds) {
    WarpWords& warp = words_of_warp();
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; ++i) warp.words[lane][i] = first[i];
    __syncwarp();
    each(sums, [&](float& sum, int row, int column) {
      sum = multiply_step(
          adds ? sum : 0.0f,
          [&](int k) {
            const unsigned word = warp.words[4 * (row % 8) + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
            return element(static_cast<unsigned short>(k % 2 == 0 ? word : word >> 16));
          },
          [&](int k) {
            return element(k_major ? second.k_major(column, k) : second.mn_major(column, k));
          });
    });
    __syncwarp();
  }
};

}  // namespace sinter
#endif
