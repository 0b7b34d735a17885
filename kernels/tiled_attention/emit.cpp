// The kernel of a group around tiled_attention: the template of the kernel library, with accessors
// of the queries and of the result that hold the text of prologue and epilogue.
#include "kernels/tile/emit.h"

#include "codegen/emission/attention_text.h"
#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/optional_attribute.h"
#include "kernels/tile/layout.h"
#include "kernels/tiled_attention/order.h"
#include "kernels/tiled_attention/schedule.h"
#include "plan/check_parts.h"

namespace sinter {
namespace {

/// The place of the log-sums among the group's outputs, if they are one.
std::optional<size_t> log_sum_output(const Graph& group) {
  const auto at = llvm::find_if(
      group.outputs, [&](ValueId id) { return group[id].kind == OpKind::attention_log_sum; });
  if (at == group.outputs.end()) return std::nullopt;
  return static_cast<size_t>(at - group.outputs.begin());
}

/// The tensor map of keys or values [elements, heads, rows, sequences], without the last axis where
/// there is one sequence: boxes of a tile's rows and a panel of elements (kernels/tile/layout.h).
/// nullopt: no tensor map describes them.
std::optional<TensorMap> tile_map(const EmitContext& context, size_t operand) {
  const Graph& group = context.group;
  const Op& op = context.anchor_op();
  const AttentionHeads heads = attention_heads(group, op);
  const auto width = static_cast<int>(operand == 1 ? heads.width : heads.value_width);
  const auto place = attention_rows(group, op, operand);
  if (!place || width != tile_padded(width)) return std::nullopt;
  const SymExpr sequences = volume(DimsRef(group[op.operands[operand]].type.dims).drop_back(2));
  const int64_t panel = tile_panel_row(width),
                rows = attention_key_tile(static_cast<int>(heads.width),
                                          static_cast<int>(heads.value_width));
  TensorMap map{.input = *input_of(group, op.operands[operand]),
                .offset = place->offset,
                .dims = {width, heads.kv_count, SymExpr(attention_key_rows(group, op))},
                .strides = {heads.kv_count == 1 ? place->row : place->head, place->row},
                .box = {panel / 2, 1, rows},
                .swizzle = panel};
  if (!sequences.is(1)) {
    map.dims.push_back(sequences);
    map.strides.push_back(place->sequence);
    map.box.push_back(1);
  }
  constexpr int64_t aligned = kTensorMapAlignment / 2;  // elements of 16 bits
  SymExpr end = map.offset + SymExpr(width);
  for (const auto& [dim, stride] : llvm::zip(llvm::drop_begin(map.dims), map.strides)) {
    if (stride.is(0) || stride.divisor(context.symbols) % aligned != 0) return std::nullopt;
    end += (dim - SymExpr(1)) * stride;
  }
  if (map.offset.divisor(context.symbols) % aligned != 0 ||
      !checker::never_less(volume(group[place->root].type.dims), end, context.symbols))
    return std::nullopt;
  return map;
}

}  // namespace

Result<KernelBody> emit_tiled_attention(const EmitContext& context) {
  const Graph& group = context.group;
  const Op& op = context.anchor_op();
  const AttentionHeads heads = attention_heads(group, op);
  const auto form = attention_form(heads.width, heads.value_width, context.device);
  if (!form)
    return fail(fmt::format("attention with heads of {} and {} elements does not fit {}",
                            heads.width, heads.value_width, context.device.name),
                {}, "compile with --attention composed");
  AttentionText operands(context);
  SINTER_LET(keys, operands.rows(1));
  SINTER_LET(values, operands.rows(2));
  SINTER_LET(mask, operands.mask());
  const bool attends = op.kind == OpKind::attention;
  SINTER_LET(ports, attends ? emit_ports(context, form->threads)
                            : emit_operand_ports(context, form->threads));
  const auto log_sum = log_sum_output(group);
  const AttrValue* window = op.attrs.find(AttrName::window);
  const Dims& q = group[op.operands[0]].type.dims;
  const SymExpr sequences = volume(DimsRef(q).drop_back(2)), tokens(q[q.size() - 2]);
  const double scale = real_or_zero(op.attrs, AttrName::scale),
               softcap = real_or_zero(op.attrs, AttrName::softcap);

  KernelBody body;
  // With a window the first tile of most work tiles is seen in part.
  if (form->bulk_copies && !window) {
    auto key_map = tile_map(context, 1), value_map = tile_map(context, 2);
    if (key_map && value_map) body.tensor_maps = {*std::move(key_map), *std::move(value_map)};
  }
  const bool bulk_copies = !body.tensor_maps.empty();
  body.includes += "#include \"kernels/tiled_attention/attention.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  ConfigText config;
  config.type("Element", memory_type(group[op.operands[0]].type.dtype));
  operands.add_types(config);
  add_heads(heads, config);
  config.constant("kRows", form->rows)
      .constant("kThreads", form->threads)
      .constant("kStages", form->stages)
      .constant("kQueryStages", form->query_stages)
      .constant("kWarpgroups", form->warpgroups)
      .constant("kAligned", operands.aligned())
      .constant("kSequences", !sequences.is(1))
      .constant("kEmptyZero", op.attrs.is_set(AttrName::empty_zero))
      .constant("kScale", scale)
      .constant("kSoftcap", softcap)
      .constant("kFactor", attention_factor(scale, softcap, operands.adds_mask()))
      .long_constant("kWindow", integer_or(op.attrs, AttrName::window, 0));
  add_sink(op, config);
  if (log_sum) config.constant("kLogSum", true);
  if (bulk_copies) config.constant("kBulkCopies", true);
  body.globals += config.text() + "\n";
  std::vector<std::string> in_memory = {keys,
                                        values,
                                        "PortOperand3{memory}",
                                        "PortOperand4{memory}",
                                        mask,
                                        operands.size(sequences),
                                        operands.size(tokens),
                                        operands.size(attention_key_rows(group, op))};
  if (log_sum)
    in_memory.push_back(fmt::format("y{}", *log_sum));
  else if (bulk_copies)
    in_memory.push_back("nullptr");
  if (bulk_copies) llvm::append_values(in_memory, "&t0", "&t1");
  body.text =
      tile_text(ports, call_text("attend<Config>",
                                 {"PortOperand0{memory}", braced(in_memory),
                                  attends ? "PortResult{memory}" : "NoResult{}", "shared_memory"}));
  set_tile_launch(
      body, context.device,
      {.work_tiles = sequences * (tokens + SymExpr(form->rows - 1)) * SymExpr(heads.count),
       .units_per_tile = form->rows,
       .threads = form->threads,
       .shared_bytes = form->shared_bytes,
       .persistent = form->warpgroups});
  body.moves_registers = form->warpgroups;
  body.minimum_arch = bulk_copies ? kFirstArchWithClusters : kFirstArchWithAsyncCopies;
  return body;
}

}  // namespace sinter
