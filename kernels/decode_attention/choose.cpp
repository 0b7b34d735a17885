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

}  // namespace

std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op, Tokens given) {
  if (!is_without_order(op, OpKind::attention)) return std::nullopt;
  const SymExpr tokens = volume(DimsRef(op.type.dims).drop_back());
  const int64_t most = tokens.upper_bound(b.symbols());
  const AttentionHeads heads =
      attention_heads(op.attrs, b.type(op.operands[1]), b.type(op.operands[2]));
  if ((most > kFewTokens && given != Tokens::one_each) || !is_head_width(heads.width) ||
      !is_head_width(heads.value_width))
    return std::nullopt;
  const int64_t tiles = heads.count / attention_tile(heads.group());
  Attributes attrs = op.attrs;
  attrs.set(AttrName::order, Order::decode_attention)
      .set(AttrName::splits, std::clamp<int64_t>(kWantedBlocks / tiles, 1, kMaxAttentionSplits));
  return b.op(OpKind::attention, with_whole_mask(b, op), std::move(attrs), op.name);
}

}  // namespace sinter
