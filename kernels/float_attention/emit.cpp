// The kernel of a group around float_attention: the template of the kernel library, with accessors
// of the queries and of the result that hold the text of prologue and epilogue.
#include "kernels/tile/emit.h"

#include "codegen/emission/attention_text.h"
#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/optional_attribute.h"
#include "kernels/float_attention/schedule.h"

namespace sinter {
namespace {

/// Adds the constants that are attributes of the op.
void add_attributes(const Op& op, ConfigText& config) {
  config.constant("kEmptyZero", op.attrs.is_set(AttrName::empty_zero))
      .constant("kScale", real_or_zero(op.attrs, AttrName::scale))
      .constant("kSoftcap", real_or_zero(op.attrs, AttrName::softcap))
      .long_constant("kWindow", integer_or(op.attrs, AttrName::window, 0));
  add_sink(op, config);
}

}  // namespace

Result<KernelBody> emit_float_attention(const EmitContext& context) {
  const Op& op = context.anchor_op();
  const AttentionHeads heads = attention_heads(context.group, op);
  const FloatAttentionForm form = float_attention_form(heads, context.device);
  AttentionText operands(context);
  SINTER_LET(keys, operands.rows(1));
  SINTER_LET(values, operands.rows(2));
  SINTER_LET(mask, operands.mask());
  SINTER_LET(ports, emit_ports(context, form.threads));
  const SymExpr sequences = attention_sequences(op), tokens = attention_tokens(op);

  KernelBody body;
  body.includes += "#include \"kernels/float_attention/attention.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  ConfigText config;
  operands.add_types(config);
  add_heads(heads, config);
  config.constant("kRows", form.rows)
      .constant("kThreads", form.threads)
      .constant("kAligned", operands.aligned());
  add_attributes(op, config);
  body.globals += config.text() + "\n";
  body.text = tile_text(
      ports, call_text("attend_floats<Config>",
                       {"PortOperand0{memory}",
                        braced({keys, values, "PortOperand3{memory}", "PortOperand4{memory}", mask,
                                operands.size(sequences), operands.size(tokens),
                                operands.size(attention_key_rows(context.group, op))}),
                        "PortResult{memory}", "shared_memory"}));
  set_tile_launch(
      body, context.device,
      {.work_tiles = sequences * (tokens + SymExpr(form.rows - 1)) * SymExpr(heads.count),
       .units_per_tile = form.rows,
       .threads = form.threads,
       .shared_bytes = form.shared_bytes});
  body.resident_blocks = form.resident_blocks;
  body.minimum_arch = 80;  // cp.async
  return body;
}

}  // namespace sinter
