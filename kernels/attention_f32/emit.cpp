// The kernel of a group around float_attention: the template of the kernel library, with accessors
// of the queries and of the result that hold the text of prologue and epilogue.
#include "kernels/tile/emit.h"

#include "codegen/emission/attention_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/optional_attribute.h"
#include "kernels/attention_f32/schedule.h"

namespace sinter {
namespace {

/// Constants of the kernel that are attributes of the op.
std::string attribute_constants(const Op& op) {
  const auto number = [&](AttrName name) {
    return literal_code(real_or_zero(op.attrs, name), DType::f32);
  };
  const AttrValue* window = op.attrs.find(AttrName::window);
  return fmt::format(
      "  static constexpr bool kEmptyZero = {};\n"
      "  static constexpr float kScale = {}, kSoftcap = {};\n"
      "  static constexpr long long kWindow = {};\n"
      "{}",
      op.attrs.is_set(AttrName::empty_zero), number(AttrName::scale), number(AttrName::softcap),
      window ? std::get<int64_t>(*window) : 0, sink_constant(op));
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
  body.includes += "#include \"kernels/attention_f32/attention.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  body.globals += fmt::format(
      "struct Config {{\n"
      "  using First = PortOperand3;\n"
      "  using Last = PortOperand4;\n"
      "  using Mask = {};\n"
      "  static constexpr int kHeads = {}, kKvHeads = {}, kWidth = {}, kValueWidth = {};\n"
      "  static constexpr int kRows = {}, kThreads = {};\n"
      "  static constexpr bool kAligned = {};\n"
      "{}}};\n\n",
      operands.mask_type(), heads.count, heads.kv_count, heads.width, heads.value_width, form.rows,
      form.threads, operands.aligned(), attribute_constants(op));
  body.text = fmt::format(
      "{}{}attend_floats<Config>(PortOperand0{{memory}}, {{{}, {}, PortOperand3{{memory}}, "
      "PortOperand4{{memory}}, {}, {}, {}, {}}}, PortResult{{memory}}, shared_memory);\n{}",
      kTileMemory, ports.memory_value, keys, values, mask, operands.size(sequences),
      operands.size(tokens), operands.size(attention_key_rows(context.group, op)), ports.stores);
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
