// Programs written by hand: what a planner would make, in few lines. Used by the tests of
// everything that consumes a Program.
#pragma once

#include <functional>

#include "ir/builder.h"
#include "plan/program.h"

namespace sinter::test {

/// The text of a kernel that computes nothing: what check_text() asks for, and an empty body.
std::string stated_text(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols);

/// One entry, "forward". Slots of the arena are given; live ranges follow from the steps when the
/// program is finished.
class ProgramBuilder {
 public:
  ProgramBuilder();

  Dim symbol(std::string name, int64_t low, int64_t high);
  /// `init` makes the weight from `file` ops and generators.
  uint32_t weight(std::string name, TensorType type, const std::function<ValueId(Builder&)>& init);
  uint32_t state(std::string name, TensorType type);

  uint32_t input(std::string name, TensorType type);
  uint32_t arena(std::string name, TensorType type, uint32_t slot);
  /// A buffer on weight `index`.
  uint32_t weight_buffer(uint32_t index);
  /// A buffer on version `version` of state `index`.
  uint32_t state_buffer(uint32_t index, uint32_t version, std::string value);
  void output(uint32_t buffer);

  /// A step that runs a new kernel; `body` gets one value per input and returns the outputs.
  KernelStep& kernel(
      std::string name, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
      const std::function<std::vector<ValueId>(Builder&, std::vector<ValueId>)>& body);
  /// C[m, n] = A[m, k] B[k, n], all dense and row-major.
  GemmStep& gemm(uint32_t a, uint32_t b, uint32_t c, SymExpr m, SymExpr n, SymExpr k);

  /// The bytes of buffer `from` to buffer `to`.
  CopyStep& copy(uint32_t from, uint32_t to);

  /// The sum of buffer `from` over the ranks, in buffer `to`, by way of an exchange buffer.
  CollectiveStep& all_reduce(uint32_t from, uint32_t to);

  /// Live ranges.
  Program finish();

  Program program;
  EntryPlan& entry() { return program.entries[0]; }

 private:
  uint32_t add(std::string name, TensorType type, Buffer::Place place, uint32_t index);
};

/// Step `index` of the entry, which must be of that kind, to change it.
KernelStep& kernel_step(EntryPlan& entry, size_t index);
GemmStep& gemm_step(EntryPlan& entry, size_t index);
CopyStep& copy_step(EntryPlan& entry, size_t index);
CollectiveStep& collective_step(EntryPlan& entry, size_t index);

/// a = -x; b = exp(a); c = b w + bias; k1 = append(k0, c, slot); d = |k1[slot]|; y = c + d, with N
/// rows of 64. `c` takes the space of `a`, `y` the space of `b`.
Program sample_program();

/// i = n + n; y = the rows i of a table of 32 rows of 16, checked, with N numbers.
Program gathering_program();

/// a = -x; b = a, by a copy; y = b + a, with N rows of 64.
Program copying_program();

/// a = -x; b = all_reduce a; y = b + a, with N rows of 64.
Program reducing_program();

/// a = -x; k1, v1 = append(k0 and v0, k, slots); o = decode_attention(a, k1, v1, first, slots); y =
/// o
/// + a, with B rows. The append triggers after its wait, so that the attention reads %a, the rows'
/// numbers and the caches early, and the addition %a.
Program overlapping_program();
/// The same with constants: of `slots` tokens the first `tokens` have queries, which see the keys
/// from row `keys_from` on.
Program overlapping_program(int64_t tokens, int64_t slots, int64_t keys_from = 0);

}  // namespace sinter::test
