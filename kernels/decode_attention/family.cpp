// Attention of few tokens over many keys, at the speed at which memory gives them.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/op_roles.h"

namespace sinter {

EmitKernel emit_decode_attention;
std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op);

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

KernelChoice explain_choice(const Op&) { return {"attention", "at most 8 tokens"}; }

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
    .early_reads = early_reads,
};

}  // namespace sinter
