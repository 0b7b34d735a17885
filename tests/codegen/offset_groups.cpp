#include "codegen/offset_groups.h"

#include <fmt/format.h>

#include "kernels/decode_attention/order.h"

namespace sinter {
namespace {

/// The text of a group: operands that are views of inputs one element longer, then its ops.
class Text {
 public:
  /// %`name` is the tensor of `dims` at element 1 of an input.
  void operand(const std::string& name, std::string_view dtype, const std::vector<int64_t>& dims) {
    int64_t volume = 1;
    for (int64_t dim : dims) volume *= dim;
    const std::string type = fmt::format("{}[{}]", dtype, fmt::join(dims, ", "));
    inputs_ +=
        fmt::format("{}%{}.all: {}[{}]", inputs_.empty() ? "" : ", ", name, dtype, volume + 1);
    const bool flat = dims.size() == 1;
    ops_ += fmt::format("  %{} = slice %{}.all {{axis = 0, begin = 1, size = {}}} : {}[{}]\n",
                        flat ? name : name + ".flat", name, volume, dtype, volume);
    if (!flat)
      ops_ += fmt::format("  %{0} = reshape %{0}.flat {{dims = [{1}]}} : {2}\n", name,
                          fmt::join(dims, ", "), type);
  }
  /// %`name` is an input itself.
  void whole_operand(const std::string& name, std::string_view dtype, int64_t dim) {
    inputs_ += fmt::format("{}%{}: {}[{}]", inputs_.empty() ? "" : ", ", name, dtype, dim);
  }
  void op(const std::string& line) { ops_ += "  " + line + "\n"; }
  OffsetGroup group(std::string name, uint32_t prefix_rank, std::string_view outputs) const {
    return {std::move(name), fmt::format("graph({}) -> ({}) {{\n{}}}", inputs_, outputs, ops_),
            prefix_rank};
  }

 private:
  std::string inputs_, ops_;
};

constexpr int64_t kRows = 3, kKeys = 40, kSplits = 2;

OffsetGroup attention(int64_t width, int64_t heads) {
  Text text;
  text.operand("q", "DTYPE", {kRows, width});
  text.operand("k", "DTYPE", {kKeys, width});
  text.operand("v", "DTYPE", {kKeys, width});
  text.whole_operand("first", "i32", kRows);
  text.whole_operand("last", "i32", kRows);
  text.op(
      fmt::format("%y = attention %q, %k, %v, %first, %last {{order = decode_attention, heads = "
                  "{0}, kv_heads = {0}, "
                  "scale = 0.25, splits = {1}}} : DTYPE[{2}, {3}]",
                  heads, kSplits, kRows, width));
  return text.group("attention", 0, "%y");
}

OffsetGroup sample(int64_t width) {
  Text text;
  text.operand("x", "DTYPE", {kRows, width});
  for (const auto& [name, dtype] :
       {std::pair("t", "f32"), {"k", "i32"}, {"p", "f32"}, {"s", "i32"}, {"n", "i32"}})
    text.whole_operand(name, dtype, kRows);
  text.op(fmt::format("%y = sample %x, %t, %k, %p, %s, %n : i32[{}]", kRows));
  return text.group("sample", 0, "%y");
}

}  // namespace

std::vector<OffsetGroup> offset_groups(int64_t width) {
  const std::string type = fmt::format("DTYPE[{}, {}]", kRows, width);
  Text pointwise;
  pointwise.operand("x", "DTYPE", {kRows, width});
  pointwise.operand("g", "DTYPE", {kRows, width});
  pointwise.operand("b", "DTYPE", {width});
  pointwise.op("%s = silu %g : " + type);
  pointwise.op("%m = mul %s, %x : " + type);
  pointwise.op("%y = add %m, %b : " + type);
  Text rows;
  rows.operand("x", "DTYPE", {kRows, width});
  rows.operand("r", "DTYPE", {kRows, width});
  rows.operand("w", "DTYPE", {width});
  rows.operand("b", "DTYPE", {width});
  rows.op("%s = add %x, %r : " + type);
  rows.op("%n = layer_norm %s, %w, %b {eps = 1e-5} : " + type);
  rows.op("%m = rms_norm %n, %w {eps = 1e-5} : " + type);
  rows.op("%y = softmax %m : " + type);
  return {pointwise.group("pointwise", 0, "%y"), rows.group("rows", 1, "%s, %y")};
}

std::vector<OffsetGroup> offset_closed_groups(int64_t width) {
  int64_t heads = 1;
  while (width % heads != 0 || width / heads > kMaxHeadWidth) ++heads;
  return {attention(width, heads), sample(width)};
}

}  // namespace sinter
