#include "codegen/custom_groups.h"

namespace sinter {

const std::vector<GroupText> kCustomGroups = {
    {"norm", 0, R"(
graph(%x: DTYPE[N, 300], %w: DTYPE[300]) -> (%y) {
  %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 300]
})"},
    {"closed_norm_of_symbolic_rows", 0, R"(
graph(%x: DTYPE[2, N, W], %w: DTYPE[W]) -> (%y) {
  %r = reshape %x {dims = [2, N, W]} : DTYPE[2, N, W]
  %y = custom %r, %w {op = "test.closed_norm", numbers = [1.25e-3]} : DTYPE[2, N, W]
})"},
    {"norm_with_prologue", 0, R"(
graph(%x: DTYPE[N, 300], %r: DTYPE[N, 300], %w: DTYPE[300]) -> (%y) {
  %a = add %x, %r : DTYPE[N, 300]
  %y = custom %a, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 300]
})"},
    {"norm_with_epilogue", 0, R"(
graph(%x: DTYPE[N, 300], %w: DTYPE[300], %b: DTYPE[300]) -> (%s) {
  %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 300]
  %c = add %y, %b : DTYPE[N, 300]
  %s = silu %c : DTYPE[N, 300]
})"},
    {"norm_with_both_all_stored", 0, R"(
graph(%x: DTYPE[N, 300], %r: DTYPE[N, 300], %w: DTYPE[300]) -> (%s, %a, %y, %f) {
  %a = add %x, %r : DTYPE[N, 300]
  %y = custom %a, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 300]
  %s = mul %y, %r : DTYPE[N, 300]
  %f = cast %s {dtype = f32} : f32[N, 300]
})"},
    {"norm_through_views", 0, R"(
graph(%x: DTYPE[9, N, 40], %w: DTYPE[360]) -> (%h) {
  %e = exp %x : DTYPE[9, N, 40]
  %t = transpose %e {axes = [1, 0, 2]} : DTYPE[N, 9, 40]
  %m = reshape %t {dims = [N, 360]} : DTYPE[N, 360]
  %y = custom %m, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 360]
  %v = reshape %y {dims = [N, 9, 40]} : DTYPE[N, 9, 40]
  %list = literal {values = [0.5, 2, -1, 4, 8, 0.25, 1, -3, 7]} : DTYPE[9]
  %c = reshape %list {dims = [9, 1]} : DTYPE[9, 1]
  %h = mul %v, %c : DTYPE[N, 9, 40]
})"},
    {"norm_into_cache", 0, R"(
graph(%x: DTYPE[N, 24], %w: DTYPE[24], %cache: DTYPE[4096, 24], %slot: i32[N]) -> (%k) {
  %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 24]
  %n = neg %y : DTYPE[N, 24]
  %k = kv_append %cache, %n, %slot : DTYPE[4096, 24]
})"},
    {"norm_of_generated_elements", 0, R"(
graph(%w: DTYPE[40]) -> (%y) {
  %i = iota {axis = 1} : i32[N, 40]
  %x = cast %i {dtype = DTYPE} : DTYPE[N, 40]
  %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : DTYPE[N, 40]
})"},
    {"norm_of_one_value_twice", 0, R"(
graph(%x: DTYPE[1]) -> (%z) {
  %e = exp %x : DTYPE[1]
  %y = custom %e, %x {op = "test.rms_norm", numbers = [-0.0]} : DTYPE[1]
  %z = sub %y, %x : DTYPE[1]
})"},
    {"scale", 0, R"(
graph(%x: DTYPE[N, 264], %w: DTYPE[264], %b: DTYPE[264]) -> (%s, %a, %y, %f) {
  %a = tanh %x : DTYPE[N, 264]
  %y = custom %a, %w {op = "test.scale"} : DTYPE[N, 264]
  %s = add %y, %b : DTYPE[N, 264]
  %f = cast %s {dtype = f32} : f32[N, 264]
})"},
    {"scale_of_symbolic_rows", 0, R"(
graph(%x: DTYPE[3, N, W], %w: DTYPE[W]) -> (%s) {
  %y = custom %x, %w {op = "test.scale"} : DTYPE[3, N, W]
  %s = neg %y : DTYPE[3, N, W]
})"},
    {"scale_of_odd_rows", 0, R"(
graph(%x: DTYPE[N, 41], %w: DTYPE[41]) -> (%s) {
  %e = exp %x : DTYPE[N, 41]
  %y = custom %e, %w {op = "test.scale"} : DTYPE[N, 41]
  %s = neg %y : DTYPE[N, 41]
})"},
    {"scale_through_views", 0, R"(
graph(%x: DTYPE[9, N, 40], %u: DTYPE[N, 361], %w: DTYPE[360]) -> (%h) {
  %t = transpose %x {axes = [1, 0, 2]} : DTYPE[N, 9, 40]
  %m = reshape %t {dims = [N, 360]} : DTYPE[N, 360]
  %p = slice %u {axis = 1, begin = 1, size = 360} : DTYPE[N, 360]
  %a = add %m, %p : DTYPE[N, 360]
  %y = custom %a, %w {op = "test.scale"} : DTYPE[N, 360]
  %v = reshape %y {dims = [N, 72, 5]} : DTYPE[N, 72, 5]
  %list = literal {values = [0.5, 2, -1, 4, 8]} : DTYPE[5]
  %h = mul %v, %list : DTYPE[N, 72, 5]
})"},
    {"scale_into_cache", 0, R"(
graph(%x: DTYPE[N, 24], %w: DTYPE[24], %cache: DTYPE[4096, 24], %slot: i32[N]) -> (%k) {
  %y = custom %x, %w {op = "test.scale"} : DTYPE[N, 24]
  %k = kv_append %cache, %y, %slot : DTYPE[4096, 24]
})"},
    {"rotate", 0, R"(
graph(%x: DTYPE[N, 100]) -> (%y) {
  %y = custom %x {op = "test.rotate"} : DTYPE[N, 100]
})"},
    {"fold", 0, R"(
graph(%x: DTYPE[N, 100], %z: DTYPE[N, 50]) -> (%s, %e, %t) {
  %e = tanh %x : DTYPE[N, 100]
  %y = custom %e {op = "test.fold"} : DTYPE[N, 50]
  %t = exp %z : DTYPE[N, 50]
  %s = mul %y, %t : DTYPE[N, 50]
})"},
    {"choose", 0, R"(
graph(%x: i32[N], %a: DTYPE[N], %b: DTYPE[N]) -> (%s) {
  %m = less %a, %b : i1[N]
  %d = add %x, %x : i32[N]
  %y = custom %d, %m {op = "test.choose", numbers = [-7]} : i32[N]
  %s = maximum %y, %x : i32[N]
})"},
    {"above", 0, R"(
graph(%x: DTYPE[N, 4], %t: i1[N, 4]) -> (%s, %y) {
  %n = neg %x : DTYPE[N, 4]
  %y = custom %n {op = "test.above"} : i1[N, 4]
  %s = logical_or %y, %t : i1[N, 4]
})"},
};

}  // namespace sinter
