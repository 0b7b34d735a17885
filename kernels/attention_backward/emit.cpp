// The kernel of a group around gradients of attention: the template of the kernel library, with
// accessors of the row numbers.
#include "kernels/tile/emit.h"

#include "codegen/emission/attention_text.h"
#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/grouping.h"
#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "ir/optional_attribute.h"
#include "ir/side_results.h"
#include "kernels/attention_backward/order.h"
#include "kernels/attention_backward/schedule.h"

namespace sinter {
namespace {

/// Where a kernel stores a gradient (kernels/common/placed_result.cuh).
struct ResultText {
  bool is_computed = false;
  std::string type = "DenseResult<Element>", memory = "nullptr";
};

/// The gradient as a part of an output, along with others.
ResultText placed_result(const Graph& group, const Op& place, size_t output) {
  const auto axis = static_cast<size_t>(place.attrs.get<int64_t>(AttrName::axis));
  const auto elements = [axis](const Op& op) {
    return volume(DimsRef(op.type.dims).drop_front(axis)).constant();
  };
  const int64_t run = elements(group[operand_with(place, OperandRole::update)]);
  const int64_t stride = elements(place);
  const int64_t begin = place.attrs.get<int64_t>(AttrName::begin) *
                        volume(DimsRef(place.type.dims).drop_front(axis + 1)).constant();
  const bool chunks = run % 8 == 0 && stride % 8 == 0 && begin % 8 == 0;
  return {true, fmt::format("PlacedResult<Element, {}ll, {}ll, {}>", run, stride, chunks),
          fmt::format("y{} + {}ll", output, begin)};
}

/// The gradient of `kind` as the group has it: a result, a part of one, or none.
ResultText result_of(const EmitContext& context, OpKind kind) {
  const Graph& group = context.group;
  for (const auto& [k, id] : llvm::enumerate(group.outputs)) {
    const Op& output = group[id];
    const ValueId whole = output.kind == OpKind::copy ? output.operands[0] : id;
    if (group[same_elements(group, whole)].kind == kind)
      return {true, "DenseResult<Element>", fmt::format("y{}", k)};
    for (ValueId at = id; at.valid() && places_part(group[at]);
         at = operand_with(group[at], OperandRole::base)) {
      const ValueId part = operand_with(group[at], OperandRole::update);
      if (group[same_elements(group, part)].kind == kind) return placed_result(group, group[at], k);
    }
  }
  return {};
}

/// Where a kernel stores the sums of blocks of rows of the gradient of `kind`; empty: nowhere.
std::string sums_of(const EmitContext& context, OpKind kind) {
  const Graph& group = context.group;
  std::string found;
  for (const auto& [k, id] : llvm::enumerate(group.outputs)) {
    const std::optional<SideOp> sums = as_block_sums(group, id);
    if (!sums || group[sums->source].kind != kind) continue;
    SINTER_CHECK(found.empty(), "a kernel stores the sums of a gradient once, not also %{}",
                 group[id].name);
    found = fmt::format("y{}", k);
  }
  return found;
}
std::string or_null(const std::string& memory) { return memory.empty() ? "nullptr" : memory; }

}  // namespace

Result<KernelBody> emit_attention_gradients(const EmitContext& context) {
  const Graph& group = context.group;
  const Op& op = context.anchor_op();
  const AttentionHeads heads = attention_heads(group, op);
  const bool of_keys = op.kind != OpKind::attention_query_gradient;
  const auto form = gradient_form(heads.width, heads.value_width, of_keys, context.device);
  if (!form)
    return fail(
        fmt::format("the gradient of attention with heads of {} and {} elements does not "
                    "fit {}",
                    heads.width, heads.value_width, context.device.name));
  const OpKind first_kind =
      of_keys ? OpKind::attention_key_gradient : OpKind::attention_query_gradient;
  const ResultText first = result_of(context, first_kind);
  const ResultText second = result_of(context, OpKind::attention_value_gradient);
  const std::string first_sums = sums_of(context, first_kind);
  const std::string second_sums = sums_of(context, OpKind::attention_value_gradient);
  const bool has_first = first.is_computed || !first_sums.empty();
  const bool has_second = second.is_computed || !second_sums.empty();
  AttentionText operands(context);
  SINTER_LET(q, operands.rows(0));
  SINTER_LET(keys, operands.rows(1));
  SINTER_LET(values, operands.rows(2));
  SINTER_LET(grad, operands.rows(kGradOperand));
  SINTER_LET(mask, operands.mask());
  SINTER_LET(ports, emit_operand_ports(context, form->threads));
  const auto dense = [&](size_t operand) {
    return fmt::format("x{}", *input_of(group, op.operands[operand]));
  };
  const double scale = op.attrs.get<double>(AttrName::scale);
  const double softcap = real_or_zero(op.attrs, AttrName::softcap);
  const TensorType& of_tokens = group[op.operands[0]].type;
  const SymExpr sequences = volume(DimsRef(of_tokens.dims).drop_back(2));
  const SymExpr tokens(of_tokens.dims[of_tokens.rank() - 2]);
  const SymExpr key_rows(attention_key_rows(group, op));

  KernelBody body;
  body.includes +=
      "#include \"kernels/attention_backward/attention_backward.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  ConfigText config;
  config.type("Element", memory_type(of_tokens.dtype));
  operands.add_types(config);
  config.type("FirstResult", first.type)
      .type("SecondResult", second.type)
      .constant("kOfKeys", of_keys)
      .constant("kFirst", has_first)
      .constant("kSecond", has_second)
      .constant("kStoresFirst", first.is_computed)
      .constant("kStoresSecond", second.is_computed)
      .constant("kSumsFirst", !first_sums.empty())
      .constant("kSumsSecond", !second_sums.empty());
  add_heads(heads, config);
  config.constant("kOwnRows", form->own_rows)
      .constant("kOtherRows", form->other_rows)
      .constant("kThreads", form->threads)
      .constant("kStages", form->stages)
      .constant("kLoadingRegisters", form->loading_registers)
      .constant("kMultiplyingRegisters", form->multiplying_registers)
      .long_constant("kCachedBytes", form->cached_bytes)
      .constant("kWarpgroups", form->warpgroups)
      .constant("kAligned", operands.aligned())
      .constant("kScale", scale)
      .constant("kSoftcap", softcap)
      .constant("kFactor", attention_factor(scale, softcap, operands.adds_mask()))
      .long_constant("kWindow", integer_or(op.attrs, AttrName::window, 0));
  body.globals += config.text() + "\n";
  body.text = tile_text(
      ports, call_text("find_gradients<Config>",
                       {braced({q, keys, values, grad, dense(kLogSumOperand), dense(kDeltaOperand),
                                "PortOperand3{memory}", "PortOperand4{memory}", mask,
                                operands.size(sequences), operands.size(tokens),
                                operands.size(key_rows), braced(first.memory),
                                braced(second.memory), or_null(first_sums), or_null(second_sums)}),
                        "shared_memory"}));
  const SymExpr& own = of_keys ? key_rows : tokens;
  set_tile_launch(body, context.device,
                  {.work_tiles = sequences * (own + SymExpr(form->own_rows - 1)) *
                                 SymExpr(of_keys ? heads.kv_count : heads.count),
                   .units_per_tile = form->own_rows,
                   .threads = form->threads,
                   .shared_bytes = form->shared_bytes});
  body.moves_registers = form->multiplying_registers > 0;
  body.resident_blocks = form->blocks;
  body.minimum_arch = kFirstArchWithAsyncCopies;
  return body;
}

}  // namespace sinter
