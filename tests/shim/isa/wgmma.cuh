// wgmma.m64nNk16.
#pragma once

#include "kernels/isa/address.cuh"
#include "kernels/isa/mma.cuh"
#include "kernels/isa/pending_groups.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

using sinter_shim::MatrixDescriptor;
using sinter_shim::WarpgroupProduct;

template <int row_bytes>
SINTER_DEVICE MatrixDescriptor matrix_descriptor(const void* p, int step, int panel) {
  return {static_cast<const char*>(p), step, panel, row_bytes};
}

SINTER_DEVICE void compute_product(const WarpgroupProduct& product) {
  if (product.words)
    sinter_shim::whole_warp(sinter_shim::ExchangeKind::warpgroup_product, &product, __FILE__,
                            __LINE__);
  else
    sinter_shim_calls->multiply(product, {__FILE__, __LINE__});
}

using PendingProducts = PendingGroups<WarpgroupProduct, 64>;

SINTER_DEVICE void begin_product(const WarpgroupProduct& product) {
  PendingProducts& pending = PendingProducts::of_thread();
  if (pending.block() % 2 == 0)
    compute_product(product);
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
  PendingProducts::of_thread().wait(groups, compute_product);
}

template <int columns, typename T>
struct Wgmma {
  template <bool first_mn_major = false, bool second_mn_major = false>
  static void mma_async_ss(float (&sums)[columns / 2], MatrixDescriptor first,
                           MatrixDescriptor second, bool adds) {
    begin({sums, columns, first, nullptr, second, !second_mn_major, false, adds, first_mn_major});
  }
  static void mma_async_rs(float (&sums)[columns / 2], const unsigned* first,
                           MatrixDescriptor second) {
    begin({sums, columns, {}, first, second, false, false, true});
  }
  static void mma_async_rs_k_major(float (&sums)[columns / 2], const unsigned* first,
                                   MatrixDescriptor second, bool adds) {
    begin({sums, columns, {}, first, second, true, false, adds});
  }

 private:
  static void begin(WarpgroupProduct product) {
    product.is_bf16 = is_bf16(static_cast<const T*>(nullptr));
    begin_product(product);
  }
};

}  // namespace sinter
#endif
