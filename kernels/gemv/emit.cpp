// The kernel of a group around a gemv. The prologue computes the operand's rows in the shared
// memory of every block; the epilogue computes an element of the results for each of the block's
// sums.
//
//   Product product(memory, x2, tokens);
//   product.start();                                issue the copies of the matrix's first stages
//   griddepcontrol_wait();
//   for (row ...) { load_chunk(...) ... }
//   product.fill();                                 issue the others
//   for (row ...) { ... store_chunk(operand + ..., ...) }
//   const auto x3 = product.sums();
//   product.run();
//   for (item ...) { ... load(x3 + ...) ... store(y0 + ..., ...) }
//
// Where the operand may be read early (launch_order.h), the wait follows product.run().
//
// The emitters of row and pointwise kernels write prologue and epilogue, each for a graph of its
// own: the prologue's graph ends with the operand; the epilogue's graphs (the sections of
// ir/colocation.h) have the sums as one more input.
#include "kernels/row/emit.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/packed_matrix.h"
#include "ir/graph_copier.h"
#include "kernels/gemv/epilogue.h"
#include "kernels/gemv/order.h"
#include "kernels/gemv/prologue.h"
#include "kernels/gemv/schedule.h"

namespace sinter {
namespace {

class GemvKernel {
 public:
  explicit GemvKernel(const EmitContext& context)
      : context_(context),
        group_(context.group),
        symbols_(context.symbols),
        parameters_(context.parameters),
        overlap_(context.overlap),
        anchor_(context.anchor->id),
        in_prologue_(gemv_prologue(group_, anchor_)) {}

  Result<KernelBody> emit() {
    llvm::SmallVector<ValueId, 4> results;
    for (ValueId output : group_.outputs)
      if (!in_prologue_[output.index]) results.push_back(output);
    SINTER_LET(epilogue, SumsEpilogue::create(group_, anchor_, results, symbols_));
    SINTER_TRY(write_product(epilogue.rows()));
    SINTER_TRY(write_prologue());
    const bool early = overlap_.reads_early();
    body_.waits = early;
    // An epilogue of one section reads its inputs early if all of them may be.
    const bool all_early = overlap_.early_inputs.size() == group_.inputs.size() &&
                           epilogue.rows().sections.size() == 1;
    for (uint32_t k : overlap_.early_inputs)
      if (all_early || in_prologue_[group_.inputs[k].index]) body_.early_inputs.push_back(k);
    SINTER_LET(rest, emit_gemv_epilogue(epilogue, parameters_,
                                        {.blocks = config_.blocks,
                                         .threads = 32 * config_.warps,
                                         .loads_ahead = !early || all_early,
                                         .wait = early ? wait_text(overlap_) : ""}));
    body_.globals += rest.globals;
    body_.includes += "#include \"kernels/gemv/gemv.cuh\"\n";
    body_.before_wait = fmt::format(
        "extern __shared__ __align__(128) unsigned char memory[];\n"
        "const int tokens = static_cast<int>({});\n"
        "Product product(memory, {}, tokens);\n"
        "product.start();\n",
        size_code(SymExpr(op().type.dims[0]), parameters_), input(op().operands[1]));
    SINTER_CHECK(!early || !may_be_empty(), "a kernel without tokens would not wait");
    if (early) body_.text = "fence_acq_rel_gpu();\n";
    if (may_be_empty()) body_.text = "if (tokens == 0) return;\n";
    body_.text += prologue_ + rest.body;
    return std::move(body_);
  }

 private:
  const Op& op() const { return group_[anchor_]; }
  /// The pointer that an operand is a view of.
  std::string input(ValueId operand) const {
    return fmt::format("x{}", *input_of(group_, operand));
  }

  /// The operand is dense and stands in memory: nothing in the group computes it.
  bool direct() const { return has_direct_operand(group_, anchor_); }

  Status write_prologue() {
    if (direct()) {
      prologue_ = fmt::format("product.take({});\n", input(op().operands[0]));
      return {};
    }
    Graph graph;
    GraphCopier copy(group_, graph);
    graph.outputs.push_back(copy(op().operands[0]));
    std::vector<std::string> names = {"operand"};
    for (size_t k = 0; k < group_.outputs.size(); ++k) {
      if (!in_prologue_[group_.outputs[k].index]) continue;
      names.push_back(fmt::format("y{}", k));
      graph.outputs.push_back(copy(group_.outputs[k]));
    }
    SINTER_LET(form, analyze_group(graph, 1, symbols_, true));
    form.output_names = std::move(names);
    form.table_name = "prologue_table";
    const auto rows_at_once = [&](int64_t rows) {
      return emit_rows_in_block(form, symbols_, parameters_, 32 * config_.warps, rows,
                                "product.fill();\n", context_.device);
    };
    // All threads of the block compute the row of one token; of several tokens each has a share.
    SINTER_LET(one, rows_at_once(1));
    body_.globals += one.globals;
    std::string text = fmt::format("{{\n{}}}", indented(one.text));
    if (max_tokens() > 1) {
      SINTER_LET(several, rows_at_once(kMaxGemvTokens));
      text = fmt::format("if (tokens == 1) {} else if (tokens > 1) {{\n{}}}", text,
                         indented(several.text));
    }
    prologue_ =
        fmt::format("const auto operand = product.operand();\n{}\n__syncthreads();\n", text);
    return {};
  }

  int64_t max_tokens() const { return SymExpr(op().type.dims[0]).upper_bound(symbols_); }
  bool may_be_empty() const {
    const Dim dim = op().type.dims[0];
    return dim.is(0) || (!dim.is_constant() && symbols_[dim.symbol().index].low == 0);
  }

  const TunedForm* recorded_form(const GemvProduct& product) const {
    const auto forms = context_.forms.find("gemv");
    if (forms == context_.forms.end()) return nullptr;
    const auto form = forms->second.find(product.key());
    return form == forms->second.end() ? nullptr : &form->second;
  }

  Status write_product(const ColocatedRows& deal) {
    const GemvProduct product = gemv_product(group_, op(), symbols_);
    const auto element_bytes = whole_bytes(product.dtype);
    const TunedForm* recorded = recorded_form(product);
    const std::optional<GemvForm> form = recorded ? gemv_form(*recorded) : std::nullopt;
    std::optional<GemvConfig> config;
    if (!recorded || form)
      config = schedule_gemv(product, deal.units, context_.device, form ? &*form : nullptr);
    if (recorded && !config)
      return fail(fmt::format("the recorded form {} does not fit the product or the shared memory "
                              "of {}",
                              to_string(*recorded), context_.device.name),
                  "gemv " + product.key(), "make a record of these products, or run without one");
    const bool fits = direct() || product.tokens * product.length * element_bytes <=
                                      (config ? config->operand_bytes : 0);
    if (!config || !fits)
      return fail(fmt::format("a gemv of {} rows of {} does not fit the shared memory of {}",
                              product.rows, product.length, context_.device.name),
                  {}, "compute the ops in separate kernels", ExitCode::internal_error);
    config_ = *config;
    body_.globals +=
        ConfigText()
            .type("Element", memory_type(product.dtype))
            .type("Matrix", product.codes ? packed_matrix(*product.codes, product.length)
                                          : fmt::format("DenseMatrix<{}, {}>",
                                                        memory_type(product.dtype), product.length))
            .constant("kLength", product.length)
            .constant("kRows", product.rows)
            .constant("kUnits", deal.units)
            .constant("kStride", deal.stride)
            .constant("kSplits", product.splits)
            .constant("kTokens", product.tokens)
            .constant("kBlocks", config_.blocks)
            .constant("kStageLength", config_.stage_length)
            .constant("kWarps", config_.warps)
            .constant("kOperandBytes", config_.operand_bytes)
            .constant("kStages", config_.stages)
            .constant("kDirect", direct())
            .text() +
        "using Product = Gemv<Config>;\n\n";
    body_.launch.rows = config_.blocks;
    body_.launch.threads = 32 * config_.warps;
    body_.launch.shared_bytes = config_.shared_bytes;
    body_.launch.wanted_shared_bytes =
        SymExpr(config_.pipeline_bytes) + SymExpr(op().type.dims[0]) * SymExpr(config_.token_bytes);
    // Its own, and one of a kernel that overlaps it; tiles of codes fill the registers.
    const bool code_tiles = product.codes && product.tokens > 1 && element_bytes == 2;
    body_.resident_blocks = code_tiles ? 1 : 2;
    return {};
  }

  const EmitContext& context_;
  const Graph& group_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<SymbolId> parameters_;
  const Overlap& overlap_;
  ValueId anchor_;
  std::vector<bool> in_prologue_;
  GemvConfig config_;
  std::string prologue_;
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_gemv(const EmitContext& context) { return GemvKernel(context).emit(); }

}  // namespace sinter
