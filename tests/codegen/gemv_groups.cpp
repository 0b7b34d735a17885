// Groups around a gemv, whose operand has rows of any multiple of 8 elements.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kGemvGroups = {
    {"gemv_alone", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[70, WIDTH]) -> (%y) {
  %y = linear %x, %w {order = gemv, splits = 1} : DTYPE[B, 70]
})"},
    {"gemv_of_one_row", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[1, WIDTH], %b: DTYPE[1]) -> (%y) {
  %y = linear %x, %w, %b {order = gemv, splits = 16} : DTYPE[B, 1]
})"},
    {"gemv_bias_residual", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[70, WIDTH], %b: DTYPE[70], %r: DTYPE[B, 70]) -> (%y) {
  %p = linear %x, %w, %b {order = gemv, splits = 2} : DTYPE[B, 70]
  %y = add %p, %r : DTYPE[B, 70]
})"},
    {"gemv_norm_prologue", 1, R"(
graph(%x: DTYPE[B, WIDTH], %n: DTYPE[WIDTH], %w: DTYPE[70, WIDTH]) -> (%y) {
  %h = rms_norm %x, %n {eps = 1e-5} : DTYPE[B, WIDTH]
  %y = linear %h, %w {order = gemv, splits = 4} : DTYPE[B, 70]
})"},
    {"gemv_stored_norm_gated", 1, R"(
graph(%x: DTYPE[B, WIDTH], %r: DTYPE[B, WIDTH], %n: DTYPE[WIDTH], %b: DTYPE[WIDTH], %w: DTYPE[140, WIDTH]) -> (%s, %y, %h) {
  %s = add %x, %r : DTYPE[B, WIDTH]
  %h = layer_norm %s, %n, %b {eps = 1e-5} : DTYPE[B, WIDTH]
  %p = linear %h, %w {order = gemv, splits = 2} : DTYPE[B, 140]
  %g = slice %p {axis = 1, begin = 0, size = 70} : DTYPE[B, 70]
  %u = slice %p {axis = 1, begin = 70, size = 70} : DTYPE[B, 70]
  %a = silu %g : DTYPE[B, 70]
  %y = mul %a, %u : DTYPE[B, 70]
})"},
    {"gemv_gated_with_bias", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[42, WIDTH], %b: DTYPE[42], %r: DTYPE[B, 14]) -> (%y, %z) {
  %p = linear %x, %w, %b {order = gemv, splits = 4} : DTYPE[B, 42]
  %q = reshape %p {dims = [B, 3, 14]} : DTYPE[B, 3, 14]
  %one = slice %q {axis = 1, begin = 0, size = 1} : DTYPE[B, 1, 14]
  %two = slice %q {axis = 1, begin = 2, size = 1} : DTYPE[B, 1, 14]
  %m = mul %one, %two : DTYPE[B, 1, 14]
  %f = reshape %m {dims = [B, 14]} : DTYPE[B, 14]
  %y = add %f, %r : DTYPE[B, 14]
  %z = gelu_tanh %y : DTYPE[B, 14]
})"},
    {"gemv_of_a_slice", 1, R"(
graph(%all: DTYPE[24, WIDTH], %w: DTYPE[30, WIDTH], %r: DTYPE[5, 6]) -> (%p, %y) {
  %t = reshape %all {dims = [8, 3, WIDTH]} : DTYPE[8, 3, WIDTH]
  %u = slice %t {axis = 1, begin = 1, size = 1} : DTYPE[8, 1, WIDTH]
  %x = reshape %u {dims = [8, WIDTH]} : DTYPE[8, WIDTH]
  %p = linear %x, %w {order = gemv, splits = 1} : DTYPE[8, 30]
  %h = reshape %p {dims = [8, 5, 6]} : DTYPE[8, 5, 6]
  %y = mul %h, %r : DTYPE[8, 5, 6]
})"},
    {"gemv_of_elements_beside_a_reader", 1, R"(
graph(%x: DTYPE[B, WIDTH], %g: DTYPE[B, WIDTH], %w: DTYPE[9, WIDTH], %b: DTYPE[9]) -> (%y, %z, %a) {
  %s = silu %g : DTYPE[B, WIDTH]
  %a = mul %s, %x : DTYPE[B, WIDTH]
  %y = linear %a, %w, %b {order = gemv, splits = 8} : DTYPE[B, 9]
  %z = relu %y : DTYPE[B, 9]
})"},
    {"gemv_rotated_and_appended", 1, R"(
graph(%x: DTYPE[B, WIDTH], %n: DTYPE[WIDTH], %w: DTYPE[128, WIDTH], %b: DTYPE[128], %c: DTYPE[B, 4], %s: DTYPE[B, 4],
      %kc: DTYPE[64, 32], %vc: DTYPE[64, 32], %slot: i32[B]) -> (%y, %ka, %va) {
  %h = rms_norm %x, %n {eps = 1e-5} : DTYPE[B, WIDTH]
  %p = linear %h, %w, %b {order = gemv, splits = 2} : DTYPE[B, 128]
  %q = slice %p {axis = 1, begin = 0, size = 64} : DTYPE[B, 64]
  %qh = reshape %q {dims = [B, 4, 16]} : DTYPE[B, 4, 16]
  %y = rope %qh, %c, %s {rotary = 8, pairing = "half"} : DTYPE[B, 4, 16]
  %k = slice %p {axis = 1, begin = 64, size = 32} : DTYPE[B, 32]
  %kh = reshape %k {dims = [B, 2, 16]} : DTYPE[B, 2, 16]
  %z = rope %kh, %c, %s {rotary = 8, pairing = "half"} : DTYPE[B, 2, 16]
  %kr = reshape %z {dims = [B, 32]} : DTYPE[B, 32]
  %ka = kv_append %kc, %kr, %slot : DTYPE[64, 32]
  %v = slice %p {axis = 1, begin = 96, size = 32} : DTYPE[B, 32]
  %va = kv_append %vc, %v, %slot : DTYPE[64, 32]
})"},
    {"gemv_interleaved_and_stored", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[60, WIDTH], %c: DTYPE[B, 3], %s: DTYPE[B, 3], %kc: DTYPE[64, 20], %slot: i32[B]) -> (%p, %y, %ka) {
  %p = linear %x, %w {order = gemv, splits = 1} : DTYPE[B, 60]
  %q = slice %p {axis = 1, begin = 0, size = 40} : DTYPE[B, 40]
  %qh = reshape %q {dims = [B, 4, 10]} : DTYPE[B, 4, 10]
  %y = rope %qh, %c, %s {rotary = 6, pairing = "interleaved"} : DTYPE[B, 4, 10]
  %k = slice %p {axis = 1, begin = 40, size = 20} : DTYPE[B, 20]
  %kh = reshape %k {dims = [B, 2, 10]} : DTYPE[B, 2, 10]
  %z = rope %kh, %c, %s {rotary = 6, pairing = "interleaved"} : DTYPE[B, 2, 10]
  %kr = reshape %z {dims = [B, 20]} : DTYPE[B, 20]
  %ka = kv_append %kc, %kr, %slot : DTYPE[64, 20]
})"},
    {"gemv_beside_a_cast_of_its_operand", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[WIDTH, WIDTH]) -> (%c, %y) {
  %p = linear %x, %w {order = gemv, splits = 1} : DTYPE[B, WIDTH]
  %c = cast %x {dtype = f32} : f32[B, WIDTH]
  %q = cast %p {dtype = f32} : f32[B, WIDTH]
  %y = add %c, %q : f32[B, WIDTH]
})"},
    {"gemv_of_five_units", 1, R"(
graph(%x: DTYPE[B, WIDTH], %w: DTYPE[60, WIDTH], %c: DTYPE[B, 4], %s: DTYPE[B, 4]) -> (%y, %z) {
  %p = linear %x, %w {order = gemv, splits = 4} : DTYPE[B, 60]
  %qh = reshape %p {dims = [B, 3, 20]} : DTYPE[B, 3, 20]
  %y = rope %qh, %c, %s {rotary = 8, pairing = "half"} : DTYPE[B, 3, 20]
  %z = exp %y : DTYPE[B, 3, 20]
})"},
};

}  // namespace sinter
