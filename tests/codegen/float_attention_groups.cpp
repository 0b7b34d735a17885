#include "codegen/float_attention_groups.h"

namespace sinter {

const std::vector<GroupText> kFloatAttentionGroups = {
    {"float_heads", 0, R"(
graph(%q: f32[N, WIDTH], %k: f32[K, WIDTH], %v: f32[K, WIDTH], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 1, kv_heads = 1, scale = 0.125} : f32[N, WIDTH]
})"},
    {"float_groups_of_merged_projection", 0, R"(
graph(%qkv: f32[N, 160], %k: f32[K, 32], %v: f32[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 32, size = 128} : f32[N, 128]
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 8, kv_heads = 2, scale = 0.3, softcap = 5.0} : f32[N, 128]
})"},
    {"float_unaligned", 0, R"(
graph(%qkv: f32[N, 77], %kv: f32[K, 38], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 3, size = 48} : f32[N, 48]
  %k = slice %kv {axis = 1, begin = 1, size = 16} : f32[K, 16]
  %v = slice %kv {axis = 1, begin = 17, size = 16} : f32[K, 16]
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 3, kv_heads = 1, scale = 0.25, window = 70} : f32[N, 48]
})"},
    {"float_odd_heads", 0, R"(
graph(%q: f32[N, 30], %k: f32[K, 10], %v: f32[K, 7], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 3, kv_heads = 1, scale = -0.5, window = 1} : f32[N, 21]
})"},
    {"float_odd_parts", 0, R"(
graph(%q: f32[N, 70], %k: f32[K, 35], %v: f32[K, 33], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 1, scale = 0.0} : f32[N, 66]
})"},
    {"float_short_heads", 0, R"(
graph(%q: f32[N, 4], %k: f32[200, 2], %v: f32[200, 2], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 1, scale = 1.0} : f32[N, 4]
})"},
    {"float_wide_values", 0, R"(
graph(%q: f32[N, 24], %k: f32[K, 24], %v: f32[K, 144], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 1, kv_heads = 1, scale = 0.5, softcap = 1.5, window = 9000000000} : f32[N, 144]
})"},
    {"float_of_one_query", 0, R"(
graph(%x: f32[1, 40], %k: f32[K, 40], %v: f32[K, 24], %first: i32[N]) -> (%y) {
  %q = broadcast %x {dims = [N, 40]} : f32[N, 40]
  %y = attention %q, %k, %v, %first, %first {order = float_attention, heads = 1, kv_heads = 1, scale = 1.0} : f32[N, 24]
})"},
    {"float_rotated", 0, R"(
graph(%qkv: f32[N, 96], %cos: f32[N, 8], %sin: f32[N, 8], %k: f32[K, 32], %v: f32[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 16, size = 64} : f32[N, 64]
  %heads = reshape %q {dims = [N, 2, 32]} : f32[N, 2, 32]
  %rotated = rope %heads, %cos, %sin {rotary = 16, pairing = "half"} : f32[N, 2, 32]
  %rows = reshape %rotated {dims = [N, 64]} : f32[N, 64]
  %y = attention %rows, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 1, scale = 0.2} : f32[N, 64]
})"},
    {"float_gated_of_a_sum", 0, R"(
graph(%x: f32[N, 32], %bias: f32[32], %gate: f32[N, 32], %k: f32[K, 16], %v: f32[K, 16], %first: i32[N], %last: i32[N]) -> (%q, %y, %z) {
  %q = add %x, %bias : f32[N, 32]
  %a = attention %q, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 1, scale = 0.25} : f32[N, 32]
  %g = sigmoid %gate : f32[N, 32]
  %y = mul %a, %g : f32[N, 32]
  %z = add %a, %x : f32[N, 32]
})"},
    {"float_checked", 0, R"(
graph(%q: f32[N, 32], %k: f32[K, 32], %v: f32[K, 32], %i: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %i, %last {order = float_attention, heads = 1, kv_heads = 1, scale = 0.25, checked = 1} : f32[N, 32]
})"},
    {"float_of_any_range", 0, R"(
graph(%q: f32[N, 32], %k: f32[K, 32], %v: f32[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 2, scale = 0.25, any_range = 1, empty_zero = 1} : f32[N, 32]
})"},
    {"float_sink", 0, R"(
graph(%q: f32[N, 48], %k: f32[K, 16], %v: f32[K, 24], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 3, kv_heads = 1, scale = 0.25, window = 9, sink = 4} : f32[N, 72]
})"},
    {"float_sequences", 0, R"(
graph(%q: f32[B, 2, N, 32], %k: f32[B, 2, K, 16], %v: f32[B, 2, K, 16], %first: i32[B, 2, N], %last: i32[B, 2, N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 2, kv_heads = 1, scale = 0.25, any_range = 1} : f32[B, 2, N, 32]
})"},
    {"float_masked_sequences", 0, R"(
graph(%q: f32[B, N, 32], %k: f32[B, K, 16], %v: f32[B, K, 16], %first: i32[B, N], %last: i32[B, N], %mask: i1[B, 1, 1, K]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = float_attention, heads = 2, kv_heads = 1, scale = 0.25, sink = 70, any_range = 1, empty_zero = 1} : f32[B, N, 32]
})"},
    {"float_masked_heads", 0, R"(
graph(%q: f32[N, 24], %k: f32[K, 12], %v: f32[K, 12], %first: i32[N], %last: i32[N], %mask: f32[2, N, K]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = float_attention, heads = 2, kv_heads = 1, scale = 0.25, softcap = 3.0, window = 90} : f32[N, 24]
})"},
    {"float_mask_of_f16", 0, R"(
graph(%q: f32[B, N, 16], %k: f32[B, K, 16], %v: f32[B, K, 16], %first: i32[B, N], %last: i32[B, N], %mask: f16[1, 1, N, K]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = float_attention, heads = 1, kv_heads = 1, scale = 0.25, any_range = 1} : f32[B, N, 16]
})"},
    {"float_one_mask", 0, R"(
graph(%q: f32[N, 16], %k: f32[K, 16], %v: f32[K, 16], %first: i32[N], %last: i32[N], %mask: i1[1, 1, 1]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last, %mask {order = float_attention, heads = 1, kv_heads = 1, scale = 0.25} : f32[N, 16]
})"},
};

}  // namespace sinter
