// The one graph builder: every family's module is made here from its ModelSpec.
//
// Symbols
//   N  tokens of a prefill call            1 .. max_positions, or more where the caches hold more:
//                                          as many as they hold, at most kMaxPackedTokens
//   M  rows of it whose logits are wanted  1 .. max_positions: all tokens of the longest text
//   B  tokens of a decode call             1 .. sequences
//   R  rows of each cache                  8 .. sequences * max_positions rounded up to
//                                          kSequenceStep, in steps of 8
//   K  rows of a cache that can be seen    as R; K <= R in every call; prefill only
//
// Entries
//   prefill(tokens, pos, slot, first : i32[N], wanted : i32[M]) -> logits [M, vocabulary]
//   decode(tokens, pos, slot, first : i32[B]) -> logits [B, vocabulary]
//
//   sample(logits [B, vocabulary], pos, slot, step : i32[B], temperature : f32[B], top_k : i32[B],
//          top_p : f32[B], seed : i32[B]) -> next.tokens, next.pos, next.slot, next.step : i32[B]
//
//   sample chooses each sequence's next token (op sample); its outputs next.X are the inputs X of
//   the following decode and sample.
//
//   With a streaming cache (one sequence): prefill and decode have the input row_pos : i32 [K] or
//   [R], the place of each cache row in the text as the cache holds it; pos is such a place too,
//   and sample has row_pos and next.row_pos.
//
//   pos    position in its sequence
//   slot   cache row that the token is written to; distinct in a call, < K (decode: < R)
//   first  cache row of its sequence's first token: the token sees rows first .. slot
//   wanted rows of the call (not of the cache) whose logits are computed
//
// States: l{i}.k_cache and l{i}.v_cache [R, kv_heads * head_dim]; [R, kv_heads, head_dim]
// where each head has a norm.
//
// Values that people meet, in order: embed (learned positions: embed.tok + embed.pos), rope.cos,
// rope.sin; per layer l{i}.norm1, .q, .k, .v, .q_rot, .k_rot, .k_append, .v_append, .attn,
// .attn_out, .res1, .norm2, .mlp.gate, .mlp.up, .mlp.act, .mlp.down, .res2 (parallel residual:
// .branches and .res in place of .res1 and .res2; norms of queries and keys: .q_norm, .k_norm;
// norms of a branch's result: .post_norm1, .post_norm2; experts in place of an MLP: .router,
// .router32, .probabilities, .experts, .chosen, .weights, .experts.gate_up, .experts.act,
// .experts.down, .experts.sum; a shared one: .shared.gate, .shared.up, .shared.act, .shared.down,
// .shared_gate); final_norm, logits.
//
// An encoder has the symbol N alone, no state, and one entry for packed sequences:
//
//   encode(tokens, pos, types, first, last : i32[N]) -> last_hidden_state [N, hidden]
//
//   types  of tokens; only where the spec has token types
//   first, last  rows of the call between which the token's sequence lies: what it sees
#pragma once

#include "frontends/model/build_weights.h"

namespace sinter {

/// The most tokens of one prefill call, unless one text of the model may be longer: a GPU's matrix
/// products gain nothing from more rows.
inline constexpr int64_t kMaxPackedTokens = 16384;

/// A multiple of the tiles of keys of attention (kernels/tiled_attention/order.h,
/// kernels/float_attention/order.h). The caches have room for sequences that begin at multiples of
/// it.
inline constexpr int64_t kSequenceStep = 128;

/// The value that is the residual stream before layer i (0: the embedding), as transformers reports
/// hidden states: the last is taken after the final norm and a projection to the table's width, and
/// a stream normed after every addition is taken after the norm.
std::string hidden_state_name(const ModelSpec& spec, int64_t i);

/// The module of a spec that passed check_spec. Errors: as build_weights.
Result<Module> build_model(const ModelSpec& spec, const WeightNames& names,
                           const TensorSource* source, std::string_view place);

}  // namespace sinter
