// Running sums along any axis, of lengths that meet each form of kernels/scan, between elementwise
// ops and reductions.
#include <algorithm>
#include <array>

#include "differential/graph_generator.h"

namespace sinter {
namespace {

// Rows of several steps of a warp, of a block, of a whole tile; columns of more chunks than a block
// has.
constexpr int64_t kRowLengths[] = {300, 1000, 2049, 4096};
constexpr int64_t kColumnLengths[] = {257, 1000};
// More than a tile, and more than two.
constexpr int64_t kTiledLengths[] = {4097, 9000};
// Rows that a cluster shares, of elements of 4 bytes and of 2: every block has as much, or the last
// ones have little or nothing.
constexpr int64_t kClusterRows[] = {65536, 80001}, kNarrowClusterRows[] = {131072, 135177};

}  // namespace

/// The operand of a scan: a value that exists, of a float type or i32, or one whose shape is made
/// for a form of kernels/scan.
GraphGenerator::Value GraphGenerator::scanned_operand() {
  const auto summed = [](const TensorType& t) {
    return (is_float(t.dtype) || t.dtype == DType::i32) && t.rank() >= 1;
  };
  if (random_.chance(15))
    if (const Value whole =
            pick([](const TensorType& t) { return t.dtype == DType::i32 && t.rank() >= 1; }))
      return whole;
  if (random_.chance(40))
    if (const Value found = pick(summed)) return random_.chance(35) ? view_of(*found) : found;
  // kLong may be long, so that kernels are made for long rows, and is short.
  Dims dims;
  switch (random_.below(9)) {
    case 0:
    case 1:
    case 2:
    case 3:
      dims = {random_.chance(50) ? rows_ : Dim(mostly({1, 2}, 1, 8)),
              Dim(random_.pick(kRowLengths))};
      break;
    case 4:
    case 5:
      dims = {Dim(random_.pick(kColumnLengths)), Dim(mostly({1, 2, 3}, 1, 4))};
      break;
    case 6:
      dims = {random_.chance(50) ? rows_ : Dim(1), Dim(kLong)};
      break;
    case 7:
      dims = {Dim(kLong), Dim(2049)};
      break;
    default:
      dims = {Dim(kLong), Dim(random_.chance(50) ? random_.pick(widths_) : any_extent())};
      if (random_.chance(30)) dims.insert(dims.begin(), Dim(2));
  }
  const DType dtype = random_.chance(20) ? DType::i32 : any_float();
  if (volume_of({dtype, dims}) > kMaxElements)  // one row, as long as is affordable
    dims = {Dim(1), Dim(std::min(extent(dims.back()), kMaxElements))};
  return value_of({dtype, dims});
}

Attributes GraphGenerator::scan_attributes(int64_t axis) {
  Attributes attrs = Attributes().set(AttrName::axis, axis);
  for (AttrName name : {AttrName::reverse, AttrName::exclusive})
    if (random_.chance(50)) attrs.set(name, int64_t{random_.chance(80)});
  return attrs;
}

void GraphGenerator::running_sum() {
  using enum OpKind;
  if (random_.chance(12)) return long_sum();
  Value x = scanned_operand();
  if (!x) return;
  const bool real = is_float(graph_[*x].type.dtype);
  if (random_.chance(25)) x = op(neg, {*x});
  if (x && real && random_.chance(20)) x = op(random_.pick(std::array{tanh, sigmoid}), {*x});
  if (x && random_.chance(20)) x = op(mul, {*x, value_of(graph_[*x].type)});
  if (!x) return;
  const TensorType type = graph_[*x].type;
  const auto rank = static_cast<int64_t>(type.rank());
  const int64_t axis = random_.chance(50) ? rank - 1 : random_.below(rank);
  const Value y = op(cumulative_sum, {*x}, scan_attributes(axis));
  if (!y) return;
  if (random_.chance(15)) op(cumulative_sum, {*y}, scan_attributes(random_.below(rank)));
  if (random_.chance(30)) op(random_.pick(std::array{sub, mul, maximum}), {*y, *x});
  if (!real) return;
  if (random_.chance(30)) op(random_.pick(std::array{tanh, silu, abs}), {*y});
  if (random_.chance(30))
    op(random_.chance(50) ? reduce_sum : reduce_max, {*y},
       Attributes().set(AttrName::axes, std::vector<int64_t>{random_.below(rank)}));
}

/// Dims whose axis, the last or the first, has several tiles of kernels/scan.
Dims GraphGenerator::long_scan_dims(DType dtype) {
  switch (random_.below(5)) {
    case 0:
      return {Dim(2), Dim(random_.pick(kTiledLengths))};  // a block has a row
    case 1:
      return {Dim(random_.pick(kTiledLengths)), Dim(mostly({2, 3}, 1, 5))};
    case 2:
      if (extent(Dim(kLong)) <= 8) return {Dim(kLong), Dim(random_.pick(kTiledLengths))};
      [[fallthrough]];
    default:
      return {Dim(1), Dim(dtype_info(dtype).bits == 32 ? random_.pick(kClusterRows)
                                                       : random_.pick(kNarrowClusterRows))};
  }
}

// Sums over more than a tile; of the results the ends and the middle are kept.
void GraphGenerator::long_sum() {
  const DType dtype =
      random_.pick(std::array{DType::f32, DType::f32, DType::i32, DType::f16, DType::bf16});
  const TensorType type{dtype, long_scan_dims(dtype)};
  const int64_t axis = extent(type.dims[0]) > extent(type.dims[1]) ? 0 : 1;
  const int64_t length = extent(type.dims[axis]);
  const ValueId x = apart(input(type));
  const ValueId y = apart(must(OpKind::cumulative_sum, {x}, scan_attributes(axis)));
  for (int64_t begin : {int64_t{0}, length / 2, length - 200})
    must(OpKind::slice, {y},
         Attributes()
             .set(AttrName::axis, axis)
             .set(AttrName::begin, begin)
             .set(AttrName::size, Dim(200)));
}

}  // namespace sinter
