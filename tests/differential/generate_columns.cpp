// Reductions over leading, middle and scattered axes, with a prologue and an epilogue of
// elementwise ops and row reductions, of which some may share the reduction's kernel and some may
// not.
#include <array>

#include "differential/graph_generator.h"
#include "ir/column_runs.h"

namespace sinter {
namespace {

// Rows of a value that is made for a reduction: a thread's run of lanes, blocks of several runs,
// clusters of blocks; whole chunks of 8 rows and not.
constexpr int64_t kHeights[] = {7, 64, 129, 300, 512, 1025};

// Columns so high and so many that the blocks of a cluster share their rows, all of them or some.
constexpr std::pair<int64_t, int64_t> kClusterColumns[] = {
    {1025, 64}, {2049, 24}, {2048, 64}, {4100, 17}};

}  // namespace

/// A float value of at least two axes: one that exists, a product, or one with many rows, rows
/// whose number is a symbol, or three axes.
GraphGenerator::Value GraphGenerator::reduced_operand() {
  const size_t least = random_.chance(40) ? 3 : 2;
  const auto wanted = [&](const TensorType& t) { return is_float(t.dtype) && t.rank() >= least; };
  if (least == 2 && random_.chance(20)) return project(pick_rows(), random_.pick(widths_));
  if (random_.chance(40))
    if (const Value found = pick(wanted)) return random_.chance(30) ? view_of(*found) : found;
  const int64_t width = random_.chance(70) ? random_.pick(widths_) : any_extent();
  const int64_t height = random_.pick(kHeights);
  Dims dims;
  if (least == 3)
    dims = {random_.chance(50) ? rows_ : Dim(mostly({2, 3}, 1, 9)), Dim(mostly({5, 16}, 1, 24)),
            Dim(mostly({8, 3}, 1, 20))};
  else if (random_.chance(60))
    dims = {Dim(height), Dim(std::min(width, kMaxElements / height))};
  else
    dims = {Dim(kLong), Dim(width)};
  const TensorType type{any_float(), dims};
  if (volume_of(type) > kMaxElements) return pick(wanted);
  return value_of(type);
}

Attributes GraphGenerator::last_axis(ValueId x) const {
  const auto rank = static_cast<int64_t>(graph_[x].type.rank());
  return Attributes().set(AttrName::axes, std::vector<int64_t>{rank - 1});
}

/// Elementwise ops and row reductions that compute what is reduced.
GraphGenerator::Value GraphGenerator::reduction_prologue(ValueId x) {
  using enum OpKind;
  const TensorType type = graph_[x].type;
  Value y = x;
  if (random_.chance(30)) {  // a row's own number, from a row reduction
    const Value row = op(random_.chance(50) ? reduce_max : reduce_sum, {x}, last_axis(x));
    if (row) y = op(random_.pick(std::array{sub, mul}), {x, *row});
  } else if (random_.chance(10)) {
    y = op(softmax, {x});
  }
  if (y && random_.chance(65)) {
    TensorType other = type;
    if (random_.chance(30)) other.dims = {type.dims.back()};
    if (random_.chance(20)) other.dims = type.dims, other.dims.back() = 1;
    y = op(random_.pick(std::array{add, mul, sub}), {*y, value_of(other)});
  }
  if (y && random_.chance(40)) y = op(random_.pick(std::array{tanh, neg, sigmoid}), {*y});
  if (y && random_.chance(10)) y = op(cast, {*y}, Attributes().set(AttrName::dtype, DType::f32));
  return y;
}

/// Which axes of `rank` >= 2 are reduced: leading ones, a run in the middle, or any set that may
/// have gaps.
std::vector<int64_t> GraphGenerator::reduced_axes(int64_t rank) {
  std::vector<int64_t> axes;
  if (rank > 2 && random_.chance(50)) {
    for (int64_t axis = 0; axis < rank; axis += random_.between(1, 2)) axes.push_back(axis);
    return axes;
  }
  const int64_t first = random_.chance(50) ? 0 : rank - 2;
  const int64_t end = random_.between(first + 1, rank - 1);
  for (int64_t axis = first; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

/// Readers of a reduction of `x`: ops on its own elements, on the elements of x, on its rows.
void GraphGenerator::reduction_epilogue(ValueId x, ValueId reduced,
                                        const std::vector<int64_t>& axes) {
  using enum OpKind;
  Value y = reduced;
  if (random_.chance(40)) {  // without the axes of one element
    Dims kept;
    for (size_t axis = 0; axis < graph_[reduced].type.rank(); ++axis)
      if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
        kept.push_back(graph_[reduced].type.dims[axis]);
    y = op(reshape, {reduced}, Attributes().set(AttrName::dims, kept));
  }
  if (y && random_.chance(25)) y = op(mul, {*y, this->constant(graph_[*y].type.dtype, {})});
  if (y && random_.chance(50)) y = op(random_.pick(std::array{abs, neg, sqrt, tanh}), {*y});
  if (y && random_.chance(30)) y = op(mul, {*y, value_of(graph_[*y].type)});
  if (y && random_.chance(20) && graph_[*y].type.rank() > 0)
    op(random_.chance(50) ? reduce_sum : reduce_max, {*y}, last_axis(*y));
  if (random_.chance(20)) op(random_.pick(std::array{sub, div, mul}), {x, reduced});
  if (!y) return;
  const TensorType type = graph_[*y].type;
  if (type.rank() == 2 && type.dims[1].is_constant() && !type.dims[1].is(0) && random_.chance(15)) {
    if (type.dims[1].constant() <= 128) project(*y, random_.pick(widths_));
  }
}

// A value whose rows the blocks of a cluster share, reduced over its first axes, or of slices of
// it.
void GraphGenerator::cluster_reduction() {
  using enum OpKind;
  const auto [height, width] = random_.pick(kClusterColumns);
  const DType dtype = any_float();
  TensorType type{dtype, {Dim(height), Dim(width)}};
  std::vector<int64_t> axes = {0};
  if (random_.chance(25)) type.dims.insert(type.dims.begin(), Dim(2)), axes = {1};
  const ValueId x = apart(this->input(type));
  ValueId y = x;
  if (random_.chance(50))
    y = apart(must(random_.pick(std::array{add, mul}), {x, value_of({dtype, {Dim(width)}})}));
  if (random_.chance(40)) y = apart(must(random_.pick(std::array{tanh, neg}), {y}));
  const Attributes over = Attributes().set(AttrName::axes, axes);
  const ValueId reduced = must(random_.chance(70) ? reduce_sum : reduce_max, {y}, over);
  if (random_.chance(30)) must(random_.chance(50) ? reduce_sum : reduce_max, {x}, over);
  reduction_epilogue(x, reduced, axes);
}

// Sums of runs of columns, beside reductions of the rows that they walk and what is computed from
// both, as in a norm's gradients; and a sum of the runs, as they are joined.
void GraphGenerator::sums_of_runs() {
  using enum OpKind;
  const int64_t rows = random_.pick(std::array<int64_t, 6>{2, 7, 64, 129, 300, 512});
  const int64_t width = 8 * random_.between(1, std::clamp<int64_t>(kMaxElements / rows / 8, 1, 5));
  Dims dims{Dim(rows), Dim(width)};
  if (rows % 2 == 0 && random_.chance(30)) dims = {Dim(2), Dim(rows / 2), Dim(width)};
  const ValueId x = value_of({any_float(), dims});
  llvm::SmallVector<ValueId, 3> summed{x};
  if (random_.chance(75)) {
    const ValueId row = must(random_.chance(30) ? reduce_max : reduce_sum, {x}, last_axis(x));
    const ValueId y = must(random_.pick(std::array{sub, mul}), {x, row});
    if (random_.chance(70)) summed.push_back(y);
    if (random_.chance(50)) {
      const ValueId second = must(reduce_sum, {y}, last_axis(y));
      const ValueId dx = must(sub, {y, must(mul, {x, second})});
      if (random_.chance(30)) summed.push_back(dx);
    }
  }
  const Value z = reduction_prologue(x);
  if (z && graph_[*z].type.dims == dims && random_.chance(50)) summed.push_back(*z);
  const int64_t lanes = column_lanes(dims);
  const int64_t of_run =
      std::min(lanes, int64_t{1} << random_.between(0, 3));  // at most kMaxLanesOfRun
  const ValueId runs = must(run_sums, summed, Attributes().set(AttrName::runs, lanes / of_run));
  const auto number = random_.below(static_cast<int64_t>(summed.size()));
  const ValueId part = must(slice, {runs},
                            Attributes()
                                .set(AttrName::axis, int64_t{1})
                                .set(AttrName::begin, number)
                                .set(AttrName::size, Dim(1)));
  const ValueId zeros =
      this->constant(DType::f32, {Dim(lanes / of_run), Dim(kChunk - 1), Dim(width)});
  const ValueId padded = must(concat, {part, zeros}, Attributes().set(AttrName::axis, int64_t{1}));
  must(reduce_sum, {padded}, Attributes().set(AttrName::axes, std::vector<int64_t>{0, 1}));
}

void GraphGenerator::axes_reduction() {
  using enum OpKind;
  if (random_.chance(7)) return sums_of_runs();
  if (random_.chance(6)) return cluster_reduction();
  const Value x = reduced_operand();
  if (!x || graph_[*x].type.rank() < 2) return;
  const Value y = reduction_prologue(*x);
  if (!y) return;
  const std::vector<int64_t> axes = reduced_axes(static_cast<int64_t>(graph_[*y].type.rank()));
  const Attributes over = Attributes().set(AttrName::axes, axes);
  const Value reduced = op(random_.chance(70) ? reduce_sum : reduce_max, {*y}, over);
  if (!reduced) return;
  // A second reduction over the same axes, and readers of what the first one adds.
  if (random_.chance(40))
    op(random_.chance(50) ? reduce_sum : reduce_max, {random_.chance(50) ? *x : *y}, over);
  if (random_.chance(20)) op(random_.pick(std::array{tanh, neg}), {*y});
  if (random_.chance(10)) op(reduce_sum, {*y}, last_axis(*y));
  reduction_epilogue(*x, *reduced, axes);
}

}  // namespace sinter
