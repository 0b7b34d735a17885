// cp.async.bulk.tensor: one instruction copies a box of a tensor, as a tensor map describes it
// (plan/tensor_map.h), from global into shared memory, and an mbarrier counts the bytes of the
// whole box, also where it reaches beyond the tensor and zeros are written.
#pragma once

#include "kernels/isa/mbarrier.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

/// CUtensorMap, as the driver encodes it. A kernel's parameter, const __grid_constant__.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

/// `to`: aligned to 128 bytes, and with a swizzle to 8 rows of it. The box begins at element x of
/// the innermost dimension and y of the next.
SINTER_DEVICE void cp_async_bulk_tensor_2d(SharedAddress to, const TensorMap& map, int x, int y,
                                           SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
/// The box is written to this address of the blocks of the cluster in the mask `blocks`, a bit for
/// each rank, and counted by the barrier at this address of each.
SINTER_DEVICE void cp_async_bulk_tensor_2d_multicast(SharedAddress to, const TensorMap& map, int x,
                                                     int y, SharedAddress barrier,
                                                     unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}
SINTER_DEVICE void cp_async_bulk_tensor_3d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
/// With the cache hint evict_first: for data that is read once.
SINTER_DEVICE void cp_async_bulk_tensor_3d_evict_first(SharedAddress to, const TensorMap& map,
                                                       int x, int y, int z, SharedAddress barrier) {
  asm volatile(
      "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], policy;\n}" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
SINTER_DEVICE void cp_async_bulk_tensor_4d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, int w, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}
SINTER_DEVICE void cp_async_bulk_tensor_5d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, int w, int v, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(barrier)
      : "memory");
}
/// With the cache hint evict_first.
SINTER_DEVICE void cp_async_bulk_tensor_5d_evict_first(SharedAddress to, const TensorMap& map,
                                                       int x, int y, int z, int w, int v,
                                                       SharedAddress barrier) {
  asm volatile(
      "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], policy;\n}" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(barrier)
      : "memory");
}

}  // namespace sinter
#endif
