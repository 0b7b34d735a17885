// Groups around one tiled_attention: heads of all kinds of widths, views, prologues and epilogues,
// sequences and masks.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kAttentionGroups = {
    {"tiled_heads", 0, R"(
graph(%q: DTYPE[N, WIDTH], %k: DTYPE[K, WIDTH], %v: DTYPE[K, WIDTH], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.125} : DTYPE[N, WIDTH]
})"},
    {"tiled_groups_of_merged_projection", 0, R"(
graph(%qkv: DTYPE[N, 160], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 32, size = 128} : DTYPE[N, 128]
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 8, kv_heads = 2, scale = 0.3, softcap = 5.0} : DTYPE[N, 128]
})"},
    {"tiled_unaligned", 0, R"(
graph(%qkv: DTYPE[N, 77], %kv: DTYPE[K, 38], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 3, size = 48} : DTYPE[N, 48]
  %k = slice %kv {axis = 1, begin = 1, size = 16} : DTYPE[K, 16]
  %v = slice %kv {axis = 1, begin = 17, size = 16} : DTYPE[K, 16]
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 3, kv_heads = 1, scale = 0.25, window = 70} : DTYPE[N, 48]
})"},
    {"tiled_odd_heads", 0, R"(
graph(%q: DTYPE[N, 30], %k: DTYPE[K, 10], %v: DTYPE[K, 7], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 3, kv_heads = 1, scale = -0.5, window = 1} : DTYPE[N, 21]
})"},
    {"tiled_short_heads", 0, R"(
graph(%q: DTYPE[N, 4], %k: DTYPE[200, 2], %v: DTYPE[200, 2], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 2, kv_heads = 1, scale = 1.0} : DTYPE[N, 4]
})"},
    {"tiled_wide_values", 0, R"(
graph(%q: DTYPE[N, 24], %k: DTYPE[K, 24], %v: DTYPE[K, 144], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.5, softcap = 1.5, window = 9000000000} : DTYPE[N, 144]
})"},
    {"tiled_of_one_query", 0, R"(
graph(%x: DTYPE[1, 40], %k: DTYPE[K, 40], %v: DTYPE[K, 24], %first: i32[N]) -> (%y) {
  %q = broadcast %x {dims = [N, 40]} : DTYPE[N, 40]
  %y = attention %q, %k, %v, %first, %first {order = tiled_attention, heads = 1, kv_heads = 1, scale = 1.0} : DTYPE[N, 24]
})"},
    {"tiled_rotated", 0, R"(
graph(%qkv: DTYPE[N, 96], %cos: DTYPE[N, 8], %sin: DTYPE[N, 8], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 16, size = 64} : DTYPE[N, 64]
  %heads = reshape %q {dims = [N, 2, 32]} : DTYPE[N, 2, 32]
  %rotated = rope %heads, %cos, %sin {rotary = 16, pairing = "half"} : DTYPE[N, 2, 32]
  %rows = reshape %rotated {dims = [N, 64]} : DTYPE[N, 64]
  %y = attention %rows, %k, %v, %first, %last {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[N, 64]
})"},
    {"tiled_gated_of_a_sum", 0, R"(
graph(%x: DTYPE[N, 32], %bias: DTYPE[32], %gate: DTYPE[N, 32], %k: DTYPE[K, 16], %v: DTYPE[K, 16], %first: i32[N], %last: i32[N]) -> (%q, %y, %z) {
  %q = add %x, %bias : DTYPE[N, 32]
  %a = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25} : DTYPE[N, 32]
  %g = sigmoid %gate : DTYPE[N, 32]
  %y = mul %a, %g : DTYPE[N, 32]
  %z = add %a, %x : DTYPE[N, 32]
})"},
    {"tiled_sink", 0, R"(
graph(%q: DTYPE[N, 48], %k: DTYPE[K, 16], %v: DTYPE[K, 24], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 3, kv_heads = 1, scale = 0.25, window = 9, sink = 4, empty_zero = 1} : DTYPE[N, 72]
})"},
    {"tiled_checked", 0, R"(
graph(%q: DTYPE[N, 32], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %i: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %i, %last {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.25, checked = 1} : DTYPE[N, 32]
})"},
};

const std::vector<GroupText> kSequenceGroups = {
    {"tiled_sequences_in_any_range", 0, R"(
graph(%q: DTYPE[B, N, 32], %k: DTYPE[B, K, 16], %v: DTYPE[B, K, 24], %first: i32[B, N], %last: i32[B, N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25, window = 90, any_range = 1, empty_zero = 1} : DTYPE[B, N, 48]
})"},
    {"tiled_sequences_by_heads", 0, R"(
graph(%x: DTYPE[2, 2, N, 16], %c: DTYPE[2, 2, K, 16], %d: DTYPE[2, 2, K, 24], %first: i32[2, N], %last: i32[2, N], %mask: i1[2, 1, N, K]) -> (%y) {
  %xs = transpose %x {axes = [0, 2, 1, 3]} : DTYPE[2, N, 2, 16]
  %q = reshape %xs : DTYPE[2, N, 32]
  %cs = transpose %c {axes = [0, 2, 1, 3]} : DTYPE[2, K, 2, 16]
  %k = reshape %cs : DTYPE[2, K, 32]
  %ds = transpose %d {axes = [0, 2, 1, 3]} : DTYPE[2, K, 2, 24]
  %v = reshape %ds : DTYPE[2, K, 48]
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 2, kv_heads = 2, scale = 0.25, empty_zero = 1} : DTYPE[2, N, 48]
})"},
    {"tiled_sequences_that_share_keys", 0, R"(
graph(%q: DTYPE[2, 2, N, 16], %c: DTYPE[1, 1, K, 16], %v: DTYPE[2, 2, K, 16], %first: i32[2, 2, N], %last: i32[2, 2, N], %mask: f32[1, 1, 1, 1, K]) -> (%y) {
  %k = broadcast %c {dims = [2, 2, K, 16]} : DTYPE[2, 2, K, 16]
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 1, kv_heads = 1, scale = -0.25, softcap = 3.0} : DTYPE[2, 2, N, 16]
})"},
    {"tiled_masked_by_columns", 0, R"(
graph(%q: DTYPE[N, 48], %k: DTYPE[200, 16], %v: DTYPE[200, 16], %first: i32[N], %last: i32[N], %wide: DTYPE[3, N, 205]) -> (%y) {
  %mask = slice %wide {axis = 2, begin = 3, size = 200} : DTYPE[3, N, 200]
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 3, kv_heads = 1, scale = 0.25, empty_zero = 1} : DTYPE[N, 48]
})"},
    {"tiled_masked_keys_of_computed_ranges", 0, R"(
graph(%q: DTYPE[2, N, 16], %k: DTYPE[2, K, 16], %v: DTYPE[2, K, 16], %length: i32[2, 1], %seen: i1[2, K]) -> (%last, %y) {
  %n = iota {axis = 1} : i32[2, N]
  %last = minimum %n, %length : i32[2, N]
  %first = constant {value = 0} : i32[2, N]
  %mask = reshape %seen : i1[2, 1, 1, K]
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.25, any_range = 1} : DTYPE[2, N, 16]
})"},
    {"tiled_masked_in_chunks", 0, R"(
graph(%q: DTYPE[2, N, 32], %k: DTYPE[2, 208, 16], %v: DTYPE[2, 208, 16], %first: i32[2, N], %last: i32[2, N], %wide: i1[2, 2, N, 224]) -> (%y) {
  %mask = slice %wide {axis = 3, begin = 16, size = 208} : i1[2, 2, N, 208]
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25, softcap = 2.0} : DTYPE[2, N, 32]
})"},
    {"tiled_masked_in_chunks_of_short_tiles", 0, R"(
graph(%q: DTYPE[N, 8], %k: DTYPE[144, 8], %v: DTYPE[144, 136], %first: i32[N], %last: i32[N], %mask: i1[1, N, 144]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.25, empty_zero = 1} : DTYPE[N, 136]
})"},
    {"tiled_masked_keys_of_short_tiles", 0, R"(
graph(%q: DTYPE[N, 8], %k: DTYPE[K, 8], %v: DTYPE[K, 136], %first: i32[N], %last: i32[N], %mask: i1[1, 1, K]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.25, empty_zero = 1} : DTYPE[N, 136]
})"},
    {"tiled_masked_tokens", 0, R"(
graph(%q: DTYPE[2, N, 32], %k: DTYPE[2, K, 32], %v: DTYPE[2, K, 32], %first: i32[2, N], %last: i32[2, N], %mask: bf16[2, 2, N, 1]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = tiled_attention, heads = 2, kv_heads = 2, scale = 0.25} : DTYPE[2, N, 32]
})"},
};

const std::vector<GroupText> kTileGroups = {
    {"tiled_without_hidden_tiles", 0, R"(
graph(%q: DTYPE[B, N, 32], %k: DTYPE[B, K, 16], %v: DTYPE[B, K, 16], %first: i32[B, N], %last: i32[B, N], %mask: i1[B, 2, N, K], %tiles: i1[B, 2, 32, 512]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25} : DTYPE[B, N, 32]
})"},
    {"tiled_sink_without_hidden_tiles", 0, R"(
graph(%q: DTYPE[N, 16], %k: DTYPE[K, 8], %v: DTYPE[K, 136], %first: i32[N], %last: i32[N], %mask: i1[2, 1, K], %tiles: i1[2, 1, 1024]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25, window = 30, sink = 70, any_range = 1, empty_zero = 1} : DTYPE[N, 272]
})"},
    {"tiled_without_hidden_tiles_of_keys", 0, R"(
graph(%q: DTYPE[2, N, 32], %k: DTYPE[2, K, 16], %v: DTYPE[2, K, 16], %first: i32[2, N], %last: i32[2, N], %mask: f32[2, 1, 1, K], %tiles: i1[2, 1, 1, 512]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25, window = 300, any_range = 1, empty_zero = 1} : DTYPE[2, N, 32]
})"},
    {"tiled_without_hidden_short_tiles", 0, R"(
graph(%q: DTYPE[N, 16], %k: DTYPE[K, 8], %v: DTYPE[K, 136], %first: i32[N], %last: i32[N], %mask: i1[2, 1, K], %tiles: i1[2, 1, 1024]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, heads = 2, kv_heads = 1, scale = 0.25, empty_zero = 1} : DTYPE[N, 272]
})"},
    {"tiled_without_hidden_tiles_of_wide_heads", 0, R"(
graph(%q: DTYPE[N, 256], %k: DTYPE[400, 256], %v: DTYPE[400, 16], %first: i32[N], %last: i32[N], %mask: bf16[1, N, 400], %tiles: i1[1, 32, 7]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask, %tiles {order = tiled_attention, heads = 1, kv_heads = 1, scale = 0.0625} : DTYPE[N, 16]
})"},
};

}  // namespace sinter
