#include "passes/expand_attention.h"

#include "ir/attention_heads.h"
#include "ir/builder.h"
#include "ir/graph_rewriter.h"

namespace sinter {
namespace {

/// Appends the products and the softmax, and returns the value that replaces `op`'s result. The
/// operands of `op` are values of the builder's graph.
ValueId compose(Builder& b, const Op& op) {
  const llvm::ArrayRef<ValueId> operands = op.operands;
  const AttentionHeads heads = attention_heads(op.attrs, b.type(operands[1]), b.type(operands[2]));
  const Dims q = b.type(operands[0]).dims;
  const Dims keys = b.type(operands[1]).dims, values = b.type(operands[2]).dims;
  const DType dtype = b.type(operands[0]).dtype;

  const ValueId q_heads =
      b.reshape(operands[0], {q[0], heads.kv_count, heads.group(), heads.width}, op.name + ".q");
  const ValueId k_heads =
      b.reshape(operands[1], {keys[0], heads.kv_count, heads.width}, op.name + ".k");
  const ValueId v_heads =
      b.reshape(operands[2], {values[0], heads.kv_count, heads.value_width}, op.name + ".v");
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
    GraphRewriter rewriter(graph, result);
    rewriter.rewrite([&](ValueId, Op op) {
      return is_attention(op) ? compose(builder, op) : rewriter.add(std::move(op));
    });
    make_names_unique(result);
    graph = std::move(result);
    changed = true;
  }
  return changed;
}

}  // namespace sinter
