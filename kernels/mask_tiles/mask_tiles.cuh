// mask_tiles: whether a tile of a mask of attention shows a key.
//
// A warp reads a tile, with several loads a lane on their way, and stops where one of them shows a
// key: most tiles that show one show it early.
//
// Config:
//   Mask           MaskInMemory (kernels/common/attention_operands.cuh)
//   kTokens, kKeys of a tile, multiples of 32
//   kThreads       of a block
//   kAligned       rows begin at multiples of 8 neighbouring elements
#pragma once

#include "kernels/common/attention_operands.cuh"

namespace sinter {

// The extents of a mask, and the tiles of the result for each head of a sequence.
struct MaskExtents {
  long long sequences, heads, tokens, keys, token_tiles, key_tiles;
};

SINTER_DEVICE bool shows_key(bool seen) { return seen; }
SINTER_DEVICE bool shows_key(float added) { return added != -math::infinity(); }

template <typename Config>
class MaskTile {
  using Row = typename Config::Mask::Row;
  // A load has a chunk of neighbouring keys of a token.
  static constexpr int kChunk = Config::kAligned ? 8 : 1, kAcross = Config::kKeys / kChunk;
  static constexpr int kAtOnce = Config::kAligned ? 8 : 16;

 public:
  // `first`: the mask of the tile's first token, from its first key on; `rows` tokens and `keys`
  // keys are there.
  SINTER_DEVICE MaskTile(Row first, long long token_stride, int rows, int keys)
      : first_(first), token_stride_(token_stride), rows_(rows), keys_(keys) {}

  // All lanes of a warp call it.
  SINTER_DEVICE bool shows_a_key() const {
    for (int begin = 0; begin < rows_ * kAcross; begin += 32 * kAtOnce) {
      bool shows = false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int chunk = begin + 32 * k + static_cast<int>(threadIdx.x) % 32;
        const int row = chunk / kAcross, key = chunk % kAcross * kChunk;
        if (row < rows_ && key < keys_) shows = chunk_shows(row, key) || shows;
      }
      if (__any_sync(0xffffffffu, shows)) return true;
    }
    return false;
  }

 private:
  SINTER_DEVICE bool chunk_shows(int row, int key) const {
    const Row own = {first_.from + row * token_stride_, first_.key_stride};
    if constexpr (Config::kAligned) {
      const int valid = keys_ - key < kChunk ? keys_ - key : kChunk;
      decltype(own[0]) elements[kChunk];
      load_chunk(elements, own.from + key, valid);
      bool shows = false;
#pragma unroll
      for (int e = 0; e < kChunk; ++e) shows = (e < valid && shows_key(elements[e])) || shows;
      return shows;
    } else {
      return shows_key(own[key]);
    }
  }

  Row first_;
  long long token_stride_;
  int rows_, keys_;
};

template <typename Config>
SINTER_DEVICE bool tile_shows_a_key(const typename Config::Mask& mask, const MaskExtents& sizes,
                                    long long column, long long token_tile, long long key_tile) {
  const long long token0 = token_tile * Config::kTokens, key0 = key_tile * Config::kKeys;
  const auto whole = mask.row(column / sizes.heads, static_cast<int>(column % sizes.heads), token0);
  const long long rows = sizes.tokens - token0, keys = sizes.keys - key0;
  return MaskTile<Config>({whole.from + key0 * whole.key_stride, whole.key_stride},
                          mask.token_stride,
                          static_cast<int>(rows < Config::kTokens ? rows : Config::kTokens),
                          static_cast<int>(keys < Config::kKeys ? keys : Config::kKeys))
      .shows_a_key();
}

// out: [sequences, heads, token_tiles, key_tiles].
template <typename Config>
SINTER_DEVICE void mask_tiles(const typename Config::Mask& mask, const MaskExtents& sizes,
                              i1* out) {
  const long long token_tiles = (sizes.tokens + Config::kTokens - 1) / Config::kTokens;
  const long long key_tiles = (sizes.keys + Config::kKeys - 1) / Config::kKeys;
  const long long columns = sizes.sequences * sizes.heads;
  const long long thread = static_cast<long long>(blockIdx.x) * Config::kThreads + threadIdx.x;
  const long long warp = thread / 32;
  if (warp < columns * token_tiles * key_tiles) {
    const long long key_tile = warp % key_tiles, rest = warp / key_tiles;
    const long long token_tile = rest % token_tiles, column = rest / token_tiles;
    const bool shows = tile_shows_a_key<Config>(mask, sizes, column, token_tile, key_tile);
    if (thread % 32 == 0)
      store(out + (column * sizes.token_tiles + token_tile) * sizes.key_tiles + key_tile, shows);
  }
  if (token_tiles == sizes.token_tiles && key_tiles == sizes.key_tiles) return;
  // Tiles beyond this call's tiles are false.
  const long long threads = static_cast<long long>(gridDim.x) * Config::kThreads;
  for (long long i = thread; i < columns * sizes.token_tiles * sizes.key_tiles; i += threads)
    if (i % sizes.key_tiles >= key_tiles || i / sizes.key_tiles % sizes.token_tiles >= token_tiles)
      store(out + i, false);
}

}  // namespace sinter
