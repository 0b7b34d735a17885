// Groups of one closed op, read through views.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kClosedGroups = {
    {"attention_of_groups", 0, R"(
graph(%q: DTYPE[N, 96], %k: DTYPE[200, 32], %v: DTYPE[200, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 6, kv_heads = 2, scale = 0.25, splits = 4} : DTYPE[N, 96]
})"},
    {"attention_of_merged_projection", 0, R"(
graph(%qkv: DTYPE[N, 160], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 32, size = 128} : DTYPE[N, 128]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 8, kv_heads = 2, scale = 0.3, softcap = 5.0, splits = 3, streams = 16} : DTYPE[N, 128]
})"},
    {"attention_unaligned", 0, R"(
graph(%qkv: DTYPE[N, 77], %kv: DTYPE[200, 38], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 3, size = 48} : DTYPE[N, 48]
  %k = slice %kv {axis = 1, begin = 1, size = 16} : DTYPE[200, 16]
  %v = slice %kv {axis = 1, begin = 17, size = 16} : DTYPE[200, 16]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 3, kv_heads = 1, scale = 0.25, splits = 2, window = 70} : DTYPE[N, 48]
})"},
    {"attention_of_layer", 0, R"(
graph(%x: DTYPE[2, N, 96], %c: DTYPE[3, K, 64], %first: i32[N], %last: i32[N]) -> (%y) {
  %x1 = slice %x {axis = 0, begin = 1, size = 1} : DTYPE[1, N, 96]
  %q = reshape %x1 {dims = [N, 96]} : DTYPE[N, 96]
  %c2 = slice %c {axis = 0, begin = 2, size = 1} : DTYPE[1, K, 64]
  %kv = reshape %c2 {dims = [K, 64]} : DTYPE[K, 64]
  %k = slice %kv {axis = 1, begin = 0, size = 32} : DTYPE[K, 32]
  %v = slice %kv {axis = 1, begin = 32, size = 32} : DTYPE[K, 32]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 6, kv_heads = 2, scale = 0.25, splits = 1} : DTYPE[N, 96]
})"},
    {"attention_of_one_query", 0, R"(
graph(%x: DTYPE[1, 40], %k: DTYPE[200, 8], %v: DTYPE[200, 24], %first: i32[N]) -> (%y) {
  %q = broadcast %x {dims = [N, 40]} : DTYPE[N, 40]
  %y = attention %q, %k, %v, %first, %first {order = decode_attention, heads = 5, kv_heads = 1, scale = 1.0, splits = 8} : DTYPE[N, 120]
})"},
    {"attention_short_heads", 0, R"(
graph(%q: DTYPE[N, 4], %k: DTYPE[200, 2], %v: DTYPE[200, 2], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = -1.0, splits = 7} : DTYPE[N, 4]
})"},
    {"attention_odd_heads", 0, R"(
graph(%q: DTYPE[N, 70], %k: DTYPE[200, 10], %v: DTYPE[200, 7], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 7, kv_heads = 1, scale = 0.5, splits = 5, window = 1} : DTYPE[N, 49]
})"},
    {"attention_wide_values", 0, R"(
graph(%q: DTYPE[N, 6], %k: DTYPE[200, 6], %v: DTYPE[200, 82], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 2, scale = 0.5, splits = 2, softcap = 1.5, window = 9000000000} : DTYPE[N, 82]
})"},
    {"attention_widest_heads", 0, R"(
graph(%q: DTYPE[N, 512], %k: DTYPE[200, 256], %v: DTYPE[200, 256], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.0625, splits = 2} : DTYPE[N, 512]
})"},
    {"attention_of_many_keys", 0, R"(
graph(%q: DTYPE[N, 320], %k: DTYPE[700, 160], %v: DTYPE[700, 160], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.125, splits = 2} : DTYPE[N, 320]
})"},
    {"attention_of_many_keys_in_a_window", 0, R"(
graph(%q: DTYPE[N, 256], %k: DTYPE[700, 64], %v: DTYPE[700, 64], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 1, scale = 0.125, splits = 1, streams = 4, window = 650} : DTYPE[N, 256]
})"},
    {"attention_of_a_sink", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[700, 32], %v: DTYPE[700, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 3, window = 40, sink = 5} : DTYPE[N, 64]
})"},
    {"attention_of_ranges_in_matrices", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[200, 32], %v: DTYPE[200, 32], %ranges: i32[2, N], %column: i32[N, 1]) -> (%y) {
  %row = slice %ranges {axis = 0, begin = 0, size = 1} : i32[1, N]
  %first = reshape %row {dims = [N]} : i32[N]
  %last = reshape %column {dims = [N]} : i32[N]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 3} : DTYPE[N, 64]
})"},
    {"attention_of_sequences_by_heads", 0, R"(
graph(%q: DTYPE[2, N, 96], %c: DTYPE[2, 2, K, 16], %d: DTYPE[2, 2, K, 16], %first: i32[2, N], %last: i32[2, N], %mask: i1[2, 1, N, K]) -> (%y) {
  %cs = transpose %c {axes = [0, 2, 1, 3]} : DTYPE[2, K, 2, 16]
  %k = reshape %cs : DTYPE[2, K, 32]
  %ds = transpose %d {axes = [0, 2, 1, 3]} : DTYPE[2, K, 2, 16]
  %v = reshape %ds : DTYPE[2, K, 32]
  %y = attention %q, %k, %v, %first, %last, %mask {order = decode_attention, heads = 6, kv_heads = 2, scale = 0.25, splits = 3, empty_zero = 1} : DTYPE[2, N, 96]
})"},
    {"attention_of_sequences_that_share_keys", 0, R"(
graph(%q: DTYPE[2, 2, N, 20], %c: DTYPE[1, 1, 200, 10], %v: DTYPE[2, 2, 200, 7], %first: i32[2, 2, N], %last: i32[2, 2, N], %wide: DTYPE[1, 1, 2, 1, 207]) -> (%y) {
  %k = broadcast %c {dims = [2, 2, 200, 10]} : DTYPE[2, 2, 200, 10]
  %mask = slice %wide {axis = 4, begin = 5, size = 200} : DTYPE[1, 1, 2, 1, 200]
  %y = attention %q, %k, %v, %first, %last, %mask {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 2, any_range = 1, window = 90} : DTYPE[2, 2, N, 14]
})"},
    {"attention_of_masked_tokens", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[200, 32], %v: DTYPE[200, 32], %first: i32[N], %last: i32[N], %mask: f32[4, N, 1]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 5, softcap = 2.0, sink = 30, any_range = 1, empty_zero = 1} : DTYPE[N, 64]
})"},
    {"attention_of_constant_and_own_rows", 0, R"(
graph(%q: DTYPE[2, N, 64], %k: DTYPE[2, K, 32], %v: DTYPE[2, K, 32]) -> (%y) {
  %first = constant {value = 2} : i32[2, N]
  %last = iota {axis = 1} : i32[2, N]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 3, any_range = 1, empty_zero = 1} : DTYPE[2, N, 64]
})"},
    {"attention_of_computed_ranges", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[200, 32], %v: DTYPE[200, 32], %slot: i32[N], %length: i32[1]) -> (%y, %last) {
  %n = broadcast %length {dims = [N]} : i32[N]
  %last = minimum %slot, %n : i32[N]
  %back = constant {value = 40} : i32[]
  %first = sub %last, %back : i32[N]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 2, any_range = 1, empty_zero = 1} : DTYPE[N, 64]
})"},
    {"sample_of_slice", 0, R"(
graph(%x: DTYPE[N, 120], %t: f32[N], %k: i32[N], %p: f32[N], %seed: i32[N], %step: i32[N]) -> (%y) {
  %l = slice %x {axis = 1, begin = 9, size = 101} : DTYPE[N, 101]
  %y = sample %l, %t, %k, %p, %seed, %step : i32[N]
})"},
    {"sample_of_one_row", 0, R"(
graph(%x: DTYPE[1, 33], %t: f32[N], %k: i32[N], %p: f32[N], %step: i32[N]) -> (%y) {
  %l = broadcast %x {dims = [N, 33]} : DTYPE[N, 33]
  %y = sample %l, %t, %k, %p, %k, %step : i32[N]
})"},
};

const std::vector<GroupText> kMaskTilesGroups = {
    {"tiles_of_tokens", 0, R"(
graph(%m: DTYPE[B, 2, N, K]) -> (%y) {
  %y = mask_tiles %m {tile_tokens = 128, tile_keys = 128} : i1[B, 2, 32, 512]
})"},
    {"tiles_of_truth_values", 0, R"(
graph(%wide: i1[2, N, 205]) -> (%y) {
  %m = slice %wide {axis = 2, begin = 3, size = 200} : i1[2, N, 200]
  %y = mask_tiles %m {tile_tokens = 128, tile_keys = 64} : i1[2, 32, 4]
})"},
    {"tiles_of_aligned_truth_values", 0, R"(
graph(%m: i1[B, 1, N, W]) -> (%y) {
  %y = mask_tiles %m {tile_tokens = 32, tile_keys = 32} : i1[B, 1, 128, 32]
})"},
    {"tiles_of_whole_rows", 0, R"(
graph(%m: i1[1, 128, 128]) -> (%y) {
  %y = mask_tiles %m {tile_tokens = 64, tile_keys = 64} : i1[1, 2, 2]
})"},
    {"tiles_of_aligned_numbers", 0, R"(
graph(%m: DTYPE[1, N, W]) -> (%y) {
  %y = mask_tiles %m {tile_tokens = 128, tile_keys = 64} : i1[1, 32, 16]
})"},
    {"tiles_of_keys", 0, R"(
graph(%x: DTYPE[2, K]) -> (%y) {
  %m = reshape %x {dims = [2, 1, 1, K]} : DTYPE[2, 1, 1, K]
  %y = mask_tiles %m {tile_tokens = 128, tile_keys = 64} : i1[2, 1, 1, 1024]
})"},
    {"tiles_of_keys_by_columns", 0, R"(
graph(%x: i1[K, N]) -> (%y) {
  %t = transpose %x {axes = [1, 0]} : i1[N, K]
  %m = reshape %t {dims = [1, N, K]} : i1[1, N, K]
  %y = mask_tiles %m {tile_tokens = 64, tile_keys = 96} : i1[1, 64, 683]
})"},
    {"tiles_of_sequences_that_share_a_mask", 0, R"(
graph(%x: DTYPE[1, N, 3, K]) -> (%y) {
  %b = broadcast %x {dims = [B, N, 3, K]} : DTYPE[B, N, 3, K]
  %m = transpose %b {axes = [0, 2, 1, 3]} : DTYPE[B, 3, N, K]
  %y = mask_tiles %m {tile_tokens = 128, tile_keys = 128} : i1[B, 3, 32, 512]
})"},
};

const GroupText kSampleGroup = {"sample", 0, R"(
graph(%x: DTYPE[N, WIDTH], %t: f32[N], %k: i32[N], %p: f32[N], %seed: i32[N], %step: i32[N]) -> (%y) {
  %y = sample %x, %t, %k, %p, %seed, %step : i32[N]
})"};

}  // namespace sinter
