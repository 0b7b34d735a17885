// Longer than most files: a row for each op.
#include "docs/sir_examples.h"

namespace sinter::test {
namespace {

constexpr ClassText kClasses[] = {
    {OpClass::generator, "Generators",
     "Values that are computed from attributes alone, wherever they are read. A number is rounded "
     "once to the element type, ties to even; to i32 and i64 it goes to the nearest one that the "
     "type has (NaN: 0), to i1 all but 0 are true. An integer without point and exponent is "
     "exact in the whole range of i64."},
    {OpClass::view, "Views",
     "Other ways of reading the operand: an order of addresses, never a kernel. A view of a "
     "computed value is as good as one of an input."},
    {OpClass::elementwise, "Elementwise ops", ""},
    {OpClass::pointwise, "Copies, conversions and choices",
     "Computed element by element, like elementwise ops."},
    {OpClass::gather, "Rows by number", ""},
    {OpClass::append, "State, and values made of parts",
     "Ops whose result takes over the memory of an operand."},
    {OpClass::reduce, "Reductions",
     "Sums and maxima over axes, in float32 and in a fixed order of operations, then rounded once; "
     "of i32 sums wrap around. "
     "A sum starts at +0, so that a sum of zeros is +0, also where all are -0. "
     "The reduced axes stay, with the extent 1, so that the result broadcasts against the "
     "operand."},
    {OpClass::run_sums, "Parts of reductions", ""},
    {OpClass::composite, "Composites",
     "An op that stands for several: its definition is the graph that is shown, conversions "
     "included. It fuses as these ops do, and gives the same bits."},
    {OpClass::contraction, "Products",
     "Sums of products in float32, rounded once. They become calls of a matrix library, or "
     "generated kernels where at most eight rows are multiplied."},
    {OpClass::anchor, "Ops with a kernel of their own",
     "Besides these ops: `linear` and `attention` with an attribute `order`. An order is an "
     "algorithm of a kernel of Sinter's, which says in which order sums are added and where they "
     "are rounded. A pass chooses it by the sizes; in a module of your own leave it out."},
};

constexpr OpExample kExamples[] = {
    // Generators.
    {{OpKind::constant},
     "constant -> dtype[dims]",
     "Every element is `value`.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %two = constant {value = 2.0} : f16[]
    %y = mul %x, %two
  })"},
    {{OpKind::iota},
     "iota -> i32[dims]",
     "Each element is its index along `axis`: 0, 1, 2, ...",
     R"(  entry @e() -> (%index) {
    %index = iota {axis = 0} : i32[N]
  })"},
    {{OpKind::literal},
     "literal -> dtype[dims]",
     "The elements one by one, row-major.",
     R"(  entry @e(%x: f32[N, 3]) -> (%y) {
    %w = literal {values = [0.5, -1.0, 2.0]} : f32[3]
    %y = mul %x, %w
  })"},
    {{OpKind::file},
     "file -> dtype[dims]",
     "A tensor of the model's safetensors. The file's tensor must have exactly this type. Only in "
     "the function of a weight.",
     R"(  weight %w : f16[8] = file {tensor = "model.norm.weight"}
  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = mul %x, %w
  })"},
    // Views.
    {{OpKind::reshape},
     "reshape(x) -> [dims]",
     "The same elements in row-major order, cut otherwise.",
     R"(  entry @e(%x: f16[N, 32]) -> (%heads) {
    %heads = reshape %x {dims = [N, 4, 8]}
  })"},
    {{OpKind::transpose},
     "transpose(x) -> axes in another order",
     "Axis i of the result is axis `axes[i]` of x.",
     R"(  entry @e(%x: f16[N, 4, 8]) -> (%y) {
    %y = transpose %x {axes = [1, 0, 2]}
  })"},
    {{OpKind::slice},
     "slice(x) -> x with size elements along axis",
     "The elements begin .. begin + size - 1 along `axis`. `size` is a number or a symbol.",
     R"(  entry @e(%qkv: f16[N, 48]) -> (%k) {
    %k = slice %qkv {axis = 1, begin = 16, size = 16}
  })"},
    {{OpKind::broadcast},
     "broadcast(x) -> [dims]",
     "x repeated along new leading axes and along axes of extent 1. Elementwise ops broadcast by "
     "themselves; other ops need it written.",
     R"(  entry @e(%row: f32[N, 1]) -> (%y) {
    %y = broadcast %row {dims = [2, N, 8]}
  })"},
    // Pointwise.
    {{OpKind::copy},
     "copy(x) -> x",
     "The same values in memory of their own, dense: it ends a view.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %t = transpose %x {axes = [1, 0]}
    %y = copy %t
  })"},
    {{OpKind::concat},
     "concat(a, b, ...) -> joined along axis",
     "The operands one after the other along `axis`, whose extents are constants.",
     R"(  entry @e(%a: f16[N, 8], %b: f16[N, 16]) -> (%y) {
    %y = concat %a, %b {axis = 1}
  })"},
    {{OpKind::cast},
     "cast(x) -> dtype, the shape of x",
     "Every type to every other. To a float type: rounded to nearest even, once. A float becomes "
     "an "
     "integer towards zero. A number that the integer type does not have becomes the nearest that "
     "it "
     "has (NaN: 0), so that an i64 that is no number of a row is none as i32 either. To i1 all but "
     "0 "
     "are true.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %wide = cast %x {dtype = f32}
    %y = exp %wide
  })"},
    {{OpKind::pack_codes},
     "pack_codes(words i32[M, W], scales [M, G], zeros i32[M, G]?, minima [M, G]?, parts i32[M, "
     "G]?) -> i32[M, words of a packed row]",
     "A matrix [M, size] of codes and scales in the order in which kernels read it; in weight "
     "functions alone. `codes` is the format, \"CODE GROUP SCALE [zeros] [minima]\": the code is "
     "int8, "
     "uint8, int4 (the bits n stand for n - 8), uint4, int5 (n - 16), uint5, int6 (n - 32), e4m3, "
     "e2m1 or iq4nl (an "
     "entry of GGUF's table IQ4_NL); the group row (one scale a "
     "row) or "
     "g16, g32, g64, g128 columns; the scale f32, f16 or bf16. Code k of a row stands at bit k "
     "times "
     "its bits of the row's words; G is the number of groups of a row, of which the last may be "
     "short. Scales f16x6 and f16x8 are of parts: of g16 or g32 columns an integer of 6 or 8 bits, "
     "of 256 columns an f16, whose product is the scale. The operands are then scales f16[M, K / "
     "256 rounded up], minima likewise, and parts, in the lower 16 bits of each the scale's "
     "integer, "
     "in the upper ones the minimum's. Six bits are 0 .. 63 beside minima, else -32 .. 31; f16x8 "
     "has no minima. "
     "`dequantize` says what the elements are.",
     R"(  weight %w : i32[256, 68] = {
    %words = file {tensor = "proj.weight"} : i32[256, 16]
    %scales = file {tensor = "proj.weight_scale"} : f32[256, 1]
    %packed = pack_codes %words, %scales {size = 64, codes = "e4m3 row f32"}
    return %packed
  }
  entry @e(%x: bf16[N, 64]) -> (%y) {
    %m = dequantize %w {size = 64, codes = "e4m3 row f32"}
    %y = linear %x, %m
  })"},
    {{OpKind::where},
     "where(c i1, a, b) -> c ? a : b",
     "Element by element; the three broadcast.",
     R"(  entry @e(%x: f32[N, 8]) -> (%y) {
    %zero = constant {value = 0} : f32[]
    %positive = less %zero, %x
    %y = where %positive, %x, %zero
  })"},
    // Gather and append.
    {{OpKind::embedding},
     "embedding(table [V ..., D], ids i32[..., N]) -> [..., N, D]",
     "Row n of the result is row ids[n] of the table, whose rows are counted over all axes but the "
     "last.",
     R"(  weight %table : f16[64, 8] = file {tensor = "embed"}
  entry @e(%ids: i32[N]) -> (%x) {
    %x = embedding %table, %ids
  })"},
    {{OpKind::gather},
     "gather(x, index i32) -> x with the extent of index along axis",
     "Along `axis` an element is taken at the place that index says: result[i, j] = x[i, index[i, "
     "j]] where `axis` is 1. The other extents of index are those of x.",
     R"(  entry @e(%logits: f32[N, 64], %label: i32[N, 1]) -> (%y) {
    %y = gather %logits, %label {axis = 1}
  })"},
    {{OpKind::kv_append},
     "kv_append(state [R, ...], value [N, ...], slot i32[N]) -> [R, ...]",
     "The next version of a state, in which row slot[n] is value[n]; the slots of one call are "
     "distinct (not checked: of two values one is lost). The op writes in place: it belongs to the "
     "entry whether or not its result is used. "
     "Each version has at most one writer, and what reads the old version stands before it.",
     R"(  state %cache : f16[128, 8]
  entry @e(%x: f16[N, 8], %slot: i32[N]) -> (%sum) {
    %next = kv_append %cache, %x, %slot
    %sum = reduce_sum %next {axes = [0]}
  })"},
    {{OpKind::store},
     "store(state, value of its type) -> the state's type",
     "The next version of a state is value, all of it. Its formula may read the old version. Where "
     "each element needs the old element of its own place and no other, as a moment of an "
     "optimizer does, one kernel computes and stores it. "
     "Each version has at most one writer, and what reads the old version stands before it.",
     R"(  state %moment : f32[64]
  entry @e(%gradient: f32[64]) -> () {
    %half = constant {value = 0.5} : f32[]
    %both = add %moment, %gradient
    %mean = mul %both, %half
    %next = store %moment, %mean
  })"},
    {{OpKind::place},
     "place(part, base?) -> the part with the extent `size` along axis",
     "A value in which a part has its place: from `begin` on along `axis` the part's elements, "
     "elsewhere those of the base, a `place` along that axis. Each part follows or precedes those "
     "before it. The result takes over the base's memory; until all parts are there, nothing but "
     "the "
     "next `place` reads it. A pass makes such values of a `concat` whose parts are results of "
     "kernels that store them where they are read.",
     R"(  entry @e(%x: f16[N, 8], %y: f16[N, 4]) -> (%z) {
    %part = place %x {axis = 1, begin = 0, size = 12}
    %z = place %y, %part {axis = 1, begin = 8, size = 12}
  })"},
    // Reductions.
    {{OpKind::reduce_sum},
     "reduce_sum(x) -> x with extents of 1 at axes",
     "The sum of a float type or i32; of no elements +0.",
     R"(  entry @e(%x: f32[N, 64]) -> (%mean) {
    %sum = reduce_sum %x {axes = [1]}
    %count = constant {value = 64} : f32[]
    %mean = div %sum, %count
  })"},
    {{OpKind::reduce_max},
     "reduce_max(x) -> x with extents of 1 at axes",
     "The largest element of a float type or i32; of no elements -inf, or the least number. As "
     "with `maximum` the result is NaN where an element is NaN, and -0 is less than +0.",
     R"(  entry @e(%x: f32[N, 64]) -> (%max) {
    %max = reduce_max %x {axes = [1]}
  })"},
    {{OpKind::run_sums},
     "run_sums(x [..., D], ...) -> f32[runs, operands, D]",
     "Sums down the columns of 1 to 8 operands of one shape: `reduce_sum` over all axes but the "
     "last, stopped where each column has `runs` partial sums. A run is as many neighbouring "
     "virtual lanes of the order in which `reduce_sum` adds. Its tree goes on over [runs, 8, D], "
     "where the first row of each 8 is a run's sum and the others are zeros, with the bits of "
     "`reduce_sum`. The pass `run_sums` writes it, so that a norm's gradients read a row once.",
     R"(  entry @e(%x: f16[64, 24], %y: f32[64, 24]) -> (%sums) {
    %sums = run_sums %x, %y {runs = 4}
  })"},
    // Composites.
    {{OpKind::silu},
     "silu(x) -> x",
     "x · sigmoid(x). NaN at -inf.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = silu %x
  })"},
    {{OpKind::gelu},
     "gelu(x) -> x",
     "GELU with erf: 0.5 x · (1 + erf(x / √2)). NaN at -inf.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = gelu %x
  })"},
    {{OpKind::gelu_tanh},
     "gelu_tanh(x) -> x",
     "GELU, approximated with tanh. NaN at -inf.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = gelu_tanh %x
  })"},
    {{OpKind::quick_gelu},
     "quick_gelu(x) -> x",
     "x · sigmoid(1.702 x). NaN at -inf.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = quick_gelu %x
  })"},
    {{OpKind::relu},
     "relu(x) -> x",
     "`maximum` of x and +0: +0 where x is -0 or -inf, NaN where x is NaN.",
     R"(  entry @e(%x: f16[N, 8]) -> (%y) {
    %y = relu %x
  })"},
    {{OpKind::layer_norm},
     "layer_norm(x [..., D], weight [D], bias [D]?) -> x",
     "Over the last axis: (x - mean) / sqrt(variance + eps) · weight + bias.",
     R"(  weight %w : f16[64] = constant {value = 1.0}
  weight %b : f16[64] = constant {value = 0.0}
  entry @e(%x: f16[N, 64]) -> (%y) {
    %y = layer_norm %x, %w, %b {eps = 1e-5}
  })"},
    {{OpKind::rms_norm},
     "rms_norm(x [..., D], weight [D]) -> x",
     "Over the last axis: x / sqrt(mean of squares + eps), rounded, times the weight.",
     R"(  weight %w : f16[64] = constant {value = 1.0}
  entry @e(%x: f16[N, 64]) -> (%y) {
    %y = rms_norm %x, %w {eps = 1e-5}
  })"},
    {{OpKind::softmax},
     "softmax(x [..., D]) -> x",
     "Over the last axis. A row that is -inf everywhere, or has +inf or NaN, is NaN.",
     R"(  entry @e(%x: f16[N, 64]) -> (%p) {
    %p = softmax %x
  })"},
    {{OpKind::expert_sum},
     "expert_sum(x [N, k, D], weights [N, k]) -> [N, D]",
     "The weighted sum of the results of a token's k experts: in float32, by rank ascending, "
     "rounded once. Weights of x's type: each product is rounded to that type first. Weights of "
     "f32: products are not rounded.",
     R"(  entry @e(%x: bf16[N, 8, 64], %weights: f32[N, 8]) -> (%y) {
    %y = expert_sum %x, %weights
  })"},
    {{OpKind::attention_softmax},
     "attention_softmax(scores f32[..., N, K], first i32[..., N], slot i32[..., N], mask?) -> "
     "dtype[..., N, K]",
     "Softmax over the last axis of scale · scores, where token n sees the keys first[n] .. "
     "slot[n] and the others have the probability 0. With `softcap` c the scores are first "
     "c · tanh(scores / c); with `window` w only the last w of the keys are seen, and with `sink` "
     "s "
     "also those of the first s keys that are at most slot[n]. first and slot "
     "broadcast to the axes of the scores but the last, the mask to all of them: of i1, it says "
     "which keys are seen too; of a float type, it is added to the scores. A token that sees no "
     "key, "
     "or whose scores are all -inf, gets NaN; `empty_zero` = 1: zeros.",
     R"(  entry @e(%scores: f32[4, N, 64], %first: i32[N], %slot: i32[N], %seen: i1[N, 64]) -> (%p) {
    %p = attention_softmax %scores, %first, %slot, %seen {dtype = f16, scale = 0.125}
  })"},
    {{OpKind::rope},
     "rope(x [N, heads, head_dim], cos [N, rotary/2], sin [N, rotary/2]) -> x",
     "Rotary positions: the pair (a, b) becomes (a·cos - b·sin, b·cos + a·sin). `pairing` \"half\" "
     "pairs the elements i and i + rotary/2 of a head, \"interleaved\" 2i and 2i + 1; elements "
     "from "
     "`rotary` on stay.",
     R"(  entry @e(%q: f16[N, 4, 16], %cos: f16[N, 8], %sin: f16[N, 8]) -> (%y) {
    %y = rope %q, %cos, %sin {rotary = 16, pairing = "half"}
  })"},
    // Contractions.
    {{OpKind::linear},
     "linear(x [..., K], w [M, K], bias [M]?) -> [..., M]",
     "x times the transposed matrix w, as in PyTorch, plus the bias.",
     R"(  weight %w : f16[32, 64] = file {tensor = "proj.weight"}
  weight %b : f16[32] = file {tensor = "proj.bias"}
  entry @e(%x: f16[N, 64]) -> (%y) {
    %y = linear %x, %w, %b
  })"},
    {{OpKind::einsum},
     "einsum(a, b) -> the axes that spec names",
     "A letter in both operands and in the result is a batch axis, one in both operands alone is "
     "summed, one in an operand and the result is free. Every letter stands in two places at "
     "least.",
     R"(  entry @e(%a: f16[N, 4, 16], %b: f16[N, 4, 16]) -> (%scores) {
    %scores = einsum %a, %b {spec = "qhd,khd->hqk", dtype = f32}
  })"},
    {{OpKind::attention},
     "attention(q [..., N, heads·hd], keys [..., R, kv_heads·hd], values [..., R, kv_heads·vd], "
     "first i32[..., N], slot i32[..., N], mask?, seed?) -> [..., N, heads·vd]",
     "Token n attends to the rows first[n] .. slot[n] of the cache, both included: with first = 0 "
     "and slot = its position attention is causal, once its own row is appended. With `window` w "
     "only the last w of them. With `sink` s token n also attends to those of the rows 0 .. s - 1 "
     "that are at most slot[n], whatever first and `window` are; none of them counts twice. Query "
     "head j uses the key/value head j / (heads / kv_heads). The "
     "keys and values are a state, a version of one, or values of the same call; with leading axes "
     "each sequence has its own.\n\n"
     "The mask has the axes [..., heads, N, R], each of its extent or of 1, which is repeated. Of "
     "i1, it says which keys are seen too; of a float type, it is added to the scores. `any_range` "
     "= 1 allows any numbers as first and slot: a token sees those of its rows that "
     "are there. A token that sees no key, or whose scores are all -inf, gets NaN; `empty_zero` = "
     "1: zeros. An infinity or NaN in a row of values may reach tokens that do not see the row.\n\n"
     "With `dropout` p the last operand is a seed i32[]. Each weight of the softmax is left out "
     "with "
     "probability p, after the sum of the weights, and the others are divided by 1 - p; p is "
     "counted "
     "in parts of 65,536. Which ones depends on the seed and on the weight's sequence, head, token "
     "and row alone (ir/attention_dropout.h), so that a gradient with the same seed leaves out the "
     "same.\n\n"
     "The scores are float32. The kernel that takes the op sums in an order of its own, and rounds "
     "the weights to the element type before or after they are divided by their sum.",
     R"(  symbol R in [1, 128]
  state %k : f16[R, 32]
  state %v : f16[R, 32]
  entry @e(%q: f16[N, 64], %key: f16[N, 32], %value: f16[N, 32], %first: i32[N], %slot: i32[N]) -> (%y) {
    %k1 = kv_append %k, %key, %slot
    %v1 = kv_append %v, %value, %slot
    %y = attention %q, %k1, %v1, %first, %slot {heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    // Anchors.
    {{OpKind::linear, Order::gemv},
     "linear(x [N, K], w [M, K], bias [M]?) {order = gemv} -> [N, M]",
     "`linear` of at most eight rows, read at the speed of memory; `splits` parts of a matrix row "
     "are summed apart, which fixes the order of the sum. w is a weight or an input as it stands "
     "in "
     "memory.",
     R"(  weight %w : f16[32, 64] = file {tensor = "proj.weight"}
  entry @e(%x: f16[4, 64]) -> (%y) {
    %y = linear %x, %w {order = gemv, splits = 2}
  })"},
    {{OpKind::linear, Order::tiled_linear},
     "linear(x [..., K], w [M, K], bias [M]?) {order = tiled_linear} -> [..., M]",
     "`linear` of a 16-bit type on tensor cores, summed along K in steps of 16; K is a multiple of "
     "8. The bias is added before the sum is rounded. A `dtype` of f32 leaves the sum unrounded.",
     R"(  weight %w : f16[32, 64] = file {tensor = "proj.weight"}
  entry @e(%x: f16[40, 64]) -> (%y) {
    %y = linear %x, %w {order = tiled_linear}
  })"},
    {{OpKind::attention, Order::decode_attention},
     "attention(q, keys, values, first, slot, mask?) {order = decode_attention}",
     "`attention` of at most eight tokens, or of one of each sequence; the keys that a token sees "
     "are cut into `splits` parts of equal length. `streams`: a power of two, the parts of a split "
     "that are summed apart; absent: the most for heads of this width.",
     R"(  state %k : f16[128, 32]
  state %v : f16[128, 32]
  entry @e(%q: f16[2, 64], %first: i32[2], %slot: i32[2]) -> (%y) {
    %y = attention %q, %k, %v, %first, %slot {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 2}
  })"},
    {{OpKind::attention, Order::tiled_attention},
     "attention(q, keys, values, first, slot, mask?, tiles?, seed?) {order = tiled_attention}",
     "`attention` of many tokens of a 16-bit type, on tensor cores: weights are rounded to the "
     "type "
     "before they are multiplied with the values. `tiles` is `mask_tiles` of the mask, by tiles of "
     "128 tokens and as many keys as the kernel takes at a time: 128, or 64 where heads have more "
     "than 128 elements. Keys of a tile that is false take no part.",
     R"(  state %k : f16[128, 32]
  state %v : f16[128, 32]
  entry @e(%q: f16[20, 64], %first: i32[20], %slot: i32[20]) -> (%y) {
    %y = attention %q, %k, %v, %first, %slot {order = tiled_attention, heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::mask_tiles},
     "mask_tiles(mask [..., heads, N, R]) -> i1 [..., heads, N', R']",
     "Whether a tile of a mask of `attention`, of `tile_tokens` tokens and `tile_keys` keys, shows "
     "a key: has an element that is true or, of a float type, is not -inf. N' and R' are the "
     "numbers of tiles in the extents N and R, of a symbol in its largest value; tiles beyond "
     "those of a call are false.",
     R"(  entry @e(%mask: i1[1, N, 512]) -> (%tiles) {
    %tiles = mask_tiles %mask {tile_tokens = 128, tile_keys = 128}
  })"},
    {{OpKind::attention_log_sum},
     "attention_log_sum(q, keys, values, first, slot, mask?) -> f32[..., heads, N]",
     "Of each token's head log2 of the sum of 2^(score * log2 e) over the keys that it sees, -inf "
     "where it sees none. Operands, scores and the order of operations are those of "
     "`tiled_attention`, whose kernel has this as a second result.",
     R"(  entry @e(%q: bf16[20, 64], %k: bf16[20, 32], %v: bf16[20, 32], %first: i32[20], %slot: i32[20]) -> (%s) {
    %s = attention_log_sum %q, %k, %v, %first, %slot {heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::attention_query_gradient},
     "attention_query_gradient(q, keys, values, first, slot, grad, log_sum f32[..., heads, N], "
     "delta "
     "f32[..., heads, N], mask?, seed?) -> the type of q",
     "The gradient of the queries of an attention. `grad` is the gradient of its result, "
     "`log_sum` its `attention_log_sum`, `delta` of each token's head the sum over its "
     "elements of `grad` times the attention's result. The probabilities are computed again "
     "from the log-sums; `dropout` and `seed` are the attention's.",
     R"(  entry @e(%q: bf16[20, 64], %k: bf16[20, 32], %v: bf16[20, 32], %first: i32[20], %slot: i32[20], %grad: bf16[20, 64], %sum: f32[4, 20], %delta: f32[4, 20]) -> (%g) {
    %g = attention_query_gradient %q, %k, %v, %first, %slot, %grad, %sum, %delta {heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::attention_key_gradient},
     "attention_key_gradient(q, keys, values, first, slot, grad, log_sum f32[..., heads, N], delta "
     "f32[..., heads, N], mask?, seed?) -> the type of keys",
     "The gradient of the keys of an attention, with the operands of "
     "`attention_query_gradient`: the sum over the tokens that see a key, and over the query "
     "heads of its head.",
     R"(  entry @e(%q: bf16[20, 64], %k: bf16[20, 32], %v: bf16[20, 32], %first: i32[20], %slot: i32[20], %grad: bf16[20, 64], %sum: f32[4, 20], %delta: f32[4, 20]) -> (%g) {
    %g = attention_key_gradient %q, %k, %v, %first, %slot, %grad, %sum, %delta {heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::attention_value_gradient},
     "attention_value_gradient(q, keys, values, first, slot, grad, log_sum f32[..., heads, N], "
     "delta "
     "f32[..., heads, N], mask?, seed?) -> the type of values",
     "The gradient of the values of an attention, with the operands of "
     "`attention_query_gradient`. The kernel of the gradient of keys has it as a second "
     "result.",
     R"(  entry @e(%q: bf16[20, 64], %k: bf16[20, 32], %v: bf16[20, 32], %first: i32[20], %slot: i32[20], %grad: bf16[20, 64], %sum: f32[4, 20], %delta: f32[4, 20]) -> (%g) {
    %g = attention_value_gradient %q, %k, %v, %first, %slot, %grad, %sum, %delta {heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::attention, Order::float_attention},
     "attention(q, keys, values, first, slot, mask?) {order = float_attention}",
     "`attention` of many tokens of f32, all sums in float32.",
     R"(  state %k : f32[128, 32]
  state %v : f32[128, 32]
  entry @e(%q: f32[20, 64], %first: i32[20], %slot: i32[20]) -> (%y) {
    %y = attention %q, %k, %v, %first, %slot {order = float_attention, heads = 4, kv_heads = 2, scale = 0.25}
  })"},
    {{OpKind::sample},
     "sample(logits [N, V], temperature f32[N], top_k i32[N], top_p f32[N], seed i32[N], step "
     "i32[N]) -> i32[N]",
     "The choice of a token in each row; -1 where a logit is NaN, the largest is +infinity or all "
     "are "
     "-infinity. temperature 0 takes the largest logit, of equal ones the "
     "first. Otherwise a draw from softmax(logits / temperature), cut to the top_k largest (0: "
     "all) "
     "and then to the fewest of the largest whose probabilities reach top_p (1: all). The draw "
     "depends on seed[n] and step[n] alone.",
     R"(  entry @e(%logits: f16[N, 100], %temperature: f32[N], %top_k: i32[N], %top_p: f32[N], %seed: i32[N], %step: i32[N]) -> (%token) {
    %token = sample %logits, %temperature, %top_k, %top_p, %seed, %step
  })"},
    {{OpKind::cumulative_sum},
     "cumulative_sum(x) -> x",
     "Running sums along `axis`, as PyTorch's cumsum: result i is the sum of the elements 0 .. i. "
     "`reverse` = 1: of i .. n - 1; `exclusive` = 1: without i, so that the first result is 0. Of "
     "i32 the sums wrap around. A sum starts at +0: zeros add up to +0, also where all are -0.",
     R"(  entry @e(%x: f32[N, 64]) -> (%y) {
    %y = cumulative_sum %x {axis = 1}
  })"},
    {{OpKind::scatter_add},
     "scatter_add(index i32[N], updates [N, D]) -> [rows, D]",
     "Row v of the result is the sum of the updates n with index[n] = v, n ascending, in float32 "
     "and "
     "rounded once. A sum starts at +0, and a row that no number names stays +0. The gradient of "
     "`embedding`.",
     R"(  entry @e(%ids: i32[N], %gradient: f16[N, 24]) -> (%y) {
    %y = scatter_add %ids, %gradient {rows = 100}
  })"},
    {{OpKind::dequantize},
     "dequantize(rows i32[..., words of a packed row]) -> f32[..., size]",
     "The elements of rows of codes: scale * (code - zero) - minimum, in float32; `codes` is "
     "their "
     "format, as of `pack_codes`. `linear` takes such a matrix beside an x of another type: its "
     "products "
     "and sums are of float32 elements, and no element is rounded to the type of x. Most products "
     "read the packed matrix itself, and `embedding` of such a table reads its packed rows.",
     R"(  weight %w : i32[256, 132] = {
    %words = file {tensor = "proj.weight_packed"} : i32[256, 128]
    %scales = file {tensor = "proj.weight_scale"} : f16[256, 8]
    %packed = pack_codes %words, %scales {size = 1024, codes = "int4 g128 f16"}
    return %packed
  }
  entry @e(%x: bf16[N, 1024]) -> (%y) {
    %m = dequantize %w {size = 1024, codes = "int4 g128 f16"}
    %y = linear %x, %m
  })"},
    {{OpKind::quantized_linear},
     "quantized_linear(x [N, size], matrix i32[M, words of a packed row], bias [M]?) -> [N, M]",
     "`linear` of at most eight rows with a matrix of codes, read at the speed of memory. Within a "
     "group the products of x and code - zero are added, and the sum is then multiplied by the "
     "scale; "
     "`splits` parts of a matrix row are summed apart. A pass chooses it for `linear` of a "
     "`dequantize`.",
     R"(  weight %w : i32[256, 132] = file {tensor = "proj.packed"}
  entry @e(%x: bf16[4, 1024]) -> (%y) {
    %y = quantized_linear %x, %w {size = 1024, splits = 1, codes = "int4 g128 f16"}
  })"},
    {{OpKind::quantized_linear, Order::tiled_codes},
     "quantized_linear(x [..., size], matrix, bias [M]?) {order = tiled_codes} -> [..., M]",
     "`linear` of any number of rows of a 16-bit type with a matrix of codes, on tensor cores. "
     "Within a group the products of x and code - zero are added in steps of 16, and the sum is "
     "then multiplied by the scale. A pass chooses it for more than eight rows.",
     R"(  weight %w : i32[256, 132] = file {tensor = "proj.packed"}
  entry @e(%x: bf16[N, 1024]) -> (%y) {
    %y = quantized_linear %x, %w {size = 1024, codes = "int4 g128 f16", order = tiled_codes}
  })"},
    {{OpKind::grouped_linear},
     "grouped_linear(x [N ..., K], matrices [G, M, K], ends i32[G]) -> [N ..., M]",
     "`linear` of runs of rows, each with a matrix of its own, of a 16-bit type: run g has the "
     "rows "
     "ends[g - 1] .. ends[g] - 1, from 0 for the first, and rows behind the last run are 0. Rows "
     "are counted over all axes but the last. The ends ascend and are at most that number. Each "
     "element is summed in the order `tiled_linear`.",
     R"(  weight %w : bf16[8, 256, 64] = file {tensor = "experts"}
  entry @e(%x: bf16[N, 64], %ends: i32[8]) -> (%y) {
    %y = grouped_linear %x, %w, %ends
  })"},
    {{OpKind::grouped_outer},
     "grouped_outer(x [N ..., M], y [N ..., K], ends i32[G]) -> [G, M, K]",
     "The sum of the outer products of the rows of x and y, over each run of rows, of a 16-bit "
     "type; the gradient of the matrices of `grouped_linear`. Runs as of `grouped_linear`; one "
     "without rows has zeros. Each element is summed in the order `tiled_linear`, from the run's "
     "first row on.",
     R"(  entry @e(%x: bf16[N, 256], %y: bf16[N, 64], %ends: i32[8]) -> (%z) {
    %z = grouped_outer %x, %y, %ends
  })"},
    {{OpKind::top_k},
     "top_k(x [N, E]) -> i32[N, count]",
     "The positions of the `count` largest elements of a row, the largest first, equal ones by "
     "ascending position. -0 and +0 are equal; NaN is larger than every number, and all NaN are "
     "equal. Unlike PyTorch's, the choice among equal elements is the same on every device.",
     R"(  entry @e(%p: f32[N, 128]) -> (%experts) {
    %experts = top_k %p {count = 8}
  })"},
    {{OpKind::expert_linear},
     "expert_linear(x [N, K] or [N, k, K], matrices [E, M, K], experts i32[N, k]) -> [N, k, M]",
     "`linear` of each token with the matrices of its k experts: row r of token n, or the token's "
     "only row, times the matrix that experts[n, r] names. No matrix is copied. The order of "
     "additions does not depend on the number of tokens. A pass multiplies many tokens of 16-bit "
     "elements by `grouped_linear`, which has another order. With `codes` and `size` the matrices "
     "are "
     "rows of `pack_codes`, i32[E, M, words of a packed row], which are not dequantized.",
     R"(  weight %w : bf16[128, 1536, 64] = file {tensor = "experts"}
  entry @e(%x: bf16[N, 64], %experts: i32[N, 8]) -> (%y) {
    %y = expert_linear %x, %w, %experts
  })"},
    {{OpKind::sorted_positions},
     "sorted_positions(numbers i32[N, k]) -> i32[N, k]",
     "The positions of the numbers by ascending number, those of equal numbers in ascending order. "
     "Number [n, r] has the position n * k + r, and the result is counted in the same way. Numbers "
     "other than 0 .. count - 1 come last, and count as equal. A pass takes a token's experts by "
     "it.",
     R"(  entry @e(%experts: i32[N, 8]) -> (%positions) {
    %positions = sorted_positions %experts {count = 128}
  })"},
    {{OpKind::sorted_places},
     "sorted_places(numbers i32[N, k]) -> i32[N, k]",
     "The inverse of `sorted_positions`: the place of each number in the sorted order.",
     R"(  entry @e(%experts: i32[N, 8]) -> (%places) {
    %places = sorted_places %experts {count = 128}
  })"},
    {{OpKind::run_ends},
     "run_ends(numbers i32[N, k]) -> i32[count]",
     "Where the run of each number ends in the sorted order: how many numbers are 0 .. e.",
     R"(  entry @e(%experts: i32[N, 8]) -> (%ends) {
    %ends = run_ends %experts {count = 128}
  })"},
    {{OpKind::all_reduce},
     "all_reduce(x) -> x's type",
     "The sum of x over the ranks of a run, by element, with the same bits on all ranks: from rank "
     "0 "
     "on in the order of the ranks, in float32 and rounded once; i32 wraps around. One rank: x. "
     "`group` names the ranks; all ranks of a run are the group. `run` and `verify` take `--ranks` "
     "on the CPU.",
     R"(  entry @e(%x: f16[N, 64]) -> (%y) {
    %y = all_reduce %x {group = "tp"}
  })"},
    {{OpKind::custom},
     "custom(operands ...) -> what the registered op says",
     "An op that the program which reads the module has registered under the name `op`, with its "
     "rule of types, CUDA text and value on the host "
     "([embedding](embedding.md)). The program `sinter` registers none and refuses the module.",
     R"(  entry @e(%x: f16[N, 64], %w: f16[64]) -> (%y) {
    %y = custom %x, %w {op = "test.rms_norm", numbers = [1e-5]}
  })"},
};

constexpr std::string_view kElementwiseRules =
    R"(- `floor` is the next integer below, `round` the nearest one, ties to even: 0.5 and 2.5 become 0 and 2. NaN, infinities and the sign of zero stay: `round` of -0.5 is -0.
- `maximum` and `minimum` are NaN where an operand is NaN; -0 is less than +0.
- `less`, `less_equal` and `equal` are false where an operand is NaN; -0 and +0 are equal.
- `div` is IEEE division: 1 / 0 is inf, 0 / 0 is NaN.
- `pow` has the special cases of C: `pow(a, 0)` and `pow(1, b)` are 1, even of NaN; a negative a gives NaN unless b is an integer or infinite.
- `div_floor` rounds the quotient down, `mod_floor` is what it leaves, of the sign of b, as in Python. By 0 the quotient is 0 and what is left is a; no call fails. The least number by -1 wraps around: the quotient is the least number, and 0 is left.
- `bit_and`, `bit_or`, `bit_xor`, `shift_left` and `shift_right` are of two's complement; a shift moves by b places, to the right it repeats the sign. A b below 0 or beyond the last bit moves all bits out: 0, and to the right the sign.
- `neg` and `abs` of the least number are the least number.
)";

}  // namespace

std::string_view elementwise_rules() { return kElementwiseRules; }
llvm::ArrayRef<OpExample> op_examples() { return kExamples; }
llvm::ArrayRef<ClassText> class_texts() { return kClasses; }

}  // namespace sinter::test
