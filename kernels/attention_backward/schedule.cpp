#include "kernels/attention_backward/schedule.h"

#include "kernels/tile/layout.h"
#include "kernels/tile/search.h"

namespace sinter {
namespace {

// Beside its tiles, a block declares flags of tiles, what it knows of tokens, and barriers.
constexpr int64_t kDeclaredGradientBytes = 8192;
// Registers of a thread that loads and of one that multiplies; one multiplying warpgroup for each
// 64 own rows of a block of 128.
constexpr int64_t kLoadingRegisters = 40, kMultiplyingRegisters = 232;
// The sums of two gradients of wider heads, dots and products need more: with 232 registers the
// assembler lets each product end before the next one begins (ptxas warns of it as 7512). With 24
// those that load keep 44 bytes in local memory.
constexpr int kWidthOfManySums = 224;
constexpr int64_t kFewLoadingRegisters = 24, kMaxMultiplyingRegisters = 240;
// A part of the L2 cache: half of it may hold copies of the other half's lines, for the
// multiprocessors beside it, and own rows, results and the next heads' rows pass through, too.
constexpr double kCachedShare = 0.25;
// Heads of at most this width leave registers for several blocks.
constexpr int kNarrowHead = 64;

/// A multiplying warpgroup waits for its products, and the tensor cores for its probabilities:
/// other warpgroups fill both gaps. Other blocks' warpgroups also run while a block loads its own
/// rows and stores its results. One H200, 12 heads of 64, 32 x 1,024 tokens, causal, by own rows x
/// threads x blocks of a multiprocessor:
///   keys and values   128 x 384 x 1: 354 us   64 x 256 x 2: 330   64 x 192 x 2: 384
///   queries           128 x 384 x 1: 270 us   64 x 256 x 2: 273   64 x 160 x 3: 240
/// Tiles of 32 and of 128 other rows are slower. A single warp loads fast enough for one warpgroup
/// that computes one gradient, and not for one that computes two (64 x 160 x 2: 419 us).
GradientForm warpgroups_form(int64_t width, int64_t value_width, bool of_keys) {
  if (width > kNarrowHead || value_width > kNarrowHead) {
    const bool has_many_sums = of_keys && tile_padded(static_cast<int>(width)) +
                                                  tile_padded(static_cast<int>(value_width)) >
                                              kWidthOfManySums;
    return {
        .warpgroups = true,
        .own_rows = 128,
        .other_rows = 64,
        .threads = 384,
        .loading_registers = has_many_sums ? kFewLoadingRegisters : kLoadingRegisters,
        .multiplying_registers = has_many_sums ? kMaxMultiplyingRegisters : kMultiplyingRegisters};
  }
  if (of_keys)
    return {.warpgroups = true,
            .own_rows = 64,
            .other_rows = 64,
            .threads = 256,
            .blocks = 2,
            .loading_registers = kLoadingRegisters,
            .multiplying_registers = 216};
  return {.warpgroups = true, .own_rows = 64, .other_rows = 64, .threads = 160, .blocks = 3};
}

}  // namespace

std::optional<GradientForm> gradient_form(int64_t width, int64_t value_width, bool of_keys,
                                          const DeviceDescription& device) {
  if (!device.has.mma || !device.has.async_copy) return std::nullopt;
  const int padded =
      tile_padded(static_cast<int>(width)) + tile_padded(static_cast<int>(value_width));
  GradientForm form = device.has.wgmma
                          ? warpgroups_form(width, value_width, of_keys)
                          : GradientForm{.own_rows = 64, .other_rows = 32, .threads = 128};
  const int64_t own = tile_bytes(static_cast<int>(form.own_rows), padded);
  const int64_t stage = tile_bytes(static_cast<int>(form.other_rows), padded);
  const int64_t room = device.max_shared_bytes / form.blocks - kDeclaredGradientBytes - own;
  const auto stages = stages_that_fit(room, stage, 2, form.warpgroups ? 4 : 2);
  if (!stages) return std::nullopt;
  form.stages = *stages;
  form.shared_bytes = own + *stages * stage;
  form.cached_bytes = static_cast<int64_t>(device.cache_bytes * kCachedShare);
  return form;
}

}  // namespace sinter
