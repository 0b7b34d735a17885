#include "codegen/groups.h"

namespace sinter {

// 16 virtual lanes of 128 rows, 32 of 200, of which some have no row, and 1024 of 8448, of which
// some have two chunks.
const std::vector<GroupText> kRunGroups = {
    {"sums_alone", 1, R"(
graph(%x: DTYPE[128, WIDTH]) -> (%y) {
  %y = run_sums %x {runs = 4} : f32[4, 1, WIDTH]
})"},
    {"layer_norm_gradients", 1, R"(
graph(%dy: DTYPE[200, WIDTH], %x: f32[200, WIDTH], %mean: f32[200, 1], %rstd: f32[200, 1], %w: f32[WIDTH], %r: f32[200, WIDTH]) -> (%sum, %half, %runs) {
  %g = cast %dy {dtype = f32} : f32[200, WIDTH]
  %c = sub %x, %mean : f32[200, WIDTH]
  %y = mul %c, %rstd : f32[200, WIDTH]
  %gy = mul %g, %y : f32[200, WIDTH]
  %gw = mul %g, %w : f32[200, WIDTH]
  %a = reduce_sum %gw {axes = [1]} : f32[200, 1]
  %gwy = mul %gw, %y : f32[200, WIDTH]
  %b = reduce_sum %gwy {axes = [1]} : f32[200, 1]
  %yb = mul %y, %b : f32[200, WIDTH]
  %d = sub %gw, %a : f32[200, WIDTH]
  %e = sub %d, %yb : f32[200, WIDTH]
  %dx = mul %e, %rstd : f32[200, WIDTH]
  %sum = add %r, %dx : f32[200, WIDTH]
  %half = cast %sum {dtype = DTYPE} : DTYPE[200, WIDTH]
  %runs = run_sums %gy, %g, %half {runs = 8} : f32[8, 3, WIDTH]
})"},
    {"rms_norm_gradients", 2, R"(
graph(%dy: DTYPE[4, 25, WIDTH], %x: DTYPE[4, 25, WIDTH], %w: DTYPE[WIDTH]) -> (%runs, %dx) {
  %s = mul %x, %x : DTYPE[4, 25, WIDTH]
  %q = reduce_sum %s {axes = [2]} : DTYPE[4, 25, 1]
  %y = mul %x, %q : DTYPE[4, 25, WIDTH]
  %gy = mul %dy, %y : DTYPE[4, 25, WIDTH]
  %gw = mul %dy, %w : DTYPE[4, 25, WIDTH]
  %gwy = mul %gw, %y : DTYPE[4, 25, WIDTH]
  %b = reduce_sum %gwy {axes = [2]} : DTYPE[4, 25, 1]
  %yb = mul %y, %b : DTYPE[4, 25, WIDTH]
  %dx = sub %gw, %yb : DTYPE[4, 25, WIDTH]
  %runs = run_sums %gy {runs = 2} : f32[2, 1, WIDTH]
})"},
    {"one_reduction_and_sums_of_its_result", 1, R"(
graph(%x: DTYPE[56, WIDTH]) -> (%m, %first, %second) {
  %m = reduce_max %x {axes = [1]} : DTYPE[56, 1]
  %d = sub %x, %m : DTYPE[56, WIDTH]
  %first = run_sums %d {runs = 8} : f32[8, 1, WIDTH]
  %e = exp %d : DTYPE[56, WIDTH]
  %second = run_sums %e, %x {runs = 8} : f32[8, 2, WIDTH]
})"},
    {"rows_of_two_chunks_and_of_one", 1, R"(
graph(%x: DTYPE[8448, 16]) -> (%y, %runs) {
  %s = reduce_sum %x {axes = [1]} : DTYPE[8448, 1]
  %y = mul %x, %s : DTYPE[8448, 16]
  %runs = run_sums %y {runs = 128} : f32[128, 1, 16]
})"},
};

}  // namespace sinter
