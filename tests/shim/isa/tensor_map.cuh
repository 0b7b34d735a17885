// cp.async.bulk.tensor: boxes of a tensor, zeros outside of it, with the swizzle of shared memory.
#pragma once

#include "kernels/isa/mbarrier.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

using TensorMap = sinter_shim::TensorMap;

SINTER_DEVICE void copy_box(const CopyToBarrier& copy) {
  sinter_shim_calls->copy_box(*static_cast<const TensorMap*>(copy.from), copy.coordinates,
                              reinterpret_cast<void*>(copy.to), {__FILE__, __LINE__});
}
template <int rank>
CopyToBarrier box_copy(SharedAddress to, const TensorMap& map, const int (&coordinates)[rank],
                       SharedAddress barrier) {
  CopyToBarrier copy = {};
  copy.run = copy_box;
  copy.barrier = barrier;
  copy.to = to;
  copy.from = &map;
  copy.bytes = map.element_bytes;
  for (int d = 0; d < rank; ++d) {
    copy.bytes *= map.box[d];
    copy.coordinates[d] = coordinates[d];
  }
  return copy;
}
template <int rank>
void begin_box_copy(SharedAddress to, const TensorMap& map, const int (&coordinates)[rank],
                    SharedAddress barrier) {
  begin_copy(box_copy(to, map, coordinates, barrier));
}

SINTER_DEVICE void cp_async_bulk_tensor_2d(SharedAddress to, const TensorMap& map, int x, int y,
                                           SharedAddress barrier) {
  begin_box_copy(to, map, {x, y}, barrier);
}
SINTER_DEVICE void cp_async_bulk_tensor_2d_multicast(SharedAddress to, const TensorMap& map, int x,
                                                     int y, SharedAddress barrier,
                                                     unsigned short blocks, SINTER_SHIM_SITE) {
  CopyToBarrier copy = box_copy(to, map, {x, y}, barrier);
  for (int block = 0; block < sinter_shim_calls->context->cluster; ++block) {
    if ((blocks >> block & 1) == 0) continue;
    copy.to = in_block(to, copy.bytes, block, file, line);
    copy.barrier = in_block(barrier, sizeof(Barrier), block, file, line);
    begin_copy(copy, block);
  }
}
SINTER_DEVICE void cp_async_bulk_tensor_3d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, SharedAddress barrier) {
  begin_box_copy(to, map, {x, y, z}, barrier);
}
SINTER_DEVICE void cp_async_bulk_tensor_3d_evict_first(SharedAddress to, const TensorMap& map,
                                                       int x, int y, int z, SharedAddress barrier) {
  begin_box_copy(to, map, {x, y, z}, barrier);
}
SINTER_DEVICE void cp_async_bulk_tensor_4d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, int w, SharedAddress barrier) {
  begin_box_copy(to, map, {x, y, z, w}, barrier);
}
SINTER_DEVICE void cp_async_bulk_tensor_5d(SharedAddress to, const TensorMap& map, int x, int y,
                                           int z, int w, int v, SharedAddress barrier) {
  begin_box_copy(to, map, {x, y, z, w, v}, barrier);
}
SINTER_DEVICE void cp_async_bulk_tensor_5d_evict_first(SharedAddress to, const TensorMap& map,
                                                       int x, int y, int z, int w, int v,
                                                       SharedAddress barrier) {
  begin_box_copy(to, map, {x, y, z, w, v}, barrier);
}

}  // namespace sinter
#endif
