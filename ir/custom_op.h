// Ops that a caller brings: a record names the op and has its shape rule, the CUDA text of its
// kernel and its value on the host. A module uses it as
//
//   %y = custom %x, %w {op = "acme.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
//
// Signature, the shape rule: "x: float[..., D], w: x[D] -> x[..., D]". An operand has a name and a
// type: f32, f16, bf16, i32, i64, i1, `float` (any float type), or the name of an earlier operand
// (its element type). A dim is a number or a variable, which has one extent in all places, constant
// or symbolic. `...` stands for leading axes, the same in all places, perhaps none. A result's dim
// may be `2*D` or `D/2`, where D is constant. Its type is one of the five or an operand's.
//
// Kernel text: a function template, which may include headers of the kernel library:
//
//   template <typename X, typename W, typename Y>
//   __device__ void acme_rms_norm(X x, W w, Y y, const SinterCustom& at) { ... }
//
// Each block of `threads` threads calls it once, for the row `at.row` of `at.rows`. x(i) is element
// i (row-major, of the whole operand) as float, int or bool; y.set(i, value) gives the result's
// element, rounded once. Every element of the result is set once, by the block of any row; the
// operands can be read at any element. x.chunk(values, i) and y.set_chunk(i, values) do the same
// for 8 elements from i on, a multiple of 8, in accesses of 16 bytes where memory allows them;
// `values` is float[8], int[8] or bool[8]. A closed operand also has x.data(), its elements in
// memory, aligned to 16 bytes. kernels/custom/custom.cuh describes `at`.
//
// Ports: what computes an open operand element by element may stand in the same kernel (prologue):
// x(i) then computes the element wherever it is called. What takes an open result element by
// element may stand there too (epilogue): y.set(i, value) then computes and stores what follows.
// The text is the same in both cases, and so are the bits.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/error.h"

namespace sinter {

struct Op;  // ir/graph.h

/// The arguments of a host evaluation. All arrays are dense and row-major. Elements of float types
/// are float, or double if `precise`; i32: int32_t; i64: int64_t; i1: uint8_t, 0 or 1.
struct CustomOpCall {
  struct Tensor {
    DType dtype = DType::f32;
    std::vector<int64_t> dims;
    const void* data = nullptr;  // may be null where there are no elements
  };
  std::vector<Tensor> operands;
  DType result_dtype = DType::f32;
  std::vector<int64_t> result_dims;
  void* result = nullptr;  // zeros; of a float type Sinter rounds it once, to the element type
  /// In float64, without roundings in between: for measures of accuracy.
  bool precise = false;
  llvm::ArrayRef<double> numbers;
};

struct CustomOp {
  std::string name;       // letters, digits, '_' and '.', at most 64; unique in the process
  std::string signature;  // the shape rule
  std::string source;     // CUDA text, UTF-8
  std::string function;   // its name in `source`, a C++ identifier, perhaps with namespaces
  int64_t threads = 256;  // of a block: a multiple of 32, at most 1024
  /// The result's leading axes that number the blocks; -n: all but the last n.
  int64_t row_axes = 1;
  int64_t shared_bytes = 0;         // dynamic shared memory of a block
  std::vector<bool> open_operands;  // element ports; operands beyond the list are closed
  bool open_result = false;         // an element port
  bool exact = false;               // the host evaluation has the kernel's bits
  /// Not exact: the kernel's result may differ from the host's by this times the result's largest
  /// magnitude, beside one rounding of each to the element type. Checked on a device where the op
  /// is alone in its kernel.
  double tolerance = 0;
  /// Writes the result; false: it failed, which is an error of the run. Called from several
  /// threads.
  std::function<bool(const CustomOpCall&)> evaluate;
  int64_t number_count = 0;  // elements of the attribute `numbers`
};

inline constexpr size_t kMaxCustomNumbers = 64, kMaxCustomRank = 8;

/// Refuses a bad record (which field and why), and a name under which a different record is
/// registered; the same record again changes nothing (evaluations are not compared). Ops stay
/// registered until the process ends. Thread-safe.
Status register_custom_op(CustomOp op);
/// Null: none. Stays valid. Thread-safe.
const CustomOp* find_custom_op(std::string_view name);
/// The record of an op `custom` of a verified graph.
const CustomOp& custom_op_of(const Op& op);
/// The leading axes of a result of this rank that number the blocks.
size_t custom_row_axes(const CustomOp& op, size_t rank);
/// In alphabetical order.
std::vector<std::string> custom_op_names();

}  // namespace sinter
