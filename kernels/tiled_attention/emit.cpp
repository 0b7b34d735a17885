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
#include "kernels/tiled_attention/layout.h"
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

/// The text and launch of both kernels: of many tokens, and of few.
class TiledAttentionKernel {
 public:
  explicit TiledAttentionKernel(const EmitContext& context)
      : context_(context),
        group_(context.group),
        op_(context.anchor_op()),
        heads_(attention_heads(group_, op_)),
        shape_(attention_shape(group_, op_)),
        operands_(context),
        log_sum_(log_sum_output(group_)) {
    const Dims& q = group_[op_.operands[0]].type.dims;
    sequences_ = volume(DimsRef(q).drop_back(2));
    tokens_ = SymExpr(q[q.size() - 2]);
  }

  Result<KernelBody> emit() {
    const auto form = attention_form(shape_, context_.device);
    if (!form)
      return fail(fmt::format("attention with heads of {} and {} elements does not fit {}",
                              heads_.width, heads_.value_width, context_.device.name),
                  {}, "compile with --attention composed");
    SINTER_LET(keys, operands_.rows(1));
    SINTER_LET(values, operands_.rows(2));
    SINTER_LET(mask, operands_.mask());
    SINTER_LET(ports, attends() ? emit_ports(context_, form->threads)
                                : emit_operand_ports(context_, form->threads));
    ports_ = std::move(ports);
    // With a window the first tile of most work tiles is seen in part.
    if (form->bulk_copies && !op_.attrs.has(AttrName::window)) {
      auto key_map = tile_map(context_, 1), value_map = tile_map(context_, 2);
      if (key_map && value_map) body_.tensor_maps = {*std::move(key_map), *std::move(value_map)};
    }
    const bool bulk_copies = !body_.tensor_maps.empty();
    write_config(*form, bulk_copies);
    in_memory_ = {keys,
                  values,
                  "PortOperand3{memory}",
                  "PortOperand4{memory}",
                  mask,
                  operands_.size(sequences_),
                  operands_.size(tokens_),
                  operands_.size(attention_key_rows(group_, op_))};
    if (log_sum_)
      in_memory_.push_back(fmt::format("y{}", *log_sum_));
    else if (bulk_copies)
      in_memory_.push_back("nullptr");
    if (bulk_copies) llvm::append_values(in_memory_, "&t0", "&t1");
    if (shape_.splits > 0)
      write_few(*form);
    else
      write_many(*form);
    body_.minimum_arch = bulk_copies ? kFirstArchWithClusters : kFirstArchWithAsyncCopies;
    return std::move(body_);
  }

 private:
  bool attends() const { return op_.kind == OpKind::attention; }

  void write_config(const AttentionForm& form, bool bulk_copies) {
    const double scale = real_or_zero(op_.attrs, AttrName::scale),
                 softcap = real_or_zero(op_.attrs, AttrName::softcap);
    body_.includes = fmt::format("#include \"kernels/tiled_attention/{}.cuh\"\n",
                                 shape_.splits > 0 ? "attention_few" : "attention") +
                     ports_.includes;
    body_.globals = ports_.memory + ports_.accessors + ports_.store_globals;
    ConfigText config;
    config.type("Element", memory_type(group_[op_.operands[0]].type.dtype));
    operands_.add_types(config);
    add_heads(heads_, config);
    config.constant("kRows", form.rows)
        .constant("kThreads", form.threads)
        .constant("kStages", form.stages)
        .constant("kQueryStages", form.query_stages)
        .constant("kWarpgroups", form.warpgroups)
        .constant("kAligned", operands_.aligned())
        .constant("kSequences", !sequences_.is(1))
        .constant("kEmptyZero", op_.attrs.is_set(AttrName::empty_zero))
        .constant("kScale", scale)
        .constant("kSoftcap", softcap)
        .constant("kFactor", attention_factor(scale, softcap, operands_.adds_mask()))
        .long_constant("kWindow", integer_or(op_.attrs, AttrName::window, 0));
    add_sink(op_, config);
    if (shape_.segment > 0)
      config.constant("kSegment", shape_.segment).constant("kJoinedWords", form.joined_words);
    if (shape_.splits > 0) config.constant("kTile", few_heads(heads_.group()));
    if (log_sum_) config.constant("kLogSum", true);
    if (bulk_copies) config.constant("kBulkCopies", true);
    body_.globals += config.text() + "\n";
  }

  void write_many(const AttentionForm& form) {
    body_.text = tile_text(
        ports_, call_text("attend<Config>",
                          {"PortOperand0{memory}", braced(in_memory_),
                           attends() ? "PortResult{memory}" : "NoResult{}", "shared_memory"}));
    set_tile_launch(
        body_, context_.device,
        {.work_tiles = sequences_ * (tokens_ + SymExpr(form.rows - 1)) * SymExpr(heads_.count),
         .units_per_tile = form.rows,
         .threads = form.threads,
         .shared_bytes = form.shared_bytes,
         .persistent = form.warpgroups});
    body_.moves_registers = form.warpgroups;
  }

  /// Blocks [token][heads of a block][split]: the splits of a token are a cluster, but for many
  /// tokens, which fill the device without.
  void write_few(const AttentionForm& form) {
    const SymExpr tokens = sequences_ * tokens_;
    const bool early = context_.overlap.reads_early();
    body_.waits = early;
    body_.early_inputs = context_.overlap.early_inputs;
    const std::string start =
        early ? fmt::format("attention.start_early(static_cast<int>({}));\n{}",
                            size_code(tokens, context_.parameters), wait_text(context_.overlap))
              : "attention.start();\n";
    const auto attend = [&](int64_t blocks) {
      return fmt::format(
          "FewTokensAttention<Config, {}> attention(in, shared_memory);\n{}"
          "attention.run(PortOperand0{{memory}}, PortResult{{memory}});\n",
          blocks, start);
    };
    std::string text = fmt::format("const AttentionOperands<Config> in{};\n", braced(in_memory_));
    body_.launch.rows = tokens;
    body_.launch.items_per_row = heads_.count / few_heads(heads_.group());
    body_.launch.threads = form.threads;
    body_.launch.shared_bytes = form.shared_bytes;
    body_.resident_blocks = 2;
    if (shape_.splits > 1 && context_.device.has.clusters) {
      body_.launch.cluster = shape_.splits;
      // Clusters whose blocks do not all run at a time take longer than blocks without.
      body_.launch.items_without_clusters = 2 * context_.device.multiprocessors / shape_.splits + 1;
      text += fmt::format("if (cluster_nctaid_x() == 1) {{\n{}}} else {{\n{}}}\n",
                          indented(attend(1)), indented(attend(shape_.splits)));
    } else {
      text += attend(1);
    }
    body_.text = (early ? "fence_acq_rel_gpu();\n" : "") + tile_text(ports_, text);
  }

  const EmitContext& context_;
  const Graph& group_;
  const Op& op_;
  AttentionHeads heads_;
  AttentionShape shape_;
  AttentionText operands_;
  std::optional<size_t> log_sum_;
  SymExpr sequences_, tokens_;
  PortText ports_;
  std::vector<std::string> in_memory_;  // AttentionOperands
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_tiled_attention(const EmitContext& context) {
  return TiledAttentionKernel(context).emit();
}

}  // namespace sinter
