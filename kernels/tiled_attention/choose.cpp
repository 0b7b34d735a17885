// The order of attention of many tokens is tiled_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 32, ...}
//
// Where a recipe is invariant, its keys are cut into segments, and few tokens, or one of each
// sequence, have a kernel that walks several segments at a time:
//
//   =>  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, segment = 256,
//                                                 splits = 3, ...}
//
// A mask of many keys gets a summary, with which the kernel leaves out tiles of hidden keys;
// attentions that share a mask share it:
//
//   %y = attention %q, %k, %v, %first, %last, %mask {heads = 32, ...}
//   =>  %tiles = mask_tiles %mask {tile_tokens = 128, tile_keys = 128}
//       %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, ...}
#include <algorithm>

#include "device/reference_machine.h"
#include "ir/attention_operands.h"
#include "ir/builder.h"
#include "kernels/tiled_attention/layout.h"
#include "kernels/tiled_attention/order.h"

namespace sinter {
namespace {

// A mask has a summary where a call may have this number of keys, four tiles or more, so that what
// is left out may take longer than the summary; and no more tiles than this, which a call writes in
// any case.
constexpr int64_t kMinKeys = 512, kMaxTiles = int64_t{1} << 20;

/// Keys of a segment, where one order is asked for: see bench/log/invariance.md.
constexpr int64_t kSegmentKeys = 256;
/// The most tokens of a call that the kernel of few tokens takes, if they may be of one sequence.
constexpr int64_t kMaxFewTokens = 8;

/// Blocks that share a token's segments, a cluster. A multiprocessor of the reference machine holds
/// two blocks, but not all places can be taken: the blocks of a cluster run at the same time, on
/// neighbouring multiprocessors. (One H200, a token of 32 heads of 128 elements: 8.3 us with 6
/// splits, 14.0 with 8.)
int64_t splits_of(const AttentionHeads& heads) {
  const int64_t blocks = heads.count / few_heads(heads.group());
  return std::clamp<int64_t>(3 * kReference.multiprocessors / (2 * blocks), 1, kMaxFewSplits);
}

bool wants_mask_tiles(DimsRef mask, const Dims& tiles, llvm::ArrayRef<Symbol> symbols) {
  return SymExpr(mask.back()).upper_bound(symbols) >= kMinKeys &&
         volume(tiles).upper_bound(symbols) <= kMaxTiles;
}

/// The operands of tiled_attention: the mask whole, and a summary of it if it wants one.
llvm::SmallVector<ValueId, 7> tiled_operands(Builder& b, const Op& op,
                                             const AttentionHeads& heads) {
  llvm::SmallVector<ValueId, 7> operands = with_whole_mask(b, op);
  if (!has_mask(op)) return operands;
  const DimsRef mask = b.type(operands[kMaskOperand]).dims;
  const int64_t tokens = kAttentionTokenTile,
                keys = attention_key_tile(static_cast<int>(heads.width),
                                          static_cast<int>(heads.value_width));
  if (wants_mask_tiles(mask, mask_tile_dims(mask, tokens, keys, b.symbols()), b.symbols()))
    operands.insert(
        operands.begin() + kMaskTilesOperand,
        b.op(OpKind::mask_tiles, {operands[kMaskOperand]},
             Attributes().set(AttrName::tile_tokens, tokens).set(AttrName::tile_keys, keys),
             op.name + ".tiles"));
  return operands;
}

}  // namespace

// Not of float32: its products would be rounded to 16 bits.
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op, Tokens given,
                                              const Recipe& recipe) {
  if (!is_without_order(op, OpKind::attention) || recipe.attention == Recipe::Attention::composed)
    return std::nullopt;
  const TensorType& keys = b.type(op.operands[1]);
  const AttentionHeads heads = attention_heads(op.attrs, keys, b.type(op.operands[2]));
  if (dtype_info(keys.dtype).bits != 16 || !is_head_width(heads.width) ||
      !is_head_width(heads.value_width) || op.attrs.get<double>(AttrName::scale) == 0)
    return std::nullopt;
  Attributes attrs = op.attrs;
  attrs.set(AttrName::order, Order::tiled_attention);
  if (recipe.invariant) {
    attrs.set(AttrName::segment, kSegmentKeys);
    const int64_t most = volume(DimsRef(op.type.dims).drop_back()).upper_bound(b.symbols());
    const bool few = given == Tokens::one_each || (given == Tokens::any && most <= kMaxFewTokens);
    if (few && !attrs.has(AttrName::dropout)) attrs.set(AttrName::splits, splits_of(heads));
  }
  return b.op(OpKind::attention, tiled_operands(b, op, heads), std::move(attrs), op.name);
}

}  // namespace sinter
