// The steps of a plan: one struct for each kind. Code that differs by kind goes through visit(),
// which compiles only if it handles every kind; code that asks what a step reads, writes or runs
// goes through step_facts().
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ir/activation.h"
#include "ir/sym_expr.h"

namespace sinter {

struct EntryPlan;
struct Kernel;
struct Program;

/// Runs kernel `kernel` on these buffers. An append's output buffer is the state itself, one
/// version after its input buffer.
struct KernelStep {
  uint32_t kernel = 0;
  std::vector<uint32_t> inputs, outputs;  // buffers
};

/// One strided operand of a GEMM, in elements. One of row_stride and column_stride is 1.
struct GemmOperand {
  uint32_t buffer = 0;
  SymExpr offset;
  SymExpr row_stride, column_stride;
};

/// C[m, n] = round(activation(sum over k of A[m, k] * B[k, n] + bias[n] + residual[m, n])),
/// repeated over the loops (outermost first). Accumulates in float32; the buffers give the element
/// types.
struct GemmStep {
  struct Loop {
    SymExpr count;
    SymExpr a_stride, b_stride, c_stride;  // elements; 0: the operand is shared
  };
  GemmOperand a, b, c;
  int64_t bias = -1;  // buffer, or -1
  // Fast numerics only: a buffer with C's elements in C's order, or -1; what is done to the sum.
  int64_t residual = -1;
  Activation activation = Activation::none;
  SymExpr m, n, k;
  std::vector<Loop> loops;
  /// Summed in the order of kernels/gemm/strided_gemm.cuh, never by the library.
  bool ascending = false;
};

/// Does more to its sums than add a bias.
inline bool needs_fast_numerics(const GemmStep& gemm) {
  return gemm.residual >= 0 || gemm.activation != Activation::none;
}

/// Copies all bytes of a buffer's value to another buffer of the same type, within the device.
struct CopyStep {
  uint32_t from = 0, to = 0;  // buffers
};

/// Combines the values of `from` of all ranks of a group into `to`. Each rank stores its value in
/// `exchange` first, from where the others read it while this rank runs other steps.
struct CollectiveStep {
  enum class Kind : uint8_t { all_reduce };
  Kind kind = Kind::all_reduce;
  uint32_t from = 0, exchange = 0, to = 0;  // buffers
  std::string group;
};
std::string_view to_string(CollectiveStep::Kind kind);

struct Step {
  using Run = std::variant<KernelStep, GemmStep, CopyStep, CollectiveStep>;
  Run run;
  std::vector<std::string> values;  // IR values that this step computes, for people
};

namespace step_visit {

template <typename... F>
struct Handlers : F... {
  using F::operator()...;
};

template <typename Kind, typename... F>
inline constexpr size_t kHandlersOf = (size_t{0} + ... + (std::is_invocable_v<F&, Kind&> ? 1 : 0));

/// Whether each kind has one handler, and each handler one kind: no generic lambda takes a kind
/// that is added later.
template <typename Run, typename... F>
inline constexpr bool kHandlesEachKind = false;
template <typename... Kinds, typename... F>
inline constexpr bool kHandlesEachKind<std::variant<Kinds...>, F...> =
    sizeof...(F) == sizeof...(Kinds) && ((kHandlersOf<Kinds, F...> == 1) && ...);

}  // namespace step_visit

/// Calls the handler of the step's kind, one of `handlers`: a function for each kind.
template <typename... F>
requires(step_visit::kHandlesEachKind<Step::Run, F...>) decltype(auto)
    visit(const Step& step, F... handlers) {
  return std::visit(step_visit::Handlers<F...>{std::move(handlers)...}, step.run);
}
template <typename... F>
requires(step_visit::kHandlesEachKind<Step::Run, F...>) decltype(auto)
    visit(Step& step, F... handlers) {
  return std::visit(step_visit::Handlers<F...>{std::move(handlers)...}, step.run);
}

/// The facts of a step of any kind; its ids must be valid.
struct StepFacts {
  std::string_view kind;           // "kernel", "gemm", "copy" or a collective's
  const Kernel* kernel = nullptr;  // of a kernel's launch
  /// Buffers; of a kernel in the order of its inputs and outputs.
  llvm::SmallVector<uint32_t, 8> reads = {}, writes = {};

  /// The kernel's name, else the kind.
  std::string_view name() const;
};
StepFacts step_facts(const Program& program, const Step& step);

}  // namespace sinter
