// The text of decode_attention: a template of the kernel library with what the group fixes, the
// addresses of its operands' rows, and accessors that compute row numbers.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>

#include <algorithm>

#include "codegen/emission/attention_text.h"
#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/kernel_body.h"
#include "ir/optional_attribute.h"
#include "ir/row_numbers.h"
#include "kernels/decode_attention/order.h"
#include "plan/kernel_text.h"

namespace sinter {
namespace {

/// Blocks' worth of heads, of all tokens, from which on attention has no clusters: as many as
/// nearly every multiprocessor holds, two at most, so that blocks alone keep it busy; or where the
/// clusters' blocks would be more than twice as many as the multiprocessors hold. A cluster's
/// blocks must find room at the same time, and of clusters of 3 fewer do. (One H200, after 1,024
/// tokens: of 8 sequences of Llama-2-7B 43 us in place of 58, of 4 27 in place of 29 but a whole
/// token slower; a token of 8 sequences of Llama-3.2-1B 1.22 ms in place of 1.45. One H100, 6
/// sequences of Llama-3.2-1B, 4 splits: after 256 tokens 1.22 ms in place of 1.49, after 8,192 1.94
/// in place of 2.07; 4 sequences 1.25 in place of 1.31 and 1.90 in place of 1.82; 3 of Llama-2-7B,
/// 2 splits, after 256 tokens 5.47 in place of 5.40.) Tokens that see far more keys than the others
/// are the price: their splits are taken one after the other.
int64_t items_without_clusters(const DeviceDescription& device, int64_t resident_blocks,
                               int64_t splits) {
  const int64_t resident = std::min<int64_t>(resident_blocks, 2) * device.multiprocessors;
  return std::min(resident - device.multiprocessors / 16, 2 * resident / splits + 1);
}

/// Blocks of attention_wide_tile for each multiprocessor from which on they take less time than
/// twice as many of attention_tile, which read the keys twice. (One H100, Llama-3.2-1B after 256
/// tokens, in us of a step: 64 sequences 280 where it was 356, but 32 235 where it was 189.)
constexpr int64_t kWideBlocks = 3;

int64_t integer(const Op& op, AttrName name) { return op.attrs.get<int64_t>(name); }
/// The output that is the anchor's result: "y0". Fails where the group computes anything of it.
Result<std::string> result_pointer(const EmitContext& context) {
  const Graph& group = context.group;
  const ValueId anchor = context.anchor->id;
  const auto output = llvm::find(group.outputs, anchor);
  const bool is_read = llvm::any_of(
      group.ops(), [&](const Op& op) { return llvm::is_contained(op.operands, anchor); });
  if (is_read || output == group.outputs.end())
    return fail(
        fmt::format("a kernel of {} computes nothing of its result", algorithm_name(group[anchor])),
        {}, "compute the ops in separate kernels", ExitCode::internal_error);
  return fmt::format("y{}", output - group.outputs.begin());
}

}  // namespace

Result<KernelBody> emit_decode_attention(const EmitContext& context) {
  const Op& op = context.anchor_op();
  SINTER_LET(result, result_pointer(context));
  AttentionText operands(context);
  const SymExpr sequences = attention_sequences(op);
  const SymExpr tokens = sequences * SymExpr(attention_tokens(op));
  KernelBody body;
  body.launch.rows = tokens;
  const AttentionHeads heads = attention_heads(context.group, op);
  const int64_t splits = integer(op, AttrName::splits);
  const int64_t tile = attention_tile(heads.group());
  const int lanes =
      attention_lanes(static_cast<int>(heads.width), static_cast<int>(heads.value_width));
  const int64_t window = integer_or(op.attrs, AttrName::window, 0);
  SINTER_LET(q, operands.queries());
  SINTER_LET(keys, operands.rows(1));
  SINTER_LET(values, operands.rows(2));
  SINTER_LET(mask, operands.mask());
  const int64_t streams = integer_or(op.attrs, AttrName::streams, attention_most_streams(lanes));
  body.launch.threads = streams * lanes;
  SINTER_LET(ports, emit_operand_ports(context, body.launch.threads));
  body.includes = "#include \"kernels/decode_attention/attention.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  ConfigText own;
  operands.add_types(own);
  add_heads(heads, own);
  own.constant("kTile", tile)
      .constant("kSplits", splits)
      .constant("kStreams", streams)
      .constant("kAligned", operands.aligned())
      .constant("kSequences", !sequences.is(1))
      .constant("kEmptyZero", op.attrs.is_set(AttrName::empty_zero))
      .constant("kScale", real_or_zero(op.attrs, AttrName::scale))
      .constant("kSoftcap", real_or_zero(op.attrs, AttrName::softcap))
      .long_constant("kWindow", window);
  add_sink(op, own);
  body.globals += own.text() + "\n";
  const bool early = context.overlap.reads_early();
  body.waits = early;
  body.early_inputs = context.overlap.early_inputs;
  const std::string start =
      early ? fmt::format("attention.start_early({});\n{}", size_code(tokens, context.parameters),
                          wait_text(context.overlap))
            : "attention.start();\n";
  const std::string rows_type = clamps_rows(op) ? ", RowsOfCache" : "";
  const std::string of_rows =
      clamps_rows(op)
          ? fmt::format(", RowsOfCache{{{}}}", operands.size(attention_key_rows(context.group, op)))
          : "";
  const auto attend = [&](std::string_view config, std::string_view launched) {
    const std::string in_memory =
        braced({q, keys, values, "PortOperand3{memory}", "PortOperand4{memory}", mask,
                operands.size(attention_tokens(op))});
    const std::string type = fmt::format("DecodeAttention<{}, {}, {}{}>", config,
                                         memory_type(op.type.dtype), launched, rows_type);
    return fmt::format("{}{} attention({}, shared{});\n{}attention.run({});\n", ports.memory_value,
                       type, in_memory, of_rows, start, result);
  };
  const auto numbers = [](size_t count) {
    return llvm::to_vector(llvm::seq<uint32_t>(0, static_cast<uint32_t>(count)));
  };
  const std::string arguments =
      arguments_of(numbers(context.group.inputs.size()), numbers(context.group.outputs.size()),
                   context.parameters.size());
  /// Defines the function of a form without clusters, and calls it. Inlined, one would take
  /// registers from the other forms.
  const auto alone = [&](std::string_view name, std::string_view config) {
    body.globals +=
        fmt::format("__device__ __noinline__ void {}(AttentionShared<{}>& shared, {}) {{\n{}}}\n",
                    name, config, parameters_of(context.group, context.parameters.size(), false),
                    indented(attend(config, "WithoutClusters")));
    return fmt::format("{}({}shared, {});\n", name, config == "Config" ? "" : "wide_", arguments);
  };
  // Keys on their way fill half of the registers that this leaves a thread.
  if (tile == 1 && dtype_info(op.type.dtype).bits == 16)
    body.resident_blocks = kThreadsOf64Registers / body.launch.threads;
  body.text = "__shared__ AttentionShared<Config> shared;\n";
  if (early) body.text += "fence_acq_rel_gpu();\n";
  if (splits > 1 && context.device.has.clusters) {
    body.launch.cluster = splits;
    body.launch.items_without_clusters =
        items_without_clusters(context.device, body.resident_blocks, splits);
    body.text += fmt::format("if (cluster_nctaid_x() == 1) {{\n{}}} else {{\n{}}}\n",
                             indented(alone("attend_alone", "Config")),
                             indented(attend("Config", "InClusters")));
  } else if (const int64_t wide = attention_wide_tile(heads.group(), splits); wide > tile) {
    const int64_t tiles = heads.count / wide;
    body.globals += fmt::format(
        "struct WideConfig : Config {{\n  static constexpr int kTile = {};\n}};\n\n", wide);
    body.text += "__shared__ AttentionShared<WideConfig> wide_shared;\n";
    const std::string narrow = alone("attend_alone", "Config");
    body.text += fmt::format(
        "const long long wide_blocks = {} * {};\nif (wide_blocks < {}) {{\n{}}} else if "
        "(blockIdx.x "
        "< wide_blocks) {{\n{}}}\n",
        size_code(tokens, context.parameters), tiles, kWideBlocks * context.device.multiprocessors,
        indented(narrow), indented(alone("attend_wide", "WideConfig")));
  } else {
    body.text += alone("attend_alone", "Config");
  }
  body.text += ports.stores;
  body.launch.items_per_row = heads.count / tile;
  return body;
}

}  // namespace sinter
