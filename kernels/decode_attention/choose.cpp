// The order of attention of few tokens, or of one token of each sequence, is decode_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 32, splits = 3}
#include <algorithm>

#include "device/reference_machine.h"
#include "ir/attention_operands.h"
#include "ir/builder.h"
#include "kernels/decode_attention/order.h"

namespace sinter {
namespace {

// Blocks of one token: one on each of most multiprocessors, beside which the next product's block
// has room to send for its matrix. (One H200, a token of Llama-2-7B: 3.61 ms; with 264 blocks
// 3.74.) Most, since a cluster's blocks share a group of multiprocessors: of clusters of 2, 3 .. 9
// blocks it holds 66, 39, 30, 22, 17, 15, 15 and 9 at a time, of larger ones 7. Of 32 clusters of 4
// two found no place of their own, and where two blocks stood on a multiprocessor, they and the
// next product's block were late. (With 3: Llama-2-7B 3.57 to 3.54 ms, Pythia-2.8B 1.85 to 1.82.
// Llama-3.2-1B after 8,192 tokens with 16 clusters of 6: 0.876 ms, of 7 or 8: 0.97.)
constexpr int64_t kWantedBlocks = kReference.cluster_blocks;
constexpr int64_t kFewTokens = 8;

/// The tokens of a call, at least.
int64_t least_tokens(DimsRef leading, llvm::ArrayRef<Symbol> symbols) {
  int64_t count = 1;
  for (Dim dim : leading)
    count *= dim.is_constant() ? dim.constant() : symbols[dim.symbol().index].low;
  return std::max<int64_t>(count, 1);
}

/// Splits of a token's tile, so that `tokens` tokens have about kWantedBlocks blocks.
int64_t splits_of(int64_t tiles, int64_t tokens) {
  return std::clamp<int64_t>(kWantedBlocks / (tiles * tokens), 1, kMaxAttentionSplits);
}

// Streams where a call may have many tokens: with fewer, smaller blocks share a multiprocessor,
// and one joins its streams while others read. (One H100, after 256 tokens, in us of a step:
// Llama-3.2-1B, 64 sequences, with 64 streams 678, with 32, 16 and 8: 436, 338, 323. Llama-2-7B, 16
// sequences, with 32, 16, 8 and 4: 871, 737, 975, 1,513; 64 sequences: 3,622, 3,272, 3,197, 3,195.
// Llama-3.2-1B, 32 sequences, after 4,096 tokens: 1,865, 1,830, 1,961, 3,109.)
constexpr int64_t kManyTokenStreams = 16;
int64_t streams_of(const AttentionHeads& heads) {
  const int lanes =
      attention_lanes(static_cast<int>(heads.width), static_cast<int>(heads.value_width));
  return std::clamp<int64_t>(kManyTokenStreams, attention_neighbours(lanes),
                             attention_most_streams(lanes));
}

}  // namespace

std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op, Tokens given,
                                               const Recipe& recipe) {
  if (!is_without_order(op, OpKind::attention) || op.attrs.has(AttrName::dropout) ||
      recipe.invariant)
    return std::nullopt;
  const SymExpr tokens = volume(DimsRef(op.type.dims).drop_back());
  const int64_t most = tokens.upper_bound(b.symbols());
  const AttentionHeads heads =
      attention_heads(op.attrs, b.type(op.operands[1]), b.type(op.operands[2]));
  if ((most > kFewTokens && given != Tokens::one_each) || !is_head_width(heads.width) ||
      !is_head_width(heads.value_width))
    return std::nullopt;
  const int64_t tiles = heads.count / attention_tile(heads.group());
  Attributes attrs = op.attrs;
  const bool many = most > kFewTokens;
  const int64_t least = least_tokens(DimsRef(op.type.dims).drop_back(), b.symbols());
  attrs.set(AttrName::order, Order::decode_attention)
      .set(AttrName::splits, splits_of(tiles, many ? std::max(least, kFewTokens + 1) : 1));
  if (many) attrs.set(AttrName::streams, streams_of(heads));
  return b.op(OpKind::attention, with_whole_mask(b, op), std::move(attrs), op.name);
}

}  // namespace sinter
