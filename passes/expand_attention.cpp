#include "passes/expand_attention.h"

#include <algorithm>

#include "device/reference_machine.h"
#include "ir/attention_order.h"
#include "ir/builder.h"

namespace sinter {
namespace {

// Blocks of one token: one on each of most multiprocessors, beside which the next product's block
// has room to send for its matrix. (One H200, a token of Llama-2-7B: 3.61 ms; with 264 blocks
// 3.74.) Most, since a cluster's blocks share a group of multiprocessors: of clusters of 2, 3 .. 9
// blocks it holds 66, 39, 30, 22, 17, 15, 15 and 9 at a time, of larger ones 7. Of 32 clusters of 4
// two found no place of their own, and where two blocks stood on a multiprocessor, they and the
// next product's block were late. (With 3: Llama-2-7B 3.57 to 3.54 ms, Pythia-2.8B 1.85 to 1.82.
// Llama-3.2-1B after 8,192 tokens with 16 clusters of 6: 0.876 ms, of 7 or 8: 0.97.)
constexpr int64_t kWantedBlocks = kReference.cluster_blocks;

bool has_few_tokens(const Builder& b, const Op& op, llvm::ArrayRef<ValueId> operands) {
  const Dim tokens = b.type(operands[0]).dims[0];
  const int64_t most =
      tokens.is_constant() ? tokens.constant() : b.symbols()[tokens.symbol().index].high;
  const int64_t width =
      b.type(operands[0]).dims[1].constant() / op.attrs.get<int64_t>(AttrName::heads);
  const int64_t value_width =
      b.type(operands[2]).dims[1].constant() / op.attrs.get<int64_t>(AttrName::kv_heads);
  return most <= kFewTokens && is_few_head_width(width) && is_few_head_width(value_width);
}

ValueId split(Builder& b, const Op& op, llvm::ArrayRef<ValueId> operands) {
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads),
                kv_heads = op.attrs.get<int64_t>(AttrName::kv_heads);
  const int64_t tiles = heads / attention_tile(heads / kv_heads);
  Attributes attrs = op.attrs;
  attrs.set(AttrName::splits, std::clamp<int64_t>(kWantedBlocks / tiles, 1, kMostAttentionSplits));
  return b.op(OpKind::attention_few, operands, attrs, op.name);
}

/// Appends the products and the softmax, and returns the value that replaces `op`'s result.
ValueId compose(Builder& b, const Op& op, llvm::ArrayRef<ValueId> operands) {
  const int64_t kv_heads = op.attrs.get<int64_t>(AttrName::kv_heads);
  const int64_t group = op.attrs.get<int64_t>(AttrName::heads) / kv_heads;
  const Dims q = b.type(operands[0]).dims;
  const Dims keys = b.type(operands[1]).dims, values = b.type(operands[2]).dims;
  const int64_t key_width = keys[1].constant() / kv_heads;
  const int64_t value_width = values[1].constant() / kv_heads;
  const DType dtype = b.type(operands[0]).dtype;

  const ValueId q_heads =
      b.reshape(operands[0], {q[0], kv_heads, group, key_width}, op.name + ".q");
  const ValueId k_heads = b.reshape(operands[1], {keys[0], kv_heads, key_width}, op.name + ".k");
  const ValueId v_heads =
      b.reshape(operands[2], {values[0], kv_heads, value_width}, op.name + ".v");
  const ValueId scores = b.op(OpKind::einsum, {q_heads, k_heads},
                              Attributes()
                                  .set(AttrName::spec, std::string("nkgd,tkd->kgnt"))
                                  .set(AttrName::dtype, DType::f32),
                              op.name + ".scores");
  Attributes softmax;
  softmax.set(AttrName::dtype, dtype).set(AttrName::scale, op.attrs.get<double>(AttrName::scale));
  for (AttrName name : {AttrName::softcap, AttrName::window})
    if (const AttrValue* value = op.attrs.find(name)) softmax.set(name, *value);
  const ValueId probs = b.op(OpKind::attention_softmax, {scores, operands[3], operands[4]}, softmax,
                             op.name + ".probs");
  const ValueId mixed =
      b.op(OpKind::einsum, {probs, v_heads},
           Attributes().set(AttrName::spec, std::string("kgnt,tkd->nkgd")), op.name);
  return b.reshape(mixed, op.type.dims, op.name + ".rows");
}

}  // namespace

bool expand_attention(Module& module) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    const auto is_attention = [](const Op& op) { return op.kind == OpKind::attention; };
    if (llvm::none_of(graph.ops(), is_attention)) continue;
    Graph result;
    Builder builder(result, module.symbols);
    std::vector<ValueId> copies(graph.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      Op op = graph.ops()[i];
      for (ValueId& operand : op.operands) operand = copies[operand.index];
      if (!is_attention(op))
        copies[i] = result.add(op);
      else
        copies[i] = has_few_tokens(builder, op, op.operands) ? split(builder, op, op.operands)
                                                             : compose(builder, op, op.operands);
    }
    for (ValueId id : graph.inputs) result.inputs.push_back(copies[id.index]);
    for (ValueId id : graph.outputs) result.outputs.push_back(copies[id.index]);
    make_names_unique(result);
    graph = std::move(result);
    changed = true;
  }
  return changed;
}

}  // namespace sinter
