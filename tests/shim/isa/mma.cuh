// mma.m16n8k16.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

SINTER_DEVICE bool is_bf16(const f16*) { return false; }
SINTER_DEVICE bool is_bf16(const bf16*) { return true; }

template <typename T>
SINTER_DEVICE void mma_m16n8k16(float (&sums)[4], const T* p, unsigned a0, unsigned a1, unsigned a2,
                                unsigned a3, unsigned b0, unsigned b1) {
  const sinter_shim::WarpProduct product = {sums, {a0, a1, a2, a3, b0, b1}, is_bf16(p)};
  sinter_shim::whole_warp(sinter_shim::ExchangeKind::product, &product, __FILE__, __LINE__);
}

}  // namespace sinter
