// Long because each op with attributes or operands of its own has a function here.
#include "runtime/gradient_uses.h"

#include <map>

#include "ir/graph.h"
#include "support/packed_weights.h"
#include "support/result.h"

namespace sinter {
namespace {

using Shape = std::vector<std::string>;

std::string text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Shape random_shape(Random& random, int64_t least, int64_t most) {
  static constexpr std::string_view kExtents[] = {"N", "M", "1", "2", "3"};
  Shape shape;
  for (int64_t i = random.between(least, most); i > 0; --i)
    shape.emplace_back(random.pick(kExtents));
  return shape;
}

std::string random_type(Random& random) {
  static constexpr std::string_view kTypes[] = {"f32", "f16", "bf16"};
  return std::string(random.pick(kTypes));
}

/// Shapes that broadcast to a common one, which is the last.
std::vector<Shape> broadcasting(Random& random, size_t operands) {
  Shape whole = random_shape(random, 0, 3);
  std::vector<Shape> shapes(operands, whole);
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    bool repeats = true;
    for (Shape& shape : shapes)
      if (random.chance(30))
        shape[axis] = "1";
      else
        repeats = false;
    if (repeats) whole[axis] = "1";
  }
  for (Shape& shape : shapes)
    while (!shape.empty() && shape[0] == "1" && random.chance(50)) shape.erase(shape.begin());
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  whole.erase(whole.begin(), whole.end() - static_cast<ptrdiff_t>(rank));
  shapes.push_back(whole);
  return shapes;
}

OpUse elementwise(Random& random, std::string_view name, size_t operands, double low, double high) {
  const std::string type = random_type(random);
  const std::vector<Shape> shapes = broadcasting(random, operands);
  std::vector<std::string> parameters, names;
  for (size_t i = 0; i < operands; ++i) {
    names.push_back(fmt::format("%x{}", i));
    parameters.push_back(fmt::format("{}: {}{}", names[i], type, text(shapes[i])));
  }
  return {fmt::format("{}", fmt::join(parameters, ", ")),
          fmt::format("%y = {} {} : {}{}", name, fmt::join(names, ", "), type, text(shapes.back())),
          low, high};
}

/// An op of one operand, which has the type of the result. `attributes` are in braces.
OpUse of_rows(Random& random, std::string_view name, std::string_view attributes) {
  const std::string type = random_type(random) + text(random_shape(random, 1, 3));
  return {"%x: " + type, fmt::format("%y = {} %x {} : {}", name, attributes, type)};
}

OpUse where_op(Random& random) {
  const std::string type = random_type(random);
  const std::vector<Shape> s = broadcasting(random, 3);
  return {
      fmt::format("%c: i1{}, %a: {}{}, %b: {}{}", text(s[0]), type, text(s[1]), type, text(s[2])),
      fmt::format("%y = where %c, %a, %b : {}{}", type, text(s[3]))};
}

OpUse cast_op(Random& random) {
  const std::string shape = text(random_shape(random, 0, 2));
  return {fmt::format("%x: {}{}", random_type(random), shape),
          fmt::format("%y = cast %x : {}{}", random_type(random), shape)};
}

OpUse reshape_op(Random& random) {
  static constexpr std::string_view kResults[] = {"[N, 2, M, 3]", "[M, N, 6]", "[6, N, M, 1]"};
  const std::string type = random_type(random);
  return {fmt::format("%x: {}[N, 6, M]", type),
          fmt::format("%y = reshape %x : {}{}", type, random.pick(kResults))};
}

OpUse transpose_op(Random& random) {
  const std::string type = random_type(random);
  const Shape shape = random_shape(random, 1, 4);
  std::vector<size_t> axes(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = i;
    std::swap(axes[i], axes[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
  }
  Shape result;
  for (size_t axis : axes) result.push_back(shape[axis]);
  return {fmt::format("%x: {}{}", type, text(shape)),
          fmt::format("%y = transpose %x {{axes = [{}]}} : {}{}", fmt::join(axes, ", "), type,
                      text(result))};
}

/// Parts of constant and of symbolic extents, of constant and of symbolic sizes.
OpUse slice_op(Random& random) {
  static constexpr std::string_view kParts[][4] = {
      {"5", "1", "3", "M"}, {"5", "0", "2", "N"}, {"5", "3", "2", "N"}, {"5", "0", "5", "M"},
      {"N", "1", "2", "3"}, {"N", "0", "M", "2"}, {"N", "0", "N", "M"}, {"N", "3", "1", "M"}};
  const auto& [extent, begin, size, other] = random.pick(kParts);
  const bool first = random.chance(50);
  const auto shape = [&](std::string_view own) {
    return first ? fmt::format("[{}, {}]", own, other) : fmt::format("[{}, {}]", other, own);
  };
  const std::string type = random_type(random);
  return {fmt::format("%x: {}{}", type, shape(extent)),
          fmt::format("%y = slice %x {{axis = {}, begin = {}, size = {}}} : {}{}", first ? 0 : 1,
                      begin, size, type, shape(size))};
}

OpUse broadcast_op(Random& random) {
  const std::string type = random_type(random);
  const std::vector<Shape> s = broadcasting(random, 2);
  return {fmt::format("%x: {}{}", type, text(s[0])),
          fmt::format("%y = broadcast %x : {}{}", type, text(s[2]))};
}

OpUse concat_op(Random& random) {
  const std::string type = random_type(random);
  Shape shape = random_shape(random, 1, 3);
  const auto axis = static_cast<size_t>(random.below(static_cast<int64_t>(shape.size())));
  int64_t sum = 0;
  std::vector<std::string> parameters, names;
  for (int64_t i = 0, count = random.between(1, 3); i < count; ++i) {
    const int64_t extent = random.between(1, 3);
    shape[axis] = std::to_string(extent);
    sum += extent;
    names.push_back(fmt::format("%x{}", i));
    parameters.push_back(fmt::format("{}: {}{}", names.back(), type, text(shape)));
  }
  shape[axis] = std::to_string(sum);
  return {fmt::format("{}", fmt::join(parameters, ", ")),
          fmt::format("%y = concat {} {{axis = {}}} : {}{}", fmt::join(names, ", "), axis, type,
                      text(shape))};
}

OpUse embedding_op(Random& random) {
  static constexpr std::string_view kShapes[][3] = {
      {"5, 3", "N", "5"}, {"N, M", "7", "N"}, {"2, 3, M", "2, 3", "6"}, {"4, 1", "1, N", "4"}};
  const auto& [table, ids, rows] = random.pick(kShapes);
  const std::string type = random_type(random);
  const std::string width(table.substr(table.rfind(' ') + 1));
  return {fmt::format("%t: {}[{}], %i: i32[{}]", type, table, ids),
          fmt::format("%y = embedding %t, %i : {}[{}, {}]", type, ids, width),
          -2,
          2,
          {std::string(rows)}};
}

OpUse gather_op(Random& random) {
  const std::string type = random_type(random);
  const Shape shape = random_shape(random, 1, 3);
  Shape index = shape;
  const auto axis = static_cast<size_t>(random.below(static_cast<int64_t>(shape.size())));
  index[axis] = random.chance(50) ? "1" : random.chance(50) ? "M" : "4";
  return {fmt::format("%x: {}{}, %i: i32{}", type, text(shape), text(index)),
          fmt::format("%y = gather %x, %i {{axis = {}}} : {}{}", axis, type, text(index)),
          -2,
          2,
          {shape[axis]}};
}

OpUse scatter_add_op(Random& random) {
  const std::string type = random_type(random), rows = random.chance(50) ? "M" : "3";
  return {fmt::format("%i: i32[N], %u: {}[N, 3]", type),
          fmt::format("%y = scatter_add %i, %u {{rows = {}}} : {}[{}, 3]", rows, type, rows),
          -2,
          2,
          {rows}};
}

/// Maxima are of float32: 16-bit elements are often equal, and three equal ones have no derivative.
OpUse reduce_op(Random& random, std::string_view name) {
  const std::string type = name == "reduce_max" ? "f32" : random_type(random);
  const Shape shape = random_shape(random, 1, 3);
  std::vector<size_t> axes;
  Shape result = shape;
  while (axes.empty())
    for (size_t i = 0; i < shape.size(); ++i)
      if (random.chance(50)) axes.push_back(i);
  for (size_t axis : axes) result[axis] = "1";
  return {fmt::format("%x: {}{}", type, text(shape)),
          fmt::format("%y = {} %x {{axes = [{}]}} : {}{}", name, fmt::join(axes, ", "), type,
                      text(result))};
}

OpUse cumulative_sum_op(Random& random) {
  return of_rows(
      random, "cumulative_sum",
      fmt::format("{{axis = 0, reverse = {}, exclusive = {}}}", random.below(2), random.below(2)));
}

/// Some have a float32 matrix beside a 16-bit operand, or an order and a float32 result.
OpUse linear_op(Random& random) {
  static constexpr std::string_view kTypes[][3] = {
      {"f32", "f32", "f32"}, {"f16", "f16", "f16"}, {"f16", "f32", "f16"}, {"bf16", "bf16", "f32"}};
  const auto& [x, w, result] = random.pick(kTypes);
  Shape x_shape = random_shape(random, 0, 2), y_shape = x_shape;
  const bool biased = random.chance(50);
  x_shape.push_back("8");
  y_shape.push_back("4");
  return {fmt::format("%x: {}{}, %w: {}[4, 8]{}", x, text(x_shape), w,
                      biased ? fmt::format(", %b: {}[4]", x) : ""),
          fmt::format("%y = linear %x, %w{}{} : {}{}", biased ? ", %b" : "",
                      x == result ? "" : " {order = tiled_linear, dtype = f32}", result,
                      text(y_shape))};
}

OpUse einsum_op(Random& random) {
  static constexpr std::string_view kSpecs[][4] = {
      {"nk,mk->nm", "[N, 3]", "[M, 3]", "[N, M]"},
      {"ab,cab->c", "[N, M]", "[2, N, M]", "[2]"},
      {"nkgd,tkd->kgnt", "[N, 2, 3, 4]", "[M, 2, 4]", "[2, 3, N, M]"},
      {"a,b->ba", "[N]", "[M]", "[M, N]"},
      {"bij,bjk->ikb", "[2, N, M]", "[2, M, 3]", "[N, 3, 2]"}};
  const auto& [spec, a, b, result] = random.pick(kSpecs);
  const std::string type = random_type(random), result_type = random_type(random);
  return {fmt::format("%a: {}{}, %b: {}{}", type, a, type, b),
          fmt::format("%y = einsum %a, %b {{dtype = {}, spec = \"{}\"}} : {}{}", result_type, spec,
                      result_type, result)};
}

OpUse quantized_linear_op(Random& random) {
  const CodeFormat format = value(parse_code_format("int4 g128 f16"));
  const test::StoredCodes stored = test::random_codes(format, 3, 16, random.next());
  const bool tiled = random.chance(50);
  const std::string type = tiled ? "bf16" : random_type(random), tokens = tiled ? "N" : "5";
  return {fmt::format("%x: {}[{}, 16], %p: i32[3, {}], %b: {}[3]", type, tokens,
                      row_words(format, 16), type),
          fmt::format("%y = quantized_linear %x, %p, %b {{{}, size = 16, codes = \"int4 g128 "
                      "f16\"}} : {}[{}, 3]",
                      tiled ? "order = tiled_codes" : "splits = 1", type, tokens),
          -2,
          2,
          {},
          {stored.packed()}};
}

OpUse grouped_linear_op(Random& random) {
  const std::string type = random.chance(50) ? "f16" : "bf16";
  return {fmt::format("%x: {0}[N, 8], %w: {0}[2, 16, 8], %e: i32[2]", type),
          fmt::format("%y = grouped_linear %x, %w, %e {{checked = 1}} : {}[N, 16]", type),
          -2,
          2,
          {"N"}};
}

OpUse grouped_outer_op(Random& random) {
  const std::string type = random.chance(50) ? "f16" : "bf16";
  return {fmt::format("%x: {0}[N, 8], %z: {0}[N, 16], %e: i32[2]", type),
          fmt::format("%y = grouped_outer %x, %z, %e {{checked = 1}} : {}[2, 8, 16]", type),
          -2,
          2,
          {"N"}};
}

/// Two sequences, heads that share keys, and a mask, a window, a cap and a dropout, or none of
/// them. A token sees its last key at least.
OpUse attention_op(Random& random) {
  const std::string type = random.chance(50) ? "f16" : "bf16";
  const bool masked = random.chance(50), dropped = random.chance(50);
  std::string attributes = "heads = 4, kv_heads = 2, scale = 0x1p-1";
  if (random.chance(50)) attributes += ", softcap = 0x1.8p+1";
  if (random.chance(50)) attributes += ", window = 2";
  if (dropped) attributes += ", dropout = 0x1p-2";
  return {fmt::format("%q: {0}[2, M, 12], %k: {0}[2, N, 6], %v: {0}[2, N, 4], %f: i32[2, M], "
                      "%s: i32[2, M], %m: i1[2, 1, M, N]",
                      type),
          fmt::format("%last = reshape %s : i32[2, 1, M, 1]\n"
                      "%key = iota {{axis = 3}} : i32[1, 1, 1, N]\n"
                      "%is.last = equal %last, %key : i1[2, 1, M, N]\n"
                      "%mask = logical_or %m, %is.last : i1[2, 1, M, N]\n"
                      "%seed = constant {{value = 77}} : i32[]\n"
                      "%y = attention %q, %k, %v, %f, %s{}{} {{{}}} : {}[2, M, 8]",
                      masked ? ", %mask" : "", dropped ? ", %seed" : "", attributes, type),
          -2,
          2,
          {"1", "N"}};
}

OpUse norm_op(Random& random, std::string_view name, bool biased) {
  const std::string type = random_type(random);
  return {fmt::format("%x: {0}[N, 5], %w: {0}[5]{1}", type,
                      biased ? fmt::format(", %b: {}[5]", type) : ""),
          fmt::format("%y = {} %x, %w{} {{eps = 0x1p-6}} : {}[N, 5]", name, biased ? ", %b" : "",
                      type)};
}

OpUse attention_softmax_op(Random& random) {
  const std::string type = random_type(random);
  return {
      "%x: f32[2, M, N], %f: i32[M], %s: i32[M], %m: f16[M, N]",
      fmt::format("%y = attention_softmax %x, %f, %s, %m {{dtype = {0}, scale = 0x1p-1, softcap "
                  "= 0x1p+1}} : {0}[2, M, N]",
                  type),
      -2,
      2,
      {"1", "N"}};
}

OpUse rope_op(Random& random) {
  const std::string type = random_type(random);
  return {fmt::format("%x: {0}[N, 2, 6], %c: {0}[N, 2], %s: {0}[N, 2]", type),
          fmt::format("%y = rope %x, %c, %s {{rotary = 4, pairing = \"{}\"}} : {}[N, 2, 6]",
                      random.chance(50) ? "half" : "interleaved", type)};
}

OpUse expert_sum_op(Random& random) {
  const std::string type = random_type(random);
  return {fmt::format("%x: {0}[N, 3, 4], %w: {0}[N, 3]", type),
          fmt::format("%y = expert_sum %x, %w : {}[N, 4]", type)};
}

}  // namespace

OpUse random_use(std::string_view op, Random& random) {
  using Draw = OpUse (*)(Random&);
  static const std::map<std::string_view, Draw> kDraws = {
      {"where", where_op},
      {"cast", cast_op},
      {"reshape", reshape_op},
      {"transpose", transpose_op},
      {"slice", slice_op},
      {"broadcast", broadcast_op},
      {"concat", concat_op},
      {"embedding", embedding_op},
      {"gather", gather_op},
      {"scatter_add", scatter_add_op},
      {"cumulative_sum", cumulative_sum_op},
      {"linear", linear_op},
      {"einsum", einsum_op},
      {"quantized_linear", quantized_linear_op},
      {"grouped_linear", grouped_linear_op},
      {"grouped_outer", grouped_outer_op},
      {"attention", attention_op},
      {"copy", [](Random& r) { return of_rows(r, "copy", ""); }},
      {"reduce_sum", [](Random& r) { return reduce_op(r, "reduce_sum"); }},
      {"reduce_max", [](Random& r) { return reduce_op(r, "reduce_max"); }},
      {"silu", [](Random& r) { return of_rows(r, "silu", ""); }},
      {"gelu", [](Random& r) { return of_rows(r, "gelu", ""); }},
      {"gelu_tanh", [](Random& r) { return of_rows(r, "gelu_tanh", ""); }},
      {"quick_gelu", [](Random& r) { return of_rows(r, "quick_gelu", ""); }},
      {"relu", [](Random& r) { return of_rows(r, "relu", ""); }},
      {"softmax", [](Random& r) { return of_rows(r, "softmax", ""); }},
      {"layer_norm", [](Random& r) { return norm_op(r, "layer_norm", true); }},
      {"rms_norm", [](Random& r) { return norm_op(r, "rms_norm", false); }},
      {"attention_softmax", attention_softmax_op},
      {"rope", rope_op},
      {"expert_sum", expert_sum_op},
  };
  if (const auto draw = kDraws.find(op); draw != kDraws.end()) return draw->second(random);
  // Elementwise ops, where they are defined and steep nowhere.
  static const std::map<std::string_view, std::pair<double, double>> kRanges = {
      {"log", {0.5, 3}}, {"log1p", {-0.5, 2}}, {"sqrt", {0.5, 3}},    {"div", {0.5, 3}},
      {"pow", {0.5, 3}}, {"rsqrt", {0.5, 3}},  {"floor", {0.1, 0.4}}, {"round", {0.1, 0.4}}};
  const auto range = kRanges.find(op);
  const auto [low, high] = range == kRanges.end() ? std::pair(-2.0, 2.0) : range->second;
  const auto operands = static_cast<size_t>(op_info(*parse_op_kind(op)).min_operands);
  return elementwise(random, op, operands, low, high);
}

std::vector<std::string_view> differentiable_ops() {
  std::vector<std::string_view> ops = {
      "where",       "cast",           "copy",           "reshape",       "transpose",
      "slice",       "broadcast",      "concat",         "embedding",     "gather",
      "scatter_add", "cumulative_sum", "reduce_sum",     "reduce_max",    "linear",
      "einsum",      "attention",      "grouped_linear", "grouped_outer", "quantized_linear"};
#define SINTER_OP(name, op_class, ...) \
  if (OpClass::op_class == OpClass::composite) ops.push_back(#name);
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...) \
  if (OpInfo::Result::result == OpInfo::Result::same &&         \
      (OpInfo::Domain::domain == OpInfo::Domain::real ||        \
       OpInfo::Domain::domain == OpInfo::Domain::number))       \
    ops.push_back(#name);
#include "ir/ops.def"
  return ops;
}

}  // namespace sinter
