// Attention of few tokens over many keys, at the speed at which memory gives them.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "ir/contraction.h"
#include "ir/op_roles.h"

namespace sinter {

EmitKernel emit_decode_attention;
std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op, Tokens tokens);

namespace {

constexpr OpKind kAnchors[] = {OpKind::decode_attention};

/// The rows that a token sees, and of the caches all rows that this call does not append.
EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol>) {
  const Op& op = group[anchor];
  const auto input_with = [&](OperandRole::Kind role) {
    return *input_of(group, operand_with(op, role));
  };
  EarlyWish wish;
  wish.needed = {input_with(OperandRole::first), input_with(OperandRole::last)};
  for (ValueId cache : operands_with(op, OperandRole::cache))
    wish.rows.push_back(*input_of(group, cache));
  return wish;
}

/// Queries and caches are read by heads of neighbouring elements; the row numbers stand in memory.
bool attention_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  switch (operand) {
    case 0:
      return attention_queries(graph, op).has_value();
    case 1:
    case 2:
      return attention_rows(graph, op, operand).has_value();
    case 5:
      return attention_mask(graph, op).has_value();
    default:
      return is_dense(graph, op.operands[operand]);
  }
}

KernelChoice explain_choice(const Op&) {
  return {"attention", "at most 8 tokens, or one of each sequence"};
}

}  // namespace

extern const KernelFamily decode_attention_family;
constinit const KernelFamily decode_attention_family{
    .name = "decode_attention",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_decode_attention,
    .cost = streaming_cost,
    .latency_bound = true,
    .choose = choose_decode_attention,
    .explain_choice = explain_choice,
    .addresses = attention_addresses,
    .early_reads = early_reads,
};

}  // namespace sinter
