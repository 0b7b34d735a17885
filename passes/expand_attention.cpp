#include "passes/expand_attention.h"

#include "ir/builder.h"

namespace sinter {
namespace {

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
      copies[i] = is_attention(op) ? compose(builder, op, op.operands) : result.add(op);
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
