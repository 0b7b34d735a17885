// mask_tiles: true where an element of a tile is true, or a number other than -inf.
#include <algorithm>
#include <cmath>

#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// Calls element(column, row, key, shows a key) for each element of a mask [column, row, key].
template <typename T, typename Each>
void walk(const HostView& mask, Each&& each) {
  const int64_t keys = mask.dims.back(), rows = mask.dims[mask.dims.size() - 2];
  std::vector<T> scratch(static_cast<size_t>(keys));
  HostReader reader(mask);
  const int64_t all = mask.volume() / std::max<int64_t>(keys, 1);
  for (int64_t row = 0; row < all; ++row) {
    const T* elements = reader.next(keys, scratch.data());
    for (int64_t key = 0; key < keys; ++key)
      each(row / rows, row % rows, key, elements[key] != static_cast<T>(-INFINITY));
  }
}

}  // namespace

Result<HostView> evaluate_mask_tiles(const OpCall& call) {
  const int64_t tokens = call.op.attrs.get<int64_t>(AttrName::tile_tokens);
  const int64_t keys = call.op.attrs.get<int64_t>(AttrName::tile_keys);
  const int64_t token_tiles = call.dims[call.dims.size() - 2], key_tiles = call.dims.back();
  SINTER_LET(value, allocate(call.dims, call.storage));
  std::fill_n(value.out, value.view.volume(), std::byte{0});
  const auto note = [&](int64_t column, int64_t row, int64_t key, bool shows) {
    if (shows)
      value.out[(column * token_tiles + row / tokens) * key_tiles + key / keys] = std::byte{1};
  };
  switch (call.operands[0].storage) {
    case Storage::i1:
      walk<uint8_t>(call.operands[0], note);
      break;
    case Storage::f64:
      walk<double>(call.operands[0], note);
      break;
    default:
      walk<float>(call.operands[0], note);
  }
  return value.view;
}

}  // namespace sinter
