#include "runtime/gemm_case.h"

#include <algorithm>
#include <numeric>

#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

constexpr std::byte kPoison{0xff};  // NaN in every float type

/// Extents that lie around the sizes of vectors and tiles.
int64_t random_extent(Random& random, const GemmCaseLimits& limits) {
  if (limits.empty && random.chance(15)) return 0;
  if (random.chance(25)) return 1;
  constexpr int64_t kNear[] = {2, 8, 16, 17, 32, 63, 64, 65, 128, 200, 256};
  const int64_t extent = random.chance(50) ? random.pick(kNear) : random.between(1, limits.most);
  return std::min(extent, limits.most);
}

/// Strides of axes with these extents: in a random order of memory, the innermost 1 (or 2), gaps
/// after some axes. Rows and columns are axes 0 and 1; one of them is innermost.
llvm::SmallVector<int64_t, 4> random_strides(Random& random, llvm::ArrayRef<int64_t> extents,
                                             bool any_stride, int64_t& span) {
  llvm::SmallVector<size_t, 4> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  std::swap(*llvm::find(order, random.chance(50) ? 0u : 1u), order[0]);
  llvm::SmallVector<int64_t, 4> strides(extents.size());
  span = any_stride && random.chance(30) ? 2 : 1;
  for (size_t axis : order) {
    strides[axis] = span;
    span *= std::max<int64_t>(extents[axis], 1);
    constexpr int64_t kGaps[] = {0, 0, 0, 1, 3, 8};
    span += random.pick(kGaps);
  }
  return strides;
}

/// A buffer's elements; what rounds to float32 is a float already.
std::vector<float> values(const GemmCase::Buffer& buffer) {
  std::vector<float> result(buffer.bytes.size() / static_cast<size_t>(whole_bytes(buffer.dtype)));
  load_run(storage_of(buffer.dtype), buffer.bytes.data(), 1, static_cast<int64_t>(result.size()),
           result.data());
  return result;
}

void fill(GemmCase::Buffer& buffer, Random& random, bool integers) {
  const auto elements = static_cast<int64_t>(buffer.bytes.size()) / whole_bytes(buffer.dtype);
  for (int64_t i = 0; i < elements; ++i)
    write_element(buffer, i, integers ? static_cast<float>(random.between(-2, 2)) : random.unit());
}

/// An operand's rows and columns, for one round of the loops.
struct Window {
  int64_t offset, row_stride, column_stride;
  size_t at(int64_t row, int64_t column) const {
    return static_cast<size_t>(offset + row * row_stride + column * column_stride);
  }
};

Window window(const GemmOperand& operand) {
  return {operand.offset.constant(), operand.row_stride.constant(),
          operand.column_stride.constant()};
}

}  // namespace

double read_element(const GemmCase::Buffer& buffer, int64_t index) {
  double value = 0;
  load_run(storage_of(buffer.dtype), buffer.bytes.data() + index * whole_bytes(buffer.dtype), 1, 1,
           &value);
  return value;
}

void write_element(GemmCase::Buffer& buffer, int64_t index, float value) {
  store_run(&value, 1, storage_of(buffer.dtype),
            buffer.bytes.data() + index * whole_bytes(buffer.dtype));
}

GemmOperands GemmCase::at(CudaAddress a_address, CudaAddress b_address, CudaAddress c_address,
                          CudaAddress bias_address, CudaAddress residual_address) const {
  GemmOperands operands{
      {a_address, a.dtype}, {b_address, b.dtype}, {c_address, c.dtype}, std::nullopt, 0};
  if (step.residual >= 0) operands.residual = residual_address;
  if (step.bias >= 0) operands.bias = GemmOperands::Operand{bias_address, bias.dtype};
  return operands;
}

std::string GemmCase::text() const {
  const auto calls = make_gemm_calls(step, at(0, 0, 0, 0), {}, {});
  SINTER_CHECK(calls.has_value());
  return fmt::format("{} at {} places", calls->problem.key(), calls->places.size());
}

void GemmCase::for_each(const std::function<void(const Element&)>& visit, int64_t every) const {
  const int64_t rows = step.m.constant(), columns = step.n.constant(), depth = step.k.constant();
  const std::vector<float> as = values(a), bs = values(b), biases = values(bias);
  const std::vector<float> residuals = values(residual);
  int64_t rounds = 1;
  for (const GemmStep::Loop& loop : step.loops) rounds *= loop.count.constant();
  std::vector<float> row(static_cast<size_t>(depth)), column(static_cast<size_t>(depth));
  for (int64_t at = 0; at < rounds * rows * columns; at += every) {
    Window x = window(step.a), y = window(step.b), z = window(step.c);
    const int64_t j = at % columns, i = at / columns % rows;
    int64_t round = at / columns / rows;
    for (const GemmStep::Loop& loop : step.loops) {
      const int64_t index = round % loop.count.constant();
      round /= loop.count.constant();
      x.offset += index * loop.a_stride.constant();
      y.offset += index * loop.b_stride.constant();
      z.offset += index * loop.c_stride.constant();
    }
    for (int64_t p = 0; p < depth; ++p) {
      row[static_cast<size_t>(p)] = as[x.at(i, p)];
      column[static_cast<size_t>(p)] = bs[y.at(p, j)];
    }
    const size_t index = z.at(i, j);
    visit({static_cast<int64_t>(index), row, column,
           step.bias < 0 ? 0.0f : biases[static_cast<size_t>(j)],
           step.residual < 0 ? 0.0f : residuals[index]});
  }
}

void GemmCase::add_epilogue(Random& random, bool with_residual, Activation activation,
                            bool integers) {
  step.activation = activation;
  if (!with_residual) return;
  step.residual = 4;
  residual = c;
  fill(residual, random, integers);
}

GemmCase linear_gemm_case(Random& random, DType dtype, int64_t m, int64_t n, int64_t k, bool bias) {
  GemmCase result;
  GemmStep& step = result.step;
  step.m = m, step.n = n, step.k = k;
  step.a = {0, 0, k, 1};
  step.b = {1, 0, 1, k};
  step.c = {2, 0, n, 1};
  const auto make = [&](GemmCase::Buffer& buffer, int64_t elements) {
    buffer.dtype = dtype;
    buffer.bytes.assign(static_cast<size_t>(elements * whole_bytes(dtype)), kPoison);
  };
  make(result.a, m * k);
  make(result.b, k * n);
  make(result.c, m * n);
  fill(result.a, random, false);
  fill(result.b, random, false);
  if (!bias) return result;
  step.bias = 3;
  make(result.bias, n);
  fill(result.bias, random, false);
  return result;
}

GemmCase random_gemm_case(Random& random, const GemmCaseLimits& limits) {
  GemmCase result;
  GemmStep& step = result.step;
  const int64_t m = random_extent(random, limits), n = random_extent(random, limits);
  const int64_t k = random_extent(random, limits);
  step.m = m, step.n = n, step.k = k;
  llvm::SmallVector<int64_t, 2> counts;
  for (int64_t i = random.below(3); i > 0; --i)
    counts.push_back(limits.empty && random.chance(5) ? 0 : random.between(1, 4));
  step.loops.resize(counts.size());

  const auto place = [&](GemmCase::Buffer& buffer, GemmOperand& operand, int64_t rows,
                         int64_t columns, SymExpr GemmStep::Loop::*loop_stride, bool result_axes) {
    llvm::SmallVector<int64_t, 4> extents = {rows, columns};
    extents.append(counts.begin(), counts.end());
    // A loop that an operand does not move along.
    llvm::SmallVector<bool, 2> shared;
    for (size_t i = 0; i < counts.size(); ++i) {
      shared.push_back(!result_axes && random.chance(30));
      if (shared[i]) extents[2 + i] = 1;
    }
    int64_t span = 0;
    const auto strides = random_strides(random, extents, limits.any_stride && !result_axes, span);
    const int64_t offset = random.chance(50) ? 0 : random.below(20);
    operand.offset = offset;
    operand.row_stride = strides[0];
    operand.column_stride = strides[1];
    for (size_t i = 0; i < counts.size(); ++i)
      step.loops[i].*loop_stride = shared[i] ? 0 : strides[2 + i];
    buffer.bytes.assign(static_cast<size_t>((offset + span) * whole_bytes(buffer.dtype)), kPoison);
  };
  const DType dtype = random.pick(kFloats);
  result.a.dtype = result.b.dtype = result.c.dtype = dtype;
  if (random.chance(25)) result.c.dtype = DType::f32;
  if (limits.any_stride && random.chance(50)) {
    result.b.dtype = random.pick(kFloats);
    result.c.dtype = random.pick(kFloats);
  }
  for (size_t i = 0; i < counts.size(); ++i) step.loops[i].count = counts[i];
  place(result.a, step.a, m, k, &GemmStep::Loop::a_stride, false);
  place(result.b, step.b, k, n, &GemmStep::Loop::b_stride, false);
  place(result.c, step.c, m, n, &GemmStep::Loop::c_stride, true);
  fill(result.a, random, limits.integers);
  fill(result.b, random, limits.integers);
  result.bias.dtype = limits.any_stride ? random.pick(kFloats) : result.c.dtype;
  if (random.chance(40)) {
    step.bias = 3;
    result.bias.bytes.resize(static_cast<size_t>(n * whole_bytes(result.bias.dtype)));
    fill(result.bias, random, limits.integers);
  }
  constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu_tanh};
  if (limits.epilogues)
    result.add_epilogue(random, random.chance(60), random.pick(kActivations), limits.integers);
  return result;
}

}  // namespace sinter
