// Attention of few tokens over many keys, at the speed at which memory gives them.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "kernels/attention_ports.h"

namespace sinter {

EmitKernel emit_decode_attention;
std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op, Tokens tokens,
                                               const Recipe& recipe);

namespace {

constexpr Order kOrders[] = {Order::decode_attention};

/// Queries too are read by heads of neighbouring elements.
bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol> symbols) {
  return operand == 0 ? attention_queries(graph, op).has_value()
                      : attention_addresses(graph, op, operand, symbols);
}

KernelChoice explain_choice(const Graph&, const Op&) {
  return {"attention", "at most 8 tokens, or one of each sequence"};
}

}  // namespace

extern const KernelFamily decode_attention_family;
constinit const KernelFamily decode_attention_family{
    .name = "decode_attention",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_decode_attention,
    .cost = few_tokens_attention_cost,
    .latency_bound = true,
    .ports = row_number_ports,
    .choosing = {.choose = choose_decode_attention, .explain = explain_choice},
    .addresses = addresses,
    .early_reads = attention_early_reads,
};

}  // namespace sinter
