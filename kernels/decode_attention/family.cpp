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
EarlyWish early_reads(const Graph& group, llvm::ArrayRef<Symbol>) {
  const auto input_of = [&](ValueId id) {
    return static_cast<uint32_t>(llvm::find(group.inputs, root_of(group, id)) -
                                 group.inputs.begin());
  };
  EarlyWish wish;
  for (const Op& op : group.ops()) {
    if (!reads_cache(op)) continue;
    wish.needed = {input_of(operand_with(op, OperandRole::first)),
                   input_of(operand_with(op, OperandRole::last))};
    for (ValueId cache : operands_with(op, OperandRole::cache))
      wish.rows.push_back(input_of(cache));
  }
  return wish;
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
    .early_reads = early_reads,
};

}  // namespace sinter
