#include "runtime/cuda/gemm_problem.h"

#include <algorithm>
#include <numeric>

#include "ir/activation_names.h"
#include "runtime/cuda/length_class.h"

namespace sinter {
namespace {

constexpr int64_t kMaxPlaces = 65536;

std::string operand_key(std::string_view name, const GemmProblem::Operand& operand) {
  return fmt::format(" {} {} {},{},{}@{}", name, to_string(operand.dtype), operand.row_stride,
                     operand.column_stride, operand.batch_stride, operand.alignment);
}

/// The stride of an extent of 1 is never stepped: it becomes what makes the matrix dense, or 1
/// where the other stride leaves gaps.
void make_canonical(GemmProblem::Operand& operand, int64_t rows, int64_t columns) {
  if (rows == 1 && columns == 1)
    operand.row_stride = operand.column_stride = 1;
  else if (rows == 1)
    operand.row_stride = operand.column_stride == 1 ? columns : 1;
  else if (columns == 1)
    operand.column_stride = operand.row_stride == 1 ? rows : 1;
}

void make_canonical(GemmProblem& problem) {
  make_canonical(problem.a, problem.m, problem.k);
  make_canonical(problem.b, problem.k, problem.n);
  make_canonical(problem.c, problem.m, problem.n);
}

int64_t GemmProblem::*length_of(GemmExtent extent) {
  return extent == GemmExtent::m   ? &GemmProblem::m
         : extent == GemmExtent::n ? &GemmProblem::n
                                   : &GemmProblem::k;
}

/// The extent with symbols, if nothing else of the step's layout has any. (Offsets may: what the
/// product knows of them are alignments, which are the problem's.)
GemmExtent symbolic_extent(const GemmStep& step) {
  const auto fixed = [](const GemmOperand& operand) {
    return operand.row_stride.is_constant() && operand.column_stride.is_constant();
  };
  if (!fixed(step.a) || !fixed(step.b) || !fixed(step.c)) return GemmExtent::none;
  for (const GemmStep::Loop& loop : step.loops)
    if (!loop.count.is_constant() || !loop.a_stride.is_constant() || !loop.b_stride.is_constant() ||
        !loop.c_stride.is_constant())
      return GemmExtent::none;
  const bool m = !step.m.is_constant(), n = !step.n.is_constant(), k = !step.k.is_constant();
  if (m + n + k != 1) return GemmExtent::none;
  return m ? GemmExtent::m : n ? GemmExtent::n : GemmExtent::k;
}

/// Bytes that divide all of `distances` (bytes, addresses), at most kMaxAlignment.
int64_t common_alignment(llvm::ArrayRef<uint64_t> distances) {
  uint64_t result = kMaxAlignment;
  for (uint64_t distance : distances) result = std::gcd(result, distance);
  return static_cast<int64_t>(result);
}

class CallsMaker {
 public:
  CallsMaker(const GemmOperands& operands, llvm::ArrayRef<Symbol> symbols,
             llvm::ArrayRef<int64_t> values)
      : operands_(operands), symbols_(symbols), values_(values) {}

  Result<GemmCalls> make(const GemmStep& step) {
    GemmCalls calls;
    GemmProblem& problem = calls.problem;
    SINTER_TRY(evaluate(step.m, problem.m));
    SINTER_TRY(evaluate(step.n, problem.n));
    SINTER_TRY(evaluate(step.k, problem.k));
    SINTER_TRY(read_loops(step));
    GemmPlace first;
    SINTER_TRY(place(step.a, operands_.a, problem.a, first.a));
    SINTER_TRY(place(step.b, operands_.b, problem.b, first.b));
    SINTER_TRY(place(step.c, operands_.c, problem.c, first.c));
    take_batch(problem);
    if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return calls;
    align(problem.a, first.a, 0);
    align(problem.b, first.b, 1);
    align(problem.c, first.c, 2);
    make_canonical(problem);
    take_open_extent(symbolic_extent(step), problem);
    if (operands_.bias) {
      first.bias = operands_.bias->address;
      problem.bias = {operands_.bias->dtype, common_alignment({first.bias})};
    }
    if (operands_.residual != 0) {
      first.residual = operands_.residual + (first.c - operands_.c.address);
      // Beside C's strides, which both have.
      problem.residual = std::min(problem.c.alignment, common_alignment({first.residual}));
    }
    problem.activation = step.activation;
    problem.ascending = step.ascending;
    SINTER_TRY(repeat(first, calls.places));
    return calls;
  }

 private:
  struct Loop {
    int64_t count = 0;
    std::array<int64_t, 3> strides = {};  // of a, b, c, in elements
  };

  Status evaluate(const SymExpr& expr, int64_t& value) const {
    const std::optional<int64_t> result = expr.evaluate(values_);
    if (!result || *result < 0)
      return fail(
          fmt::format("a size of the product, {}, is not of 0..2^63-1", to_string(expr, symbols_)));
    value = *result;
    return {};
  }

  Status read_loops(const GemmStep& step) {
    for (const GemmStep::Loop& loop : step.loops) {
      Loop values;
      SINTER_TRY(evaluate(loop.count, values.count));
      SINTER_TRY(evaluate(loop.a_stride, values.strides[0]));
      SINTER_TRY(evaluate(loop.b_stride, values.strides[1]));
      SINTER_TRY(evaluate(loop.c_stride, values.strides[2]));
      if (values.count != 1) loops_.push_back(values);
    }
    return {};
  }

  Status place(const GemmOperand& operand, const GemmOperands::Operand& buffer,
               GemmProblem::Operand& out, CudaAddress& address) const {
    int64_t offset = 0;
    SINTER_TRY(evaluate(operand.offset, offset));
    SINTER_TRY(evaluate(operand.row_stride, out.row_stride));
    SINTER_TRY(evaluate(operand.column_stride, out.column_stride));
    out.dtype = buffer.dtype;
    address = buffer.address + static_cast<CudaAddress>(storage_bytes(buffer.dtype, offset));
    return {};
  }

  /// Moves the loop with the most rounds (or one of none) from loops_ into the problem.
  void take_batch(GemmProblem& problem) {
    if (loops_.empty()) return;
    // None counts as the most.
    const auto rounds = [](const Loop& loop) { return static_cast<uint64_t>(loop.count) - 1; };
    auto chosen = std::max_element(loops_.begin(), loops_.end(), [&](const Loop& a, const Loop& b) {
      return rounds(a) < rounds(b);
    });
    problem.batch = chosen->count;
    problem.a.batch_stride = chosen->strides[0];
    problem.b.batch_stride = chosen->strides[1];
    problem.c.batch_stride = chosen->strides[2];
    loops_.erase(chosen);
  }

  static void take_open_extent(GemmExtent extent, GemmProblem& problem) {
    if (extent == GemmExtent::none) return;
    const LengthClass of_length = length_class(problem.*length_of(extent));
    if (of_length.first != of_length.last) problem.open = extent;
  }

  /// Over all places and copies.
  void align(GemmProblem::Operand& operand, CudaAddress address, size_t index) const {
    const auto bytes = static_cast<uint64_t>(whole_bytes(operand.dtype));
    llvm::SmallVector<uint64_t, 4> distances = {
        address, static_cast<uint64_t>(operand.batch_stride) * bytes};
    for (const Loop& loop : loops_)
      distances.push_back(static_cast<uint64_t>(loop.strides[index]) * bytes);
    operand.alignment = common_alignment(distances);
  }

  /// The places of all rounds of loops_, the innermost fastest.
  Status repeat(const GemmPlace& first, llvm::SmallVector<GemmPlace, 1>& places) const {
    places = {first};
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      if (loop->count > kMaxPlaces / static_cast<int64_t>(places.size()))
        return fail(fmt::format("the product is repeated more than {} times", kMaxPlaces));
      const size_t inner = places.size();
      for (int64_t round = 1; round < loop->count; ++round)
        for (size_t i = 0; i < inner; ++i) {
          GemmPlace next = places[i];
          next.a += step_bytes(operands_.a, round * loop->strides[0]);
          next.b += step_bytes(operands_.b, round * loop->strides[1]);
          next.c += step_bytes(operands_.c, round * loop->strides[2]);
          if (next.residual != 0)
            next.residual += step_bytes(operands_.c, round * loop->strides[2]);
          places.push_back(next);
        }
    }
    return {};
  }

  static CudaAddress step_bytes(const GemmOperands::Operand& operand, int64_t elements) {
    return static_cast<CudaAddress>(storage_bytes(operand.dtype, elements));
  }

  const GemmOperands& operands_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<int64_t> values_;
  llvm::SmallVector<Loop, 2> loops_;  // of other than one round
};

}  // namespace

GemmProblem GemmProblem::longest() const {
  GemmProblem result = *this;
  result.open = GemmExtent::none;
  if (open == GemmExtent::none) return result;
  const auto length = length_of(open);
  result.*length = length_class(this->*length).last;
  make_canonical(result);
  return result;
}

std::string GemmProblem::class_key() const {
  const GemmProblem decided = longest();
  const auto text = [&](GemmExtent extent) {
    const int64_t length = decided.*length_of(extent);
    if (extent != open) return std::to_string(length);
    return fmt::format("{}..{}", length_class(length).first, length);
  };
  return decided.key({text(GemmExtent::m), text(GemmExtent::n), text(GemmExtent::k)});
}

std::string GemmProblem::key() const {
  return key({std::to_string(m), std::to_string(n), std::to_string(k)});
}

std::string GemmProblem::key(const std::array<std::string, 3>& extents) const {
  std::string text = fmt::format("{}x{}x{}x{}", batch, extents[0], extents[1], extents[2]);
  text += operand_key("A", a) + operand_key("B", b) + operand_key("C", c);
  if (bias) text += fmt::format(" bias {}@{}", to_string(bias->dtype), bias->alignment);
  if (residual) text += fmt::format(" residual @{}", *residual);
  if (activation != Activation::none) text += fmt::format(" {}", to_string(activation));
  if (ascending) text += " ascending";
  return text;
}

int64_t GemmProblem::span(const Operand& operand, int64_t rows, int64_t columns) const {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (rows - 1) * operand.row_stride + (columns - 1) * operand.column_stride +
         (batch - 1) * operand.batch_stride + 1;
}

Result<GemmCalls> make_gemm_calls(const GemmStep& step, const GemmOperands& operands,
                                  llvm::ArrayRef<Symbol> symbols,
                                  llvm::ArrayRef<int64_t> symbol_values) {
  return CallsMaker(operands, symbols, symbol_values).make(step);
}

}  // namespace sinter
