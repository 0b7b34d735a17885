// Groups whose row numbers may name no row.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kCheckedGroups = {
    {"embedding_norm", 1, R"(
graph(%table: DTYPE[50, 72], %i: i32[N], %p: DTYPE[N, 72], %w: DTYPE[72], %b: DTYPE[72]) -> (%x, %y) {
  %e = embedding %table, %i {checked = 1} : DTYPE[N, 72]
  %x = add %e, %p : DTYPE[N, 72]
  %y = layer_norm %x, %w, %b {eps = 1e-5} : DTYPE[N, 72]
})"},
    {"embedding_of_computed_ids", 1, R"(
graph(%table: DTYPE[K, 24], %n: i32[N], %m: i32[N]) -> (%i, %y) {
  %i = add %n, %m : i32[N]
  %e = embedding %table, %i {checked = 1} : DTYPE[N, 24]
  %y = exp %e : DTYPE[N, 24]
})"},
    {"embedding_of_elements", 0, R"(
graph(%table: DTYPE[K, 5], %n: i32[N], %m: i32[N]) -> (%i, %y) {
  %i = sub %n, %m : i32[N]
  %y = embedding %table, %i {checked = 1} : DTYPE[N, 5]
})"},
    {"embeddings_of_two_tables", 0, R"(
graph(%a: DTYPE[50, 16], %b: DTYPE[9, 16], %c: DTYPE[50, 16], %i: i32[N]) -> (%y, %z) {
  %d = embedding %a, %i {checked = 1} : DTYPE[N, 16]
  %e = embedding %b, %i {checked = 1} : DTYPE[N, 16]
  %f = embedding %c, %i {checked = 1} : DTYPE[N, 16]
  %y = add %d, %e : DTYPE[N, 16]
  %z = add %y, %f : DTYPE[N, 16]
})"},
    {"embedding_of_views", 0, R"(
graph(%table: DTYPE[72, 50], %m: i32[2, N]) -> (%y) {
  %turned = transpose %table {axes = [1, 0]} : DTYPE[50, 72]
  %t = slice %turned {axis = 1, begin = 3, size = 20} : DTYPE[50, 20]
  %row = slice %m {axis = 0, begin = 1, size = 1} : i32[1, N]
  %i = reshape %row {dims = [N]} : i32[N]
  %y = embedding %t, %i {checked = 1} : DTYPE[N, 20]
})"},
    {"embedding_of_what_is_computed", 0, R"(
graph(%i: i32[N], %t: i1[40, 16]) -> (%y, %z, %l) {
  %count = iota {axis = 0} : i32[50, 16]
  %y = embedding %count, %i {checked = 1} : i32[N, 16]
  %one = constant {value = 1.0} : DTYPE[50, 16]
  %z = embedding %one, %i {checked = 1} : DTYPE[N, 16]
  %l = embedding %t, %i {checked = 1} : i1[N, 16]
})"},
    {"embedding_of_an_embedding", 0, R"(
graph(%table: DTYPE[50, 16], %next: i32[30, 1], %i: i32[N]) -> (%j, %y) {
  %rows = embedding %next, %i {checked = 1} : i32[N, 1]
  %flat = reshape %rows {dims = [N]} : i32[N]
  %j = copy %flat : i32[N]
  %y = embedding %table, %j {checked = 1} : DTYPE[N, 16]
})"},
    {"embeddings_of_the_only_row", 0, R"(
graph(%t: DTYPE[1, 16], %s: DTYPE[1, 1], %i: i32[N], %j: i32[N]) -> (%y, %z) {
  %d = embedding %t, %i {checked = 1} : DTYPE[N, 16]
  %e = embedding %t, %j {checked = 1} : DTYPE[N, 16]
  %de = sub %d, %e : DTYPE[N, 16]
  %row = broadcast %t : DTYPE[N, 16]
  %y = sub %row, %de : DTYPE[N, 16]
  %f = embedding %s, %i {checked = 1} : DTYPE[N, 1]
  %g = embedding %s, %j {checked = 1} : DTYPE[N, 1]
  %z = sub %f, %g : DTYPE[N, 1]
})"},
    {"embedding_in_a_part_of_a_row", 0, R"(
graph(%table: DTYPE[50, 16], %x: DTYPE[N, 8], %i: i32[N]) -> (%y) {
  %e = embedding %table, %i {checked = 1} : DTYPE[N, 16]
  %y = concat %x, %e, %x {axis = 1} : DTYPE[N, 32]
})"},
    {"gather_of_elements", 0, R"(
graph(%x: DTYPE[N, 40], %i: i32[N, 24]) -> (%y) {
  %g = gather %x, %i {axis = 1, checked = 1} : DTYPE[N, 24]
  %y = exp %g : DTYPE[N, 24]
})"},
    {"gather_of_whole_rows", 0, R"(
graph(%x: DTYPE[N, 7, 24], %i: i32[5]) -> (%y) {
  %r = reshape %i {dims = [1, 5, 1]} : i32[1, 5, 1]
  %b = broadcast %r {dims = [N, 5, 24]} : i32[N, 5, 24]
  %y = gather %x, %b {axis = 1, checked = 1} : DTYPE[N, 5, 24]
})"},
    {"append_of_chunks", 1, R"(
graph(%k: DTYPE[N, 32], %cache: DTYPE[64, 32], %i: i32[N]) -> (%s, %c) {
  %s = silu %k : DTYPE[N, 32]
  %c = kv_append %cache, %s, %i {checked = 1} : DTYPE[64, 32]
})"},
    {"append_of_elements", 0, R"(
graph(%k: DTYPE[N, 3, 5], %cache: DTYPE[K, 3, 5], %n: i32[N], %m: i32[N]) -> (%i, %c) {
  %i = add %n, %m : i32[N]
  %c = kv_append %cache, %k, %i {checked = 1} : DTYPE[K, 3, 5]
})"},
    {"append_of_a_norm", 2, R"(
graph(%k: DTYPE[N, 64], %w: DTYPE[32], %c: DTYPE[N, 16], %s: DTYPE[N, 16], %cache: DTYPE[64, 2, 32], %i: i32[N]) -> (%a) {
  %h = reshape %k {dims = [N, 2, 32]} : DTYPE[N, 2, 32]
  %n = rms_norm %h, %w {eps = 1e-6} : DTYPE[N, 2, 32]
  %y = rope %n, %c, %s {rotary = 32, pairing = "half"} : DTYPE[N, 2, 32]
  %a = kv_append %cache, %y, %i {checked = 1} : DTYPE[64, 2, 32]
})"},
    {"column_sum_of_an_embedding", 0, R"(
graph(%table: DTYPE[50, 40], %i: i32[N]) -> (%y) {
  %e = embedding %table, %i {checked = 1} : DTYPE[N, 40]
  %y = reduce_sum %e {axes = [0]} : DTYPE[1, 40]
})"},
    {"probabilities", 2, R"(
graph(%x: f32[3, N, K], %i: i32[N], %last: i32[N]) -> (%y) {
  %y = attention_softmax %x, %i, %last {scale = 0.125, window = 9, dtype = DTYPE, checked = 1} : DTYPE[3, N, K]
})"},
    {"gemv_of_an_embedding", 1, R"(
graph(%table: DTYPE[50, 72], %w: DTYPE[70, 72], %i: i32[B]) -> (%y) {
  %e = embedding %table, %i {checked = 1} : DTYPE[B, 72]
  %x = silu %e : DTYPE[B, 72]
  %y = linear %x, %w {order = gemv, splits = 1} : DTYPE[B, 70]
})"},
    {"gemv_appended", 1, R"(
graph(%x: DTYPE[B, 72], %w: DTYPE[96, 72], %kc: DTYPE[64, 32], %vc: DTYPE[64, 32], %i: i32[B]) -> (%q, %ka, %va) {
  %p = linear %x, %w {order = gemv, splits = 2} : DTYPE[B, 96]
  %s = slice %p {axis = 1, begin = 0, size = 32} : DTYPE[B, 32]
  %q = silu %s : DTYPE[B, 32]
  %k = slice %p {axis = 1, begin = 32, size = 32} : DTYPE[B, 32]
  %ka = kv_append %kc, %k, %i {checked = 1} : DTYPE[64, 32]
  %v = slice %p {axis = 1, begin = 64, size = 32} : DTYPE[B, 32]
  %va = kv_append %vc, %v, %i {checked = 1} : DTYPE[64, 32]
})"},
    {"attention_in_splits", 0, R"(
graph(%q: DTYPE[B, 96], %k: DTYPE[200, 32], %v: DTYPE[200, 32], %i: i32[B], %last: i32[B]) -> (%y) {
  %y = attention %q, %k, %v, %i, %last {order = decode_attention, heads = 6, kv_heads = 2, scale = 0.25, splits = 4, checked = 1} : DTYPE[B, 96]
})"},
    {"attention_of_any_number_of_rows", 0, R"(
graph(%q: DTYPE[B, 32], %k: DTYPE[K, 16], %v: DTYPE[K, 24], %i: i32[B], %last: i32[B]) -> (%y) {
  %y = attention %q, %k, %v, %i, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 1, window = 30, softcap = 4.0, checked = 1} : DTYPE[B, 48]
})"},
};

}  // namespace sinter
