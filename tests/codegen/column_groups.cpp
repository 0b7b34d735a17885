#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kColumnGroups = {
    {"bias_gradient", 0, R"(
graph(%x: DTYPE[WIDTH, M]) -> (%y) {
  %y = reduce_sum %x {axes = [0]} : DTYPE[1, M]
})"},
    {"whole_chunks", 0, R"(
graph(%x: DTYPE[WIDTH, W]) -> (%y) {
  %y = reduce_max %x {axes = [0]} : DTYPE[1, W]
})"},
    {"norm_gradients", 0, R"(
graph(%dy: DTYPE[WIDTH, 136], %x: DTYPE[WIDTH, 136], %mean: DTYPE[WIDTH, 1], %w: DTYPE[136]) -> (%gamma, %beta, %t, %last) {
  %c = sub %x, %mean : DTYPE[WIDTH, 136]
  %p = mul %dy, %c : DTYPE[WIDTH, 136]
  %t = tanh %p : DTYPE[WIDTH, 136]
  %gamma = reduce_sum %p {axes = [0]} : DTYPE[1, 136]
  %beta = reduce_sum %dy {axes = [0]} : DTYPE[1, 136]
  %d = add %gamma, %beta : DTYPE[1, 136]
  %last = mul %d, %w : DTYPE[1, 136]
})"},
    {"sum_in_float", 0, R"(
graph(%x: DTYPE[WIDTH, 100], %n: f32[1, 100]) -> (%y, %s) {
  %f = cast %x {dtype = f32} : f32[WIDTH, 100]
  %q = mul %f, %f : f32[WIDTH, 100]
  %s = reduce_sum %q {axes = [0]} : f32[1, 100]
  %h = reduce_max %q {axes = [0]} : f32[1, 100]
  %r = sub %s, %h : f32[1, 100]
  %m = add %r, %n : f32[1, 100]
  %y = cast %m {dtype = DTYPE} : DTYPE[1, 100]
})"},
    {"middle_axis", 0, R"(
graph(%x: DTYPE[B, WIDTH, M], %b: DTYPE[M]) -> (%y) {
  %t = add %x, %b : DTYPE[B, WIDTH, M]
  %s = reduce_sum %t {axes = [1]} : DTYPE[B, 1, M]
  %y = exp %s : DTYPE[B, 1, M]
})"},
    {"middle_axes", 0, R"(
graph(%x: DTYPE[3, N, WIDTH, 24], %c: DTYPE[N, 1, 24]) -> (%y, %p) {
  %p = mul %x, %c : DTYPE[3, N, WIDTH, 24]
  %s = reduce_sum %p {axes = [1, 2]} : DTYPE[3, 1, 1, 24]
  %y = neg %s : DTYPE[3, 1, 1, 24]
})"},
    {"columns_of_several_axes", 0, R"(
graph(%x: DTYPE[N, WIDTH, 1, 3, 8], %b: DTYPE[3, 1]) -> (%y) {
  %t = add %x, %b : DTYPE[N, WIDTH, 1, 3, 8]
  %s = reduce_max %t {axes = [0, 1]} : DTYPE[1, 1, 1, 3, 8]
  %y = mul %s, %b : DTYPE[1, 1, 1, 3, 8]
})"},
    {"rows_of_any_number", 0, R"(
graph(%x: DTYPE[K, 1, WIDTH], %g: DTYPE[K, 1, WIDTH]) -> (%y, %s) {
  %s = silu %g : DTYPE[K, 1, WIDTH]
  %p = mul %s, %x : DTYPE[K, 1, WIDTH]
  %y = reduce_sum %p {axes = [0]} : DTYPE[1, 1, WIDTH]
})"},
    {"few_columns", 0, R"(
graph(%x: DTYPE[WIDTH, 2]) -> (%y) {
  %y = reduce_sum %x {axes = [0]} : DTYPE[1, 2]
})"},
    {"operands_through_views", 0, R"(
graph(%x: DTYPE[16, WIDTH], %a: DTYPE[WIDTH, 4, 4], %e: DTYPE[WIDTH, 24]) -> (%y) {
  %t = transpose %x {axes = [1, 0]} : DTYPE[WIDTH, 16]
  %r = reshape %a : DTYPE[WIDTH, 16]
  %h = slice %e {axis = 1, begin = 8, size = 16} : DTYPE[WIDTH, 16]
  %s = add %t, %r : DTYPE[WIDTH, 16]
  %u = add %s, %h : DTYPE[WIDTH, 16]
  %m = reduce_sum %u {axes = [0]} : DTYPE[1, 16]
  %y = sqrt %m : DTYPE[1, 16]
})"},
    {"results_of_fewer_axes", 0, R"(
graph(%x: DTYPE[4, WIDTH, 24], %b: DTYPE[4, 24]) -> (%p, %y) {
  %p = exp %x : DTYPE[4, WIDTH, 24]
  %s = reduce_sum %p {axes = [1]} : DTYPE[4, 1, 24]
  %r = reshape %s : DTYPE[4, 24]
  %y = mul %r, %b : DTYPE[4, 24]
})"},
    {"joined_in_prologue", 0, R"(
graph(%a: DTYPE[WIDTH, 16], %b: DTYPE[WIDTH, 5]) -> (%y) {
  %k = concat %a, %b {axis = 1} : DTYPE[WIDTH, 21]
  %s = gelu %k : DTYPE[WIDTH, 21]
  %y = reduce_sum %s {axes = [0]} : DTYPE[1, 21]
})"},
    {"stored_and_summed", 0, R"(
graph(%x: DTYPE[WIDTH, 24], %b: f32[24]) -> (%y, %sum, %wide) {
  %f = cast %x {dtype = f32} : f32[WIDTH, 24]
  %p = mul %f, %b : f32[WIDTH, 24]
  %y = cast %p {dtype = DTYPE} : DTYPE[WIDTH, 24]
  %sum = reduce_sum %y {axes = [0]} : DTYPE[1, 24]
  %z = cast %y {dtype = f32} : f32[WIDTH, 24]
  %wide = reduce_sum %z {axes = [0]} : f32[1, 24]
})"},
};

}  // namespace sinter
