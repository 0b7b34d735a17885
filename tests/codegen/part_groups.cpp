// Groups whose results stand in rows of several kinds, side by side in one kernel.
#include "codegen/groups.h"

namespace sinter {

const std::vector<GroupText> kPartGroups = {
    {"norms_side_by_side",
     0,
     R"(
graph(%x: DTYPE[N, 5, WIDTH], %wq: DTYPE[WIDTH], %wk: DTYPE[WIDTH]) -> (%q, %k) {
  %xq = slice %x {axis = 1, begin = 0, size = 4} : DTYPE[N, 4, WIDTH]
  %xk = slice %x {axis = 1, begin = 4, size = 1} : DTYPE[N, 1, WIDTH]
  %q = rms_norm %xq, %wq {eps = 1e-5} : DTYPE[N, 4, WIDTH]
  %rows = reshape %xk {dims = [N, WIDTH]} : DTYPE[N, WIDTH]
  %k = rms_norm %rows, %wk {eps = 1e-5} : DTYPE[N, WIDTH]
})",
     {{2, {0}}, {1, {1}}}},
    // The results have another order than the parts; each part has several passes or stages.
    {"rows_elements_and_short_rows",
     0,
     R"(
graph(%x: DTYPE[N, WIDTH], %z: f32[M, 3, 11], %cache: DTYPE[W, WIDTH], %slot: i32[N], %r: DTYPE[M, K]) -> (%short, %next, %e, %a, %sum) {
  %s = add %x, %x : DTYPE[N, WIDTH]
  %y = softmax %s : DTYPE[N, WIDTH]
  %next = kv_append %cache, %y, %slot : DTYPE[W, WIDTH]
  %short = softmax %z : f32[M, 3, 11]
  %e = neg %r : DTYPE[M, K]
  %sum = reduce_sum %x {axes = [1]} : DTYPE[N, 1]
  %a = gelu_tanh %x : DTYPE[N, WIDTH]
})",
     {{1, {1, 4}}, {0, {2, 3}}, {2, {0}}}},
    // Tables of two parts, and a part of constant size beside one of a symbol's.
    {"tables_of_two_parts",
     0,
     R"(
graph(%i: i32[N, 3], %j: i32[40, 3]) -> (%a, %b) {
  %l = literal {values = [3, 1, 2]} : i32[3]
  %m = literal {values = [7, 5, 6]} : i32[3]
  %a = add %i, %l : i32[N, 3]
  %b = add %j, %m : i32[40, 3]
})",
     {{0, {0}}, {0, {1}}}},
    // Three parts with one text, of which another part stands between; one reads another operand
    // first.
    {"parts_with_one_text",
     0,
     R"(
graph(%a: DTYPE[N, WIDTH], %b: DTYPE[N, WIDTH], %c: f32[M, K], %d: DTYPE[N, WIDTH], %e: DTYPE[N, WIDTH], %s: DTYPE[]) -> (%ab, %row, %de, %db) {
  %as = mul %a, %s : DTYPE[N, WIDTH]
  %ab = sub %b, %as : DTYPE[N, WIDTH]
  %row = softmax %c : f32[M, K]
  %ds = mul %d, %s : DTYPE[N, WIDTH]
  %de = sub %e, %ds : DTYPE[N, WIDTH]
  %bs = mul %b, %s : DTYPE[N, WIDTH]
  %db = sub %d, %bs : DTYPE[N, WIDTH]
})",
     {{0, {0}}, {1, {1}}, {0, {2}}, {0, {3}}}},
};

}  // namespace sinter
