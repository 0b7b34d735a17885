// Products of a matrix and a few rows, at the speed at which memory gives the matrix.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "kernels/gemv/form.h"
#include "kernels/gemv/prologue.h"

namespace sinter {

EmitKernel emit_gemv;
std::optional<KernelCost> gemv_cost(const GroupView& group, int64_t min_threads);
std::optional<Verdict> admits_gemv_prologue(const GroupView& group);
std::optional<Verdict> admits_gemv_epilogue(const GroupView& group, GroupShape& merged);
std::optional<ValueId> choose_gemv(Builder& b, const Op& op, Tokens tokens, const Recipe& recipe);

namespace {

constexpr OpKind kAnchors[] = {OpKind::quantized_linear};
constexpr Order kOrders[] = {Order::gemv};

Ports ports(const Graph& graph, const Op& op) {
  return {.operands = {{.port = Port::row}},
          .result = {.port = Port::element},
          .max_blocks = graph[op.operands[1]].type.dims[0].constant()};
}

/// The matrix is streamed, the bias is read where it is.
bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol> symbols) {
  return operand_role(op, operand) != OperandRole::row ||
         is_gemv_operand(graph, op.operands[operand], symbols);
}

/// The operand; the epilogue's inputs too, if all of them may be read early.
EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols) {
  EarlyWish wish;
  const std::vector<bool> prologue = gemv_prologue(group, anchor);
  if (llvm::any_of(group.outputs, [&](ValueId id) { return prologue[id.index]; }) ||
      !is_never_empty(group, symbols))
    return wish;
  for (uint32_t k = 0; k < group.inputs.size(); ++k)
    if (prologue[group.inputs[k].index]) wish.needed.push_back(k);
  wish.rest_if_all = true;
  return wish;
}

}  // namespace

extern const KernelFamily gemv_family;
constinit const KernelFamily gemv_family{
    .name = "gemv",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .orders = kOrders,
    .make = emit_gemv,
    .cost = gemv_cost,
    .latency_bound = true,
    .ports = ports,
    .admits_prologue = admits_gemv_prologue,
    .admits_epilogue = admits_gemv_epilogue,
    .choosing = {.choose = choose_gemv},
    .addresses = addresses,
    .early_reads = early_reads,
    .tuning = &kGemvTuning,
};

}  // namespace sinter
