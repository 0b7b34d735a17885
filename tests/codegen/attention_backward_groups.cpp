// Groups around gradients of attention, and around attention with its log-sums: heads of all kinds
// of widths, views, groups of heads, sequences and masks.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kGradientGroups = {
    {"gradients_of_keys_and_values", 0, R"(
graph(%q: DTYPE[N, WIDTH], %k: DTYPE[K, WIDTH], %v: DTYPE[K, WIDTH], %first: i32[N], %last: i32[N], %g: DTYPE[N, WIDTH], %s: f32[1, N], %d: f32[1, N]) -> (%y, %z) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 1, kv_heads = 1, scale = 0.125} : DTYPE[K, WIDTH]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 1, kv_heads = 1, scale = 0.125} : DTYPE[K, WIDTH]
})"},
    {"gradient_of_queries", 0, R"(
graph(%q: DTYPE[N, WIDTH], %k: DTYPE[K, WIDTH], %v: DTYPE[K, WIDTH], %first: i32[N], %last: i32[N], %g: DTYPE[N, WIDTH], %s: f32[1, N], %d: f32[1, N]) -> (%y) {
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 1, kv_heads = 1, scale = 0.125} : DTYPE[N, WIDTH]
})"},
    {"gradient_of_values_alone", 0, R"(
graph(%q: DTYPE[B, N, 96], %k: DTYPE[B, K, 32], %v: DTYPE[B, K, 40], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 120], %s: f32[B, 6, N], %d: f32[B, 6, N]) -> (%z) {
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 6, kv_heads = 2, scale = -0.25, window = 70} : DTYPE[B, K, 40]
})"},
    {"gradients_of_grouped_heads", 0, R"(
graph(%q: DTYPE[B, N, 96], %k: DTYPE[B, K, 32], %v: DTYPE[B, K, 40], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 120], %s: f32[B, 6, N], %d: f32[B, 6, N], %m: i1[B, 1, 1, K]) -> (%z, %y) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d, %m {heads = 6, kv_heads = 2, scale = 0.3, any_range = 1} : DTYPE[B, K, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d, %m {heads = 6, kv_heads = 2, scale = 0.3, any_range = 1} : DTYPE[B, K, 40]
})"},
    {"gradient_of_grouped_queries_with_dropout", 0, R"(
graph(%q: DTYPE[2, N, 24], %k: DTYPE[2, K, 12], %v: DTYPE[2, K, 10], %first: i32[2, N], %last: i32[2, N], %g: DTYPE[2, N, 20], %s: f32[2, 4, N], %d: f32[2, 4, N], %m: DTYPE[2, 4, N, K], %seeds: i32[3]) -> (%y) {
  %part = slice %seeds {axis = 0, begin = 2, size = 1} : i32[1]
  %seed = reshape %part : i32[]
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d, %m, %seed {heads = 4, kv_heads = 2, scale = 0.3, dropout = 0.1, window = 90} : DTYPE[2, N, 24]
})"},
    {"gradients_of_merged_projection", 0, R"(
graph(%qkv: DTYPE[B, N, 160], %first: i32[B, N], %last: i32[B, N], %gs: DTYPE[B, 2, N, 32], %s: f32[B, 2, N], %d: f32[B, 2, N]) -> (%y, %z) {
  %q = slice %qkv {axis = 2, begin = 0, size = 64} : DTYPE[B, N, 64]
  %k = slice %qkv {axis = 2, begin = 64, size = 32} : DTYPE[B, N, 32]
  %v = slice %qkv {axis = 2, begin = 96, size = 32} : DTYPE[B, N, 32]
  %gt = transpose %gs {axes = [0, 2, 1, 3]} : DTYPE[B, N, 2, 32]
  %g = reshape %gt {dims = [B, N, 64]} : DTYPE[B, N, 64]
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, N, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, N, 32]
})"},
    {"gradients_under_a_soft_cap_with_dropout", 0, R"(
graph(%q: DTYPE[B, N, 96], %k: DTYPE[B, K, 32], %v: DTYPE[B, K, 40], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 120], %s: f32[B, 6, N], %d: f32[B, 6, N], %seed: i32[]) -> (%z, %y) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d, %seed {heads = 6, kv_heads = 2, scale = 0.3, softcap = 2.5, dropout = 0.3, any_range = 1} : DTYPE[B, K, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d, %seed {heads = 6, kv_heads = 2, scale = 0.3, softcap = 2.5, dropout = 0.3, any_range = 1} : DTYPE[B, K, 40]
})"},
    {"gradient_of_queries_under_a_soft_cap", 0, R"(
graph(%q: DTYPE[2, N, 24], %k: DTYPE[2, K, 12], %v: DTYPE[2, K, 10], %first: i32[2, N], %last: i32[2, N], %g: DTYPE[2, N, 20], %s: f32[2, 4, N], %d: f32[2, 4, N], %m: DTYPE[2, 4, N, K]) -> (%y) {
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d, %m {heads = 4, kv_heads = 2, scale = -0.3, softcap = 3.0, window = 90} : DTYPE[2, N, 24]
})"},
    {"gradients_placed_in_a_value", 0, R"(
graph(%q: DTYPE[B, N, 64], %k: DTYPE[B, K, 32], %v: DTYPE[B, K, 32], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 64], %s: f32[B, 2, N], %d: f32[B, 2, N], %base: DTYPE[B, K, 4, 32]) -> (%c) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, K, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, K, 32]
  %y1 = reshape %y {dims = [B, K, 1, 32]} : DTYPE[B, K, 1, 32]
  %z1 = reshape %z {dims = [B, K, 1, 32]} : DTYPE[B, K, 1, 32]
  %b = place %y1, %base {axis = 2, begin = 2, size = 4} : DTYPE[B, K, 4, 32]
  %c = place %z1, %b {axis = 2, begin = 3, size = 4} : DTYPE[B, K, 4, 32]
})"},
    {"gradients_with_other_axes", 0, R"(
graph(%q: DTYPE[B, N, 64], %k: DTYPE[B, K, 32], %v: DTYPE[B, K, 32], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 64], %s: f32[B, 2, N], %d: f32[B, 2, N]) -> (%c, %b) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, K, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[B, K, 32]
  %y1 = reshape %y {dims = [B, K, 4, 8]} : DTYPE[B, K, 4, 8]
  %z1 = reshape %z {dims = [B, K, 1, 32]} : DTYPE[B, K, 1, 32]
  %b = copy %y1 : DTYPE[B, K, 4, 8]
  %c = copy %z1 : DTYPE[B, K, 1, 32]
})"},
    {"gradient_of_queries_begins_a_value", 0, R"(
graph(%q: DTYPE[N, 60], %k: DTYPE[K, 20], %v: DTYPE[K, 24], %first: i32[N], %last: i32[N], %g: DTYPE[N, 72], %s: f32[3, N], %d: f32[3, N]) -> (%a) {
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 3, kv_heads = 1, scale = 0.2} : DTYPE[N, 60]
  %a = place %y {axis = 1, begin = 9, size = 100} : DTYPE[N, 100]
})"},
    {"gradient_of_queries_at_single_elements", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %first: i32[N], %last: i32[N], %g: DTYPE[N, 64], %s: f32[2, N], %d: f32[2, N], %base: DTYPE[N, 16, 9]) -> (%a) {
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 2, kv_heads = 1, scale = 0.2} : DTYPE[N, 64]
  %t = reshape %y {dims = [N, 16, 4]} : DTYPE[N, 16, 4]
  %a = place %t, %base {axis = 2, begin = 5, size = 9} : DTYPE[N, 16, 9]
})"},
    {"gradients_with_sums_of_rows", 0, R"(
graph(%q: DTYPE[B, N, 96], %k: DTYPE[B, 192, 32], %v: DTYPE[B, 192, 40], %first: i32[B, N], %last: i32[B, N], %g: DTYPE[B, N, 120], %s: f32[B, 6, N], %d: f32[B, 6, N], %base: DTYPE[B, 192, 100]) -> (%a, %z, %sums, %more) {
  %y = attention_key_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 6, kv_heads = 2, scale = 0.2} : DTYPE[B, 192, 32]
  %z = attention_value_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 6, kv_heads = 2, scale = 0.2} : DTYPE[B, 192, 40]
  %a = place %y, %base {axis = 2, begin = 8, size = 100} : DTYPE[B, 192, 100]
  %yf = cast %y {dtype = f32} : f32[B, 192, 32]
  %yb = reshape %yf {dims = [B, 3, 64, 32]} : f32[B, 3, 64, 32]
  %sums = reduce_sum %yb {axes = [2]} : f32[B, 3, 1, 32]
  %zb = reshape %z {dims = [B, 3, 64, 40]} : DTYPE[B, 3, 64, 40]
  %zf = cast %zb {dtype = f32} : f32[B, 3, 64, 40]
  %more = reduce_sum %zf {axes = [2]} : f32[B, 3, 1, 40]
})"},
    {"sums_of_rows_alone", 0, R"(
graph(%q: DTYPE[2, 128, 120], %k: DTYPE[2, K, 40], %v: DTYPE[2, K, 24], %first: i32[2, 128], %last: i32[2, 128], %g: DTYPE[2, 128, 72], %s: f32[2, 3, 128], %d: f32[2, 3, 128]) -> (%sums) {
  %y = attention_query_gradient %q, %k, %v, %first, %last, %g, %s, %d {heads = 3, kv_heads = 1, scale = 0.2, any_range = 1} : DTYPE[2, 128, 120]
  %f = cast %y {dtype = f32} : f32[2, 128, 120]
  %b = reshape %f {dims = [4, 64, 120]} : f32[4, 64, 120]
  %sums = reduce_sum %b {axes = [1]} : f32[4, 1, 120]
})"},
    {"attention_with_log_sums_and_dropout", 0, R"(
graph(%q: DTYPE[B, N, 48], %k: DTYPE[B, K, 16], %v: DTYPE[B, K, 24], %first: i32[B, N], %last: i32[B, N], %seed: i32[]) -> (%s, %y) {
  %s = attention_log_sum %q, %k, %v, %first, %last {heads = 3, kv_heads = 1, scale = 0.25, window = 90, any_range = 1} : f32[B, 3, N]
  %y = attention %q, %k, %v, %first, %last, %seed {order = tiled_attention, heads = 3, kv_heads = 1, scale = 0.25, dropout = 0.2, window = 90, any_range = 1, empty_zero = 1} : DTYPE[B, N, 72]
})"},
    {"attention_with_log_sums_under_a_soft_cap", 0, R"(
graph(%q: DTYPE[B, N, 48], %k: DTYPE[B, K, 16], %v: DTYPE[B, K, 24], %first: i32[B, N], %last: i32[B, N]) -> (%s, %y) {
  %s = attention_log_sum %q, %k, %v, %first, %last {heads = 3, kv_heads = 1, scale = 0.25, softcap = 4.0, any_range = 1} : f32[B, 3, N]
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 3, kv_heads = 1, scale = 0.25, softcap = 4.0, any_range = 1, empty_zero = 1} : DTYPE[B, N, 72]
})"},
    {"log_sums_alone", 0, R"(
graph(%q: DTYPE[N, 60], %k: DTYPE[K, 20], %v: DTYPE[K, 24], %first: i32[N], %last: i32[N], %m: DTYPE[3, N, K]) -> (%s) {
  %s = attention_log_sum %q, %k, %v, %first, %last, %m {heads = 3, kv_heads = 1, scale = 0.25} : f32[3, N]
})"},
};

}  // namespace sinter
