// A group around a gemv: what stands in front of it makes the operand's rows in the shared memory
// of every block, what stands behind it takes the block's sums, element by element.
//
//   Product product(memory, x2, n0);
//   product.start();                        the matrix's first pieces are on their way
//   pdl_wait();
//   for (row ...) { load_chunk(...) ... }
//   product.fill();                         more of it
//   for (row ...) { ... store_chunk(y0 + ..., ...) }       y0: the operand
//   const auto x3 = product.run();                         x3: the sums, a value like others
//   for (item ...) { ... store(y1 + ..., ...) }
//
// Where the operand may be made early (launch_order.h), the wait stands behind product.run().
//
// All parts are written by the emitters of row and element kernels, for graphs of their own: one
// ends with the operand; of those behind (the sections of kernels/common/colocation.h) each begins
// with the sums as one more input.
#include "kernels/row/emit.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/op_copier.h"
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
        overlap_(context.overlap) {
    for (uint32_t i = 0; i < group_.size(); ++i)
      if (op_class(group_.ops()[i]) == OpClass::anchor) anchor_ = {i};
    in_prologue_ = gemv_prologue(group_, anchor_);
  }

  Result<KernelBody> emit() {
    llvm::SmallVector<ValueId, 4> results;
    for (ValueId output : group_.outputs)
      if (!in_prologue_[output.index]) results.push_back(output);
    SINTER_LET(behind, GemvEpilogue::create(group_, anchor_, results, symbols_));
    SINTER_TRY(write_product(behind.rows()));
    SINTER_TRY(write_prologue());
    const bool early = overlap_.reads_early();
    body_.waits = early;
    // What stands behind is read early by a single section, and only if all of it may be.
    const bool all_early =
        overlap_.early_inputs.size() == group_.inputs.size() && behind.rows().sections.size() == 1;
    for (uint32_t k : overlap_.early_inputs)
      if (all_early || in_prologue_[group_.inputs[k].index]) body_.early_inputs.push_back(k);
    SINTER_LET(rest, behind.emit(parameters_, {.blocks = config_.blocks,
                                               .threads = 32 * config_.warps,
                                               .loads_ahead = !early || all_early,
                                               .wait = early ? wait_text(overlap_) : ""}));
    body_.globals += rest.globals;
    body_.includes += "#include \"kernels/gemv/gemv.cuh\"\n";
    std::string outputs;  // both parts number their results anew
    for (size_t k = 0; k < group_.outputs.size(); ++k)
      outputs += fmt::format("auto* const out{0} = y{0};\n", k);
    body_.before_wait = fmt::format(
        "extern __shared__ __align__(128) unsigned char memory[];\n"
        "Product product(memory, {}, {});\n"
        "product.start();\n",
        input(root_of(group_, op().operands[1])), tokens());
    SINTER_CHECK(!early || !may_be_empty(), "a kernel without tokens would not wait");
    if (early) body_.text = "acquire_fence();\n";
    if (may_be_empty()) body_.text = fmt::format("if ({} == 0) return;\n", tokens());
    body_.text += outputs + prologue_ + rest.body;
    return std::move(body_);
  }

 private:
  const Op& op() const { return group_[anchor_]; }
  std::string input(ValueId id) const {
    return fmt::format("x{}", llvm::find(group_.inputs, id) - group_.inputs.begin());
  }
  std::string tokens() const {
    return fmt::format("static_cast<int>({})", size_code(SymExpr(op().type.dims[0]), parameters_));
  }

  /// The operand is what stands in memory: nothing computes it, and it is dense.
  bool direct() const { return has_direct_operand(group_, anchor_); }

  Status write_prologue() {
    if (direct()) {
      prologue_ = fmt::format("product.take({});\n", input(root_of(group_, op().operands[0])));
      return {};
    }
    Graph graph;
    OpCopier copy(group_, graph);
    graph.outputs.push_back(copy(op().operands[0]));
    std::string results = "const auto y0 = product.operand();\n";
    for (size_t k = 0; k < group_.outputs.size(); ++k) {
      if (!in_prologue_[group_.outputs[k].index]) continue;
      results += fmt::format("auto* const y{} = out{};\n", graph.outputs.size(), k);
      graph.outputs.push_back(copy(group_.outputs[k]));
    }
    SINTER_LET(form, analyze_group(graph, 1, symbols_, true));
    // One token by all threads; several at a time.
    const int64_t most = max_tokens();
    const auto rows_at_once = [&](int64_t rows) {
      return emit_rows_in_block(form, symbols_, parameters_, 32 * config_.warps, rows,
                                "product.fill();\n", context_.device);
    };
    SINTER_LET(one, rows_at_once(1));
    body_.globals += fmt::format("namespace front {{\n{}}}\n", one.globals);
    std::string text = one.text;
    if (most > 1) {
      SINTER_LET(several, rows_at_once(kMaxGemvTokens));
      text = fmt::format("if ({0} == 1) {{\n{1}}} else if ({0} > 1) {{\n{2}}}\n", tokens(),
                         indented(one.text), indented(several.text));
    }
    prologue_ = fmt::format("{{\nusing namespace front;\n{}{}__syncthreads();\n}}\n", results, text);
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
    const std::optional<GemvForm> ring = recorded ? gemv_form(*recorded) : std::nullopt;
    std::optional<GemvConfig> config;
    if (!recorded || ring)
      config = schedule_gemv(product, deal.units, context_.device, ring ? &*ring : nullptr);
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
    body_.globals += fmt::format(
        "struct Config {{\n"
        "  using Element = {};\n"
        "  static constexpr int kLength = {}, kRows = {}, kUnits = {}, kStride = {};\n"
        "  static constexpr int kSplits = {}, kTokens = {}, kBlocks = {};\n"
        "  static constexpr int kStageLength = {}, kWarps = {}, kOperandBytes = {};\n"
        "  static constexpr int kStages = {};\n"
        "  static constexpr bool kDirect = {};\n"
        "}};\n"
        "using Product = Gemv<Config>;\n\n",
        memory_type(product.dtype), product.length, product.rows, deal.units, deal.stride,
        product.splits, product.tokens, config_.blocks, config_.stage_length, config_.warps,
        config_.operand_bytes, config_.stages, direct());
    body_.launch.rows = config_.blocks;
    body_.launch.threads = 32 * config_.warps;
    body_.launch.shared_bytes = config_.shared_bytes;
    body_.launch.wanted_shared_bytes =
        SymExpr(config_.pipeline_bytes) + SymExpr(op().type.dims[0]) * SymExpr(config_.token_bytes);
    body_.resident_blocks = 2;  // its own, and those of the kernels beside it
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
