#include "codegen/groups.h"

#include "ir/text.h"

namespace sinter {

const std::vector<Symbol>& group_symbols() {
  static const std::vector<Symbol> symbols = [] {
    std::vector<Symbol> list(6);
    const char* names[] = {"N", "M", "K", "W", "B", "F"};
    const int64_t highs[] = {4096, 4096, 65536, 1024, 8, 256};
    for (size_t i = 0; i < list.size(); ++i) {
      list[i].name = names[i];
      list[i].low = 0;
      list[i].high = highs[i];
    }
    list[3].multiple = 8;
    return list;
  }();
  return symbols;
}

Graph make_group(const GroupText& group, DType dtype, int64_t width) {
  std::string text = group.text;
  const auto replace = [&](std::string_view mark, const std::string& with) {
    for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += with.size())
      text.replace(at, mark.size(), with);
  };
  replace("DTYPE", std::string(to_string(dtype)));
  replace("WIDTH", std::to_string(width));
  replace("HALF", std::to_string(width / 2));
  auto graph = parse_graph(text, group.name, group_symbols());
  SINTER_CHECK(graph.has_value(), "{}", graph ? "" : graph.error().message());
  return std::move(*graph);
}

const std::vector<GroupText> kRowGroups = {
    {"add_rms_norm", 1, R"(
graph(%x: DTYPE[N, WIDTH], %r: DTYPE[N, WIDTH], %w: DTYPE[WIDTH]) -> (%s, %y) {
  %s = add %x, %r : DTYPE[N, WIDTH]
  %y = rms_norm %s, %w {eps = 1e-5} : DTYPE[N, WIDTH]
})"},
    {"softmax", 1, R"(
graph(%x: DTYPE[N, WIDTH]) -> (%y) {
  %y = softmax %x : DTYPE[N, WIDTH]
})"},
    {"add_layer_norm_gelu", 1, R"(
graph(%x: DTYPE[N, WIDTH], %r: DTYPE[N, 1], %w: DTYPE[WIDTH], %b: DTYPE[WIDTH]) -> (%y, %s, %z) {
  %s = add %x, %r : DTYPE[N, WIDTH]
  %y = layer_norm %s, %w, %b {eps = 1e-5} : DTYPE[N, WIDTH]
  %z = gelu_tanh %y : DTYPE[N, WIDTH]
})"},
    {"row_extremes", 1, R"(
graph(%x: DTYPE[N, WIDTH]) -> (%high, %sum, %scaled) {
  %high = reduce_max %x {axes = [1]} : DTYPE[N, 1]
  %sum = reduce_sum %x {axes = [1]} : DTYPE[N, 1]
  %ratio = div %sum, %high : DTYPE[N, 1]
  %scaled = mul %x, %ratio : DTYPE[N, WIDTH]
})"},
    {"numbers_of_a_step", 0, R"(
graph(%n: f32[], %rate: f32[]) -> (%next, %scaled) {
  %next = add %n, %rate : f32[]
  %scaled = mul %next, %rate : f32[]
})"},
    {"results_that_share_a_number", 0, R"(
graph(%x: DTYPE[N, WIDTH], %z: DTYPE[N, WIDTH], %n: DTYPE[]) -> (%a, %b) {
  %t = add %n, %n : DTYPE[]
  %a = mul %x, %t : DTYPE[N, WIDTH]
  %u = mul %z, %t : DTYPE[N, WIDTH]
  %b = add %u, %x : DTYPE[N, WIDTH]
})"},
    {"silu_mul_gelu", 0, R"(
graph(%x: DTYPE[N, WIDTH], %g: DTYPE[N, WIDTH], %b: DTYPE[WIDTH]) -> (%y, %z) {
  %s = silu %g : DTYPE[N, WIDTH]
  %y = mul %s, %x : DTYPE[N, WIDTH]
  %t = add %y, %b : DTYPE[N, WIDTH]
  %z = gelu %t : DTYPE[N, WIDTH]
})"},
    {"column_sum", 0, R"(
graph(%x: DTYPE[WIDTH, M]) -> (%y) {
  %y = reduce_sum %x {axes = [0]} : DTYPE[1, M]
})"},
    {"i32_constants", 0, R"(
graph(%x: i32[N, WIDTH]) -> (%y) {
  %none = constant {value = nan} : i32[]
  %half = constant {value = 2.5} : i32[]
  %large = constant {value = 1e30} : i32[]
  %least = constant {value = -inf} : i32[]
  %a = sub %none, %none : i32[]
  %b = add %x, %a : i32[N, WIDTH]
  %c = mul %b, %half : i32[N, WIDTH]
  %d = minimum %c, %large : i32[N, WIDTH]
  %y = maximum %d, %least : i32[N, WIDTH]
})"},
    {"transposed", 1, R"(
graph(%x: DTYPE[WIDTH, N], %y: DTYPE[N, WIDTH]) -> (%z) {
  %t = transpose %x {axes = [1, 0]} : DTYPE[N, WIDTH]
  %s = sub %t, %y : DTYPE[N, WIDTH]
  %z = softmax %s : DTYPE[N, WIDTH]
})"},
    {"loss_of_labels", 1, R"(
graph(%x: DTYPE[N, 1032], %g: f32[N, 1]) -> (%high, %y) {
  %w = cast %x {dtype = f32} : f32[N, 1032]
  %i = iota {axis = 0} : i32[1032]
  %end = constant {value = 1027} : i32[]
  %there = less %i, %end : i1[1032]
  %low = constant {value = -inf} : f32[]
  %p = where %there, %w, %low : f32[N, 1032]
  %high = reduce_max %p {axes = [1]} : f32[N, 1]
  %rows = iota {axis = 0} : i32[N, 1]
  %step = constant {value = 301} : i32[]
  %label = mul %rows, %step : i32[N, 1]
  %at = equal %i, %label : i1[N, 1032]
  %zero = constant {value = 0} : f32[]
  %chosen = where %at, %g, %zero : f32[N, 1032]
  %d = sub %chosen, %w : f32[N, 1032]
  %y = sub %d, %high : f32[N, 1032]
})"},
};

const std::vector<GroupText> kFixedGroups = {
    {"rope_half_append", 1, R"(
graph(%q: DTYPE[N, 96], %k: DTYPE[N, 32], %v: DTYPE[N, 32], %c: DTYPE[N, 8], %s: DTYPE[N, 8],
      %kc: DTYPE[64, 32], %vc: DTYPE[64, 32], %slot: i32[N]) -> (%y, %ka, %va) {
  %qh = reshape %q {dims = [N, 6, 16]} : DTYPE[N, 6, 16]
  %kh = reshape %k {dims = [N, 2, 16]} : DTYPE[N, 2, 16]
  %y = rope %qh, %c, %s {rotary = 16, pairing = "half"} : DTYPE[N, 6, 16]
  %z = rope %kh, %c, %s {rotary = 16, pairing = "half"} : DTYPE[N, 2, 16]
  %kr = reshape %z {dims = [N, 32]} : DTYPE[N, 32]
  %ka = kv_append %kc, %kr, %slot : DTYPE[64, 32]
  %va = kv_append %vc, %v, %slot : DTYPE[64, 32]
})"},
    {"stored_moments", 0, R"(
graph(%m: f32[N, 53], %v: f32[N, 53], %p: DTYPE[N, 53], %g: DTYPE[N, 53], %rate: f32[]) -> (%m1, %v1, %p1) {
  %wide = cast %g : f32[N, 53]
  %m.sum = add %m, %wide : f32[N, 53]
  %square = mul %wide, %wide : f32[N, 53]
  %v.sum = maximum %v, %square : f32[N, 53]
  %root = sqrt %v.sum : f32[N, 53]
  %quotient = div %m.sum, %root : f32[N, 53]
  %change = mul %quotient, %rate : f32[N, 53]
  %p.wide = cast %p : f32[N, 53]
  %moved = sub %p.wide, %change : f32[N, 53]
  %p.next = cast %moved : DTYPE[N, 53]
  %m1 = store %m, %m.sum : f32[N, 53]
  %v1 = store %v, %v.sum : f32[N, 53]
  %p1 = store %p, %p.next : DTYPE[N, 53]
})"},
    {"stored_state", 1, R"(
graph(%s: DTYPE[N, 64], %x: DTYPE[N, 64]) -> (%s1) {
  %n = softmax %x : DTYPE[N, 64]
  %s1 = store %s, %n : DTYPE[N, 64]
})"},
    {"rope_interleaved_partial", 1, R"(
graph(%qkv: DTYPE[N, 160], %c: DTYPE[N, 6], %s: DTYPE[N, 6]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 32, size = 128} : DTYPE[N, 128]
  %h = reshape %q {dims = [N, 4, 32]} : DTYPE[N, 4, 32]
  %y = rope %h, %c, %s {rotary = 12, pairing = "interleaved"} : DTYPE[N, 4, 32]
})"},
    {"rope_half_odd", 1, R"(
graph(%q: DTYPE[N, 3, 10], %c: DTYPE[N, 3], %s: DTYPE[N, 3]) -> (%y) {
  %y = rope %q, %c, %s {rotary = 6, pairing = "half"} : DTYPE[N, 3, 10]
})"},
    {"rope_half_between_chunks", 1, R"(
graph(%qkv: DTYPE[N, 480], %c: DTYPE[N, 10], %s: DTYPE[N, 10], %kc: DTYPE[64, 160], %vc: DTYPE[64, 160],
      %slot: i32[N]) -> (%y, %ka, %va) {
  %q = slice %qkv {axis = 1, begin = 0, size = 160} : DTYPE[N, 160]
  %k = slice %qkv {axis = 1, begin = 160, size = 160} : DTYPE[N, 160]
  %v = slice %qkv {axis = 1, begin = 320, size = 160} : DTYPE[N, 160]
  %qh = reshape %q {dims = [N, 2, 80]} : DTYPE[N, 2, 80]
  %kh = reshape %k {dims = [N, 2, 80]} : DTYPE[N, 2, 80]
  %y = rope %qh, %c, %s {rotary = 20, pairing = "half"} : DTYPE[N, 2, 80]
  %z = rope %kh, %c, %s {rotary = 20, pairing = "half"} : DTYPE[N, 2, 80]
  %kr = reshape %z {dims = [N, 160]} : DTYPE[N, 160]
  %ka = kv_append %kc, %kr, %slot : DTYPE[64, 160]
  %va = kv_append %vc, %v, %slot : DTYPE[64, 160]
})"},
    {"head_norm_rope", 2, R"(
graph(%q: DTYPE[N, 128], %w: DTYPE[32], %c: DTYPE[N, 16], %s: DTYPE[N, 16]) -> (%y) {
  %h = reshape %q {dims = [N, 4, 32]} : DTYPE[N, 4, 32]
  %n = rms_norm %h, %w {eps = 1e-6} : DTYPE[N, 4, 32]
  %y = rope %n, %c, %s {rotary = 32, pairing = "half"} : DTYPE[N, 4, 32]
})"},
    {"head_norm_rope_append", 2, R"(
graph(%qkv: DTYPE[N, 256], %w: DTYPE[32], %c: DTYPE[N, 16], %s: DTYPE[N, 16], %kc: DTYPE[64, 2, 32],
      %vc: DTYPE[64, 2, 32], %slot: i32[N]) -> (%ka, %va) {
  %k = slice %qkv {axis = 1, begin = 128, size = 64} : DTYPE[N, 64]
  %v = slice %qkv {axis = 1, begin = 192, size = 64} : DTYPE[N, 64]
  %kh = reshape %k {dims = [N, 2, 32]} : DTYPE[N, 2, 32]
  %vh = reshape %v {dims = [N, 2, 32]} : DTYPE[N, 2, 32]
  %n = rms_norm %kh, %w {eps = 1e-6} : DTYPE[N, 2, 32]
  %y = rope %n, %c, %s {rotary = 32, pairing = "half"} : DTYPE[N, 2, 32]
  %ka = kv_append %kc, %y, %slot : DTYPE[64, 2, 32]
  %va = kv_append %vc, %vh, %slot : DTYPE[64, 2, 32]
})"},
    {"projection_norm_rope_append", 1, R"(
graph(%q: DTYPE[N, 128], %k: DTYPE[N, 64], %qw: DTYPE[128], %kw: DTYPE[64], %c: DTYPE[N, 12], %s: DTYPE[N, 12],
      %kc: DTYPE[64, 64], %slot: i32[N]) -> (%y, %ka) {
  %qn = rms_norm %q, %qw {eps = 1e-6} : DTYPE[N, 128]
  %kn = rms_norm %k, %kw {eps = 1e-6} : DTYPE[N, 64]
  %qh = reshape %qn {dims = [N, 4, 32]} : DTYPE[N, 4, 32]
  %kh = reshape %kn {dims = [N, 2, 32]} : DTYPE[N, 2, 32]
  %y = rope %qh, %c, %s {rotary = 24, pairing = "half"} : DTYPE[N, 4, 32]
  %z = rope %kh, %c, %s {rotary = 24, pairing = "half"} : DTYPE[N, 2, 32]
  %kr = reshape %z {dims = [N, 64]} : DTYPE[N, 64]
  %ka = kv_append %kc, %kr, %slot : DTYPE[64, 64]
})"},
    {"embedding_layer_norm", 1, R"(
graph(%table: DTYPE[50, 72], %ids: i32[N], %pos: DTYPE[N, 72], %w: DTYPE[72], %b: DTYPE[72]) -> (%x, %y) {
  %e = embedding %table, %ids : DTYPE[N, 72]
  %x = add %e, %pos : DTYPE[N, 72]
  %y = layer_norm %x, %w, %b {eps = 1e-5} : DTYPE[N, 72]
})"},
    {"embedding_of_slice", 0, R"(
graph(%table: DTYPE[50, 72], %ids: i32[N]) -> (%y) {
  %t = slice %table {axis = 1, begin = 3, size = 20} : DTYPE[50, 20]
  %y = embedding %t, %ids : DTYPE[N, 20]
})"},
    {"two_widths", 1, R"(
graph(%x: DTYPE[N, 4096], %y: DTYPE[N, 40], %w: DTYPE[4096]) -> (%a, %b, %c) {
  %a = rms_norm %x, %w {eps = 1e-6} : DTYPE[N, 4096]
  %b = softmax %y : DTYPE[N, 40]
  %m = reduce_max %y {axes = [1]} : DTYPE[N, 1]
  %c = add %a, %m : DTYPE[N, 4096]
})"},
    {"softmax_symbolic", 1, R"(
graph(%x: DTYPE[N, K]) -> (%y) {
  %y = softmax %x : DTYPE[N, K]
})"},
    {"softmax_symbolic_aligned", 1, R"(
graph(%x: DTYPE[N, W], %r: DTYPE[N, W]) -> (%s, %y) {
  %s = add %x, %r : DTYPE[N, W]
  %y = softmax %s : DTYPE[N, W]
})"},
    {"attention_softmax", 2, R"(
graph(%x: f32[3, N, K], %first: i32[N], %slot: i32[N]) -> (%y) {
  %y = attention_softmax %x, %first, %slot {scale = 0.125, softcap = 30.0, window = 9, dtype = DTYPE} : DTYPE[3, N, K]
})"},
    {"middle_axis", 0, R"(
graph(%x: DTYPE[N, 37, 5]) -> (%y) {
  %y = reduce_max %x {axes = [1]} : DTYPE[N, 1, 5]
})"},
    {"outer_axes", 0, R"(
graph(%x: DTYPE[6, N, 3]) -> (%y) {
  %y = reduce_sum %x {axes = [0, 1]} : DTYPE[1, 1, 3]
})"},
    {"all_axes", 0, R"(
graph(%x: DTYPE[N, 19]) -> (%y) {
  %y = reduce_sum %x {axes = [0, 1]} : DTYPE[1, 1]
})"},
    {"concat_chunks", 1, R"(
graph(%a: DTYPE[N, 16], %b: DTYPE[N, 48], %c: DTYPE[N, 1], %d: DTYPE[64]) -> (%y) {
  %k = concat %a, %b {axis = 1} : DTYPE[N, 64]
  %s = mul %k, %c : DTYPE[N, 64]
  %y = add %s, %d : DTYPE[N, 64]
})"},
    {"concat_odd", 1, R"(
graph(%a: DTYPE[N, 3], %b: DTYPE[N, 0], %c: DTYPE[N, 14], %d: DTYPE[N, 7]) -> (%y, %z) {
  %n = neg %c : DTYPE[N, 14]
  %i = slice %n {axis = 1, begin = 1, size = 12} : DTYPE[N, 12]
  %k = concat %a, %b, %i, %d {axis = 1} : DTYPE[N, 22]
  %y = softmax %k : DTYPE[N, 22]
  %z = exp %k : DTYPE[N, 22]
})"},
    {"concat_rows", 0, R"(
graph(%a: DTYPE[5, 24], %b: DTYPE[2, 24]) -> (%y) {
  %e = abs %b : DTYPE[2, 24]
  %y = concat %a, %e, %a {axis = 0} : DTYPE[12, 24]
})"},
    {"concat_nested", 0, R"(
graph(%a: DTYPE[N, 8], %b: DTYPE[N, 5]) -> (%y) {
  %s = sqrt %a : DTYPE[N, 8]
  %k = concat %s, %b {axis = 1} : DTYPE[N, 13]
  %t = slice %k {axis = 1, begin = 2, size = 9} : DTYPE[N, 9]
  %y = concat %t, %b, %k {axis = 1} : DTYPE[N, 27]
})"},
    {"concat_between_chunks", 1, R"(
graph(%a: DTYPE[N, 3, 40], %b: DTYPE[10], %c: DTYPE[N, 3, 12], %i: i32[N, 36]) -> (%y, %z) {
  %zero = constant {value = -0.0} : DTYPE[]
  %pad = broadcast %zero {dims = [N, 3, 6]} : DTYPE[N, 3, 6]
  %two = slice %pad {axis = 2, begin = 4, size = 2} : DTYPE[N, 3, 2]
  %end = slice %a {axis = 2, begin = 30, size = 10} : DTYPE[N, 3, 10]
  %product = mul %end, %b : DTYPE[N, 3, 10]
  %less = less %c, %zero : i1[N, 3, 12]
  %n = neg %c : DTYPE[N, 3, 12]
  %chosen = where %less, %n, %c : DTYPE[N, 3, 12]
  %y = concat %a, %product, %chosen, %two {axis = 2} : DTYPE[N, 3, 64]
  %f = cast %i {dtype = DTYPE} : DTYPE[N, 36]
  %h = reshape %f {dims = [N, 3, 12]} : DTYPE[N, 3, 12]
  %sum = add %c, %h : DTYPE[N, 3, 12]
  %difference = sub %h, %chosen : DTYPE[N, 3, 12]
  %z = concat %pad, %sum, %difference, %end, %a {axis = 2} : DTYPE[N, 3, 80]
})"},
    {"concat_of_reshaped_transposes", 1, R"(
graph(%a: DTYPE[N, 5, 2], %b: DTYPE[2, N, 3], %c: DTYPE[N, 3, 4, 2]) -> (%y) {
  %ar = reshape %a {dims = [N, 10]} : DTYPE[N, 10]
  %bt = transpose %b {axes = [1, 2, 0]} : DTYPE[N, 3, 2]
  %br = reshape %bt {dims = [N, 6]} : DTYPE[N, 6]
  %ct = transpose %c {axes = [0, 3, 2, 1]} : DTYPE[N, 2, 4, 3]
  %cr = reshape %ct {dims = [N, 24]} : DTYPE[N, 24]
  %y = concat %ar, %br, %cr {axis = 1} : DTYPE[N, 40]
})"},
    {"concat_of_a_transpose_behind_a_chunk", 1, R"(
graph(%a: DTYPE[N, 12], %x: DTYPE[2, N, 6], %b: DTYPE[N, 10], %c: DTYPE[N, 14]) -> (%y, %z, %w) {
  %t = transpose %x {axes = [1, 2, 0]} : DTYPE[N, 6, 2]
  %r = reshape %t {dims = [N, 12]} : DTYPE[N, 12]
  %y = concat %a, %r {axis = 1} : DTYPE[N, 24]
  %z = concat %r, %a {axis = 1} : DTYPE[N, 24]
  %s = concat %b, %c {axis = 1} : DTYPE[N, 24]
  %p = slice %s {axis = 1, begin = 3, size = 16} : DTYPE[N, 16]
  %w = concat %p, %b, %c {axis = 1} : DTYPE[N, 40]
})"},
    {"concat_between_chunks_of_a_row", 1, R"(
graph(%a: DTYPE[N, 53], %b: DTYPE[N, 43], %c: DTYPE[N, 43], %w: DTYPE[96]) -> (%y, %z) {
  %p = tanh %a : DTYPE[N, 53]
  %q = mul %b, %c : DTYPE[N, 43]
  %k = concat %p, %q {axis = 1} : DTYPE[N, 96]
  %y = rms_norm %k, %w {eps = 1e-5} : DTYPE[N, 96]
  %z = concat %q, %p {axis = 1} : DTYPE[N, 96]
})"},
    {"swap_heads", 0, R"(
graph(%x: DTYPE[N, 3, 16]) -> (%y) {
  %t = transpose %x {axes = [1, 0, 2]} : DTYPE[3, N, 16]
  %y = copy %t : DTYPE[3, N, 16]
})"},
    {"reshape_across", 0, R"(
graph(%x: DTYPE[6, 35], %y: DTYPE[14, 15]) -> (%z) {
  %r = reshape %x {dims = [14, 15]} : DTYPE[14, 15]
  %t = transpose %r {axes = [1, 0]} : DTYPE[15, 14]
  %u = reshape %t {dims = [10, 21]} : DTYPE[10, 21]
  %v = reshape %y {dims = [10, 21]} : DTYPE[10, 21]
  %z = sub %u, %v : DTYPE[10, 21]
})"},
    {"widths_apart", 0, R"(
graph(%x: DTYPE[N, 24], %y: DTYPE[N, 7], %z: DTYPE[], %u: f32[3]) -> (%a, %b, %c, %d) {
  %a = tanh %x : DTYPE[N, 24]
  %b = mul %y, %z : DTYPE[N, 7]
  %c = erf %u : f32[3]
  %d = cos %z : DTYPE[]
})"},
    {"truths_and_integers", 0, R"(
graph(%i: i32[N, 9], %j: i32[9], %t: i1[N, 9], %x: DTYPE[N, 9]) -> (%a, %b, %c, %d, %e) {
  %count = iota {axis = 1} : i32[1, 9]
  %list = literal {values = [3, -2147483648, 0, 7, 2147483647, 1, 2, 5, 8]} : i32[9]
  %sum = add %i, %count : i32[N, 9]
  %a = mul %sum, %list : i32[N, 9]
  %less = less %i, %j : i1[N, 9]
  %b = logical_and %less, %t : i1[N, 9]
  %n = logical_not %t : i1[N, 9]
  %f = cast %a {dtype = DTYPE} : DTYPE[N, 9]
  %zero = constant {value = -0.0} : DTYPE[]
  %c = where %n, %f, %x : DTYPE[N, 9]
  %d = where %b, %x, %zero : DTYPE[N, 9]
  %e = cast %less {dtype = i32} : i32[N, 9]
})"},
    {"casts", 0, R"(
graph(%x: f32[N, 8], %t: i1[N, 8], %i: i32[N, 8]) -> (%a, %b, %c) {
  %h = cast %x {dtype = f16} : f16[N, 8]
  %k = cast %h {dtype = bf16} : bf16[N, 8]
  %a = cast %k {dtype = DTYPE} : DTYPE[N, 8]
  %b = cast %t {dtype = DTYPE} : DTYPE[N, 8]
  %c = cast %i {dtype = bf16} : bf16[N, 8]
})"},
    {"conversions", 0, R"(
graph(%x: DTYPE[N, 24], %i: i32[N, 24], %l: i64[N, 24], %t: i1[N, 24]) -> (%a, %b, %c, %d, %e, %f, %g, %h, %k) {
  %a = cast %x {dtype = i32} : i32[N, 24]
  %b = cast %x {dtype = i64} : i64[N, 24]
  %c = cast %x {dtype = i1} : i1[N, 24]
  %d = cast %i {dtype = i64} : i64[N, 24]
  %e = cast %l {dtype = i32} : i32[N, 24]
  %f = cast %l {dtype = DTYPE} : DTYPE[N, 24]
  %g = cast %l {dtype = i1} : i1[N, 24]
  %h = cast %t {dtype = i64} : i64[N, 24]
  %k = cast %i {dtype = i1} : i1[N, 24]
})"},
    {"long_integers", 0, R"(
graph(%l: i64[N, 9], %m: i64[9], %i: i32[N, 9]) -> (%a, %b, %c, %d, %e) {
  %count = iota {axis = 1} : i32[1, 9]
  %wide = cast %count {dtype = i64} : i64[1, 9]
  %list = literal {values = [3, -inf, 0, 7, inf, 1, 2, 5, 8]} : i64[9]
  %half = constant {value = 2.5} : i64[]
  %sum = add %l, %wide : i64[N, 9]
  %product = mul %sum, %list : i64[N, 9]
  %a = sub %product, %m : i64[N, 9]
  %b = less %a, %half : i1[N, 9]
  %n = neg %a : i64[N, 9]
  %p = abs %n : i64[N, 9]
  %q = maximum %p, %l : i64[N, 9]
  %c = where %b, %q, %n : i64[N, 9]
  %part = concat %l, %c {axis = 1} : i64[N, 18]
  %d = slice %part {axis = 1, begin = 3, size = 9} : i64[N, 9]
  %quotient = div_floor %i, %count : i32[N, 9]
  %three = constant {value = -3} : i32[]
  %rest = mod_floor %quotient, %three : i32[N, 9]
  %r = cast %rest {dtype = i64} : i64[N, 9]
  %s = div_floor %product, %r : i64[N, 9]
  %e = mod_floor %s, %m : i64[N, 9]
})"},
    {"exact_integers", 0, R"(
graph(%l: i64[N, 9], %x: DTYPE[N, 9]) -> (%a, %b, %c, %d, %e) {
  %least = constant {value = -9223372036854775808} : i64[]
  %odd = constant {value = 9007199254740993} : i64[]
  %list = literal {values = [9007199254740993, -9007199254740993, 4611686018427387905, 9223372036854775807, -9223372036854775808, -9223372036854775807, 0, 9007199254740991, -1]} : i64[9]
  %a = sub %l, %least : i64[N, 9]
  %sum = add %l, %odd : i64[N, 9]
  %b = maximum %sum, %list : i64[N, 9]
  %c = equal %l, %list : i1[N, 9]
  %i = cast %l {dtype = i32} : i32[N, 9]
  %short = constant {value = -2147483648} : i32[]
  %d = sub %i, %short : i32[N, 9]
  %once = constant {value = 1152921573326323713} : DTYPE[]
  %e = mul %x, %once : DTYPE[N, 9]
})"},
    {"long_integers_in_chunks", 1, R"(
graph(%l: i64[N, WIDTH], %x: DTYPE[N, WIDTH]) -> (%a, %y) {
  %a = add %l, %l : i64[N, WIDTH]
  %f = cast %a {dtype = DTYPE} : DTYPE[N, WIDTH]
  %z = add %f, %x : DTYPE[N, WIDTH]
  %y = softmax %z : DTYPE[N, WIDTH]
})"},
    {"rounded_and_raised", 0, R"(
graph(%x: DTYPE[N, 24], %y: DTYPE[N, 24]) -> (%a, %b, %c, %d, %e) {
  %a = floor %x : DTYPE[N, 24]
  %b = round %x : DTYPE[N, 24]
  %c = expm1 %x : DTYPE[N, 24]
  %d = log1p %x : DTYPE[N, 24]
  %e = pow %x, %y : DTYPE[N, 24]
})"},
    {"integer_rows", 1, R"(
graph(%i: i32[N, WIDTH]) -> (%s, %y) {
  %s = reduce_sum %i {axes = [1]} : i32[N, 1]
  %m = reduce_max %i {axes = [1]} : i32[N, 1]
  %d = sub %i, %m : i32[N, WIDTH]
  %t = mul %d, %s : i32[N, WIDTH]
  %y = cast %t {dtype = DTYPE} : DTYPE[N, WIDTH]
})"},
    {"integer_columns", 0, R"(
graph(%i: i32[N, 3, 40], %x: DTYPE[40]) -> (%s, %y) {
  %d = mul %i, %i : i32[N, 3, 40]
  %s = reduce_sum %d {axes = [0]} : i32[1, 3, 40]
  %m = reduce_max %i {axes = [0]} : i32[1, 3, 40]
  %t = sub %m, %s : i32[1, 3, 40]
  %f = cast %t {dtype = DTYPE} : DTYPE[1, 3, 40]
  %y = mul %f, %x : DTYPE[1, 3, 40]
})"},
    {"gather_of_elements", 0, R"(
graph(%x: DTYPE[N, 40], %i: i32[N, 24]) -> (%y, %z) {
  %y = gather %x, %i {axis = 1} : DTYPE[N, 24]
  %z = abs %y : DTYPE[N, 24]
})"},
    {"gather_along_the_first_axis", 0, R"(
graph(%x: DTYPE[50, 40], %i: i32[N, 40]) -> (%y) {
  %y = gather %x, %i {axis = 0} : DTYPE[N, 40]
})"},
    {"gather_of_whole_rows", 0, R"(
graph(%x: DTYPE[N, 7, 24], %i: i32[5]) -> (%y) {
  %r = reshape %i {dims = [1, 5, 1]} : i32[1, 5, 1]
  %b = broadcast %r {dims = [N, 5, 24]} : i32[N, 5, 24]
  %g = gather %x, %b {axis = 1} : DTYPE[N, 5, 24]
  %y = exp %g : DTYPE[N, 5, 24]
})"},
    {"gather_for_each_row", 1, R"(
graph(%x: DTYPE[N, K], %i: i32[N, 1], %l: i64[N, 1]) -> (%y, %z) {
  %y = gather %x, %i {axis = 1} : DTYPE[N, 1]
  %c = cast %l {dtype = DTYPE} : DTYPE[N, 1]
  %z = sub %y, %c : DTYPE[N, 1]
})"},
    {"gather_through_views", 0, R"(
graph(%x: DTYPE[24, N], %i: i32[9, N]) -> (%y) {
  %t = transpose %x {axes = [1, 0]} : DTYPE[N, 24]
  %s = slice %t {axis = 1, begin = 3, size = 20} : DTYPE[N, 20]
  %u = transpose %i {axes = [1, 0]} : i32[N, 9]
  %y = gather %s, %u {axis = 1} : DTYPE[N, 9]
})"},
    {"kept_across_three_passes", 1, R"(
graph(%x: DTYPE[N, 200], %r: DTYPE[N, 200]) -> (%y) {
  %s = add %x, %r : DTYPE[N, 200]
  %p = softmax %s : DTYPE[N, 200]
  %q = mul %p, %x : DTYPE[N, 200]
  %t = reduce_sum %q {axes = [1]} : DTYPE[N, 1]
  %u = div %q, %t : DTYPE[N, 200]
  %y = sub %u, %s : DTYPE[N, 200]
})"},
    {"generators_only", 0, R"(
graph() -> (%y) {
  %i = iota {axis = 0} : i32[20, 3]
  %l = literal {values = [1.5, -2.25, 1e-7]} : DTYPE[3]
  %f = cast %i {dtype = DTYPE} : DTYPE[20, 3]
  %y = mul %f, %l : DTYPE[20, 3]
})"},
    {"no_rows", 0, R"(
graph(%x: DTYPE[N, 0]) -> (%y) {
  %y = reduce_sum %x {axes = [0]} : DTYPE[1, 0]
})"},
    {"no_elements", 1, R"(
graph(%x: DTYPE[N, 0], %y: DTYPE[N, 8]) -> (%a, %b, %c, %d) {
  %a = reduce_sum %x {axes = [1]} : DTYPE[N, 1]
  %b = reduce_max %x {axes = [1]} : DTYPE[N, 1]
  %c = exp %x : DTYPE[N, 0]
  %d = add %y, %a : DTYPE[N, 8]
})"},
};

}  // namespace sinter
