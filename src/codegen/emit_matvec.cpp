// A group around a matvec: what stands in front of it makes the operand's rows in the shared memory
// of every block, what stands behind it takes the block's sums, element by element.
//
//   const Product product(memory, x2, n0);
//   product.start();                        the matrix is on its way
//   wait_for_inputs();
//   for (row ...) { ... store_chunk(y0 + ..., ...) }       y0: the operand
//   const auto x3 = product.run();                         x3: the sums, a value like others
//   for (item ...) { ... store(y1 + ..., ...) }
//
// All parts are written by the emitters of row and element kernels, for graphs of their own: one
// ends with the operand; of those behind (the sections of ir/matvec_rows.h) each begins with the
// sums as one more input.
#include <llvm/ADT/STLExtras.h>

#include <map>

#include "codegen/emit_kernel_body.h"
#include "codegen/emit_scalar.h"
#include "ir/builder.h"
#include "ir/contraction.h"
#include "ir/decompose.h"
#include "ir/matvec_order.h"
#include "ir/matvec_rows.h"

namespace sinter {
namespace {

/// Ops copied from one graph to another on demand, with what they read.
class Copier {
 public:
  Copier(const Graph& from, Graph& into) : from_(from), into_(into), copies_(from.size()) {
    for (ValueId id : from.inputs) into.inputs.push_back(copies_[id.index] = into.add(from[id]));
  }
  ValueId operator()(ValueId id) {
    if (copies_[id.index].valid()) return copies_[id.index];
    Op op = from_[id];
    for (ValueId& operand : op.operands) operand = (*this)(operand);
    return copies_[id.index] = into_.add(std::move(op));
  }
  void define(ValueId id, ValueId copy) { copies_[id.index] = copy; }

 private:
  const Graph& from_;
  Graph& into_;
  std::vector<ValueId> copies_;
};

class MatvecKernel {
 public:
  MatvecKernel(const Graph& group, llvm::ArrayRef<Symbol> symbols,
               llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device)
      : group_(group), symbols_(symbols), parameters_(parameters), device_(device) {
    for (uint32_t i = 0; i < group.size(); ++i)
      if (op_class(group.ops()[i]) == OpClass::anchor) anchor_ = {i};
    in_front_.resize(group.size(), false);
    in_front_[op().operands[0].index] = true;
    for (uint32_t i = anchor_.index; i-- > 0;)
      if (in_front_[i])
        for (ValueId operand : group.ops()[i].operands) in_front_[operand.index] = true;
    // A value of the front that leaves may be rounded for its store alone.
    for (uint32_t i = 0; i < group.size(); ++i)
      if (const Op& op = group.ops()[i]; op.kind == OpKind::cast && in_front_[op.operands[0].index])
        in_front_[i] = true;
  }

  Result<KernelBody> emit() {
    SINTER_TRY(deal_rows());
    SINTER_TRY(write_product());
    SINTER_TRY(write_front());
    for (const MatvecRows::Section& section : rows_.sections) SINTER_TRY(write_section(section));
    body_.includes += "#include \"sinter/matvec.cuh\"\n";
    std::string outputs;  // both parts number their results anew
    for (size_t k = 0; k < group_.outputs.size(); ++k)
      outputs += fmt::format("auto* const out{0} = y{0};\n", k);
    body_.before_wait = fmt::format(
        "extern __shared__ __align__(128) unsigned char memory[];\n"
        "Product product(memory, {}, {});\n"
        "product.start();\n",
        input(root_of(group_, op().operands[1])), tokens());
    if (may_be_empty()) body_.text = fmt::format("if ({} == 0) return;\n", tokens());
    body_.text += outputs + front_ + product_and_behind();
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
  bool direct() const {
    const ValueId x = op().operands[0];
    return group_[root_of(group_, x)].kind == OpKind::input && is_dense(group_, x);
  }

  Status write_front() {
    if (direct()) {
      front_ = fmt::format("product.take({});\n", input(root_of(group_, op().operands[0])));
      return {};
    }
    Graph graph;
    Copier copy(group_, graph);
    graph.outputs.push_back(copy(op().operands[0]));
    std::string results = "const auto y0 = product.operand();\n";
    for (size_t k = 0; k < group_.outputs.size(); ++k) {
      if (!in_front_[group_.outputs[k].index]) continue;
      results += fmt::format("auto* const y{} = out{};\n", graph.outputs.size(), k);
      graph.outputs.push_back(copy(group_.outputs[k]));
    }
    SINTER_LET(form, analyze_group(graph, 1, symbols_, true));
    // One token by all threads; several at a time.
    const int64_t most = most_tokens();
    const auto rows_at_once = [&](int64_t rows) {
      return emit_rows_in_block(form, symbols_, parameters_, 32 * config_.warps, rows, device_);
    };
    SINTER_LET(one, rows_at_once(1));
    add_globals("front", one.globals);
    std::string text = one.text;
    if (most > 1) {
      SINTER_LET(several, rows_at_once(kMostMatvecTokens));
      text = fmt::format("if ({0} == 1) {{\n{1}}} else if ({0} > 1) {{\n{2}}}\n", tokens(),
                         indented(one.text), indented(several.text));
    }
    front_ = fmt::format("{{\nusing namespace front;\n{}{}__syncthreads();\n}}\n", results, text);
    return {};
  }

  /// A graph of what stands behind, its last input the sums in float32; with copies of `outputs`.
  Graph behind(llvm::ArrayRef<ValueId> outputs) const {
    Graph graph;
    Copier copy(group_, graph);
    Builder builder(graph, symbols_, "sum");
    const ValueId sums = builder.leaf(OpKind::input, {DType::f32, op().type.dims}, "sums");
    ValueId result = sums;
    if (op().operands.size() == 3)
      result = builder.add(result, builder.cast(copy(op().operands[2]), DType::f32));
    copy.define(anchor_, builder.cast(result, op().type.dtype));
    for (ValueId output : outputs) graph.outputs.push_back(copy(output));
    return graph;
  }

  /// Which rows of the matrix a block has, and which results stand beside which.
  Status deal_rows() {
    llvm::SmallVector<ValueId, 4> results;
    for (ValueId output : group_.outputs)
      if (!in_front_[output.index]) results.push_back(output);
    const Graph graph = decompose_all(behind(results), symbols_);
    std::map<ValueId, OpFacts> facts;
    llvm::SmallVector<ValueId, 4> values;
    for (ValueId output : graph.outputs)
      if (facts.emplace(output, value_facts(graph, output, symbols_)).second)
        values.push_back(output);
    llvm::sort(values);
    auto deal = matvec_rows(graph, graph.inputs.back(), values,
                            [&](ValueId id) -> const OpFacts& { return facts.at(id); });
    if (!std::holds_alternative<MatvecRows>(deal))
      return fail("what stands behind a matvec needs sums of other blocks", {},
                  "compute the ops in separate kernels", ExitCode::internal_error);
    rows_ = std::get<MatvecRows>(std::move(deal));
    // By results of the group, not by their copies.
    for (MatvecRows::Section& section : rows_.sections) {
      llvm::SmallVector<ValueId, 4> members;
      for (size_t k = 0; k < results.size(); ++k)
        if (llvm::is_contained(section.members, graph.outputs[k])) members.push_back(results[k]);
      section.members = std::move(members);
    }
    return {};
  }

  /// What is computed beside the sums of some rows: `early` needs none of them.
  struct SectionText {
    int64_t first, width;
    std::string results, early, late;
  };

  Status write_section(const MatvecRows::Section& section) {
    SectionText text{section.first, section.width, {}, {}, {}};
    for (size_t k = 0, own = 0; k < group_.outputs.size(); ++k)
      if (llvm::is_contained(section.members, group_.outputs[k]))
        text.results += fmt::format("auto* const y{} = out{};\n", own++, k);
    SINTER_LET(form, analyze_group(behind(section.members), 1, symbols_, true));
    if (form.reduces || form.stages.size() != 1 || !form.stages[0].width.is(section.width))
      return fail("what stands behind a matvec is no row of elements", {},
                  "compute the ops in separate kernels", ExitCode::internal_error);
    LoopSpace space(form, symbols_, parameters_);
    ValueEmitter values(form, space);
    CodeScope row;
    values.open(0, 0, row, false, true, form.graph.inputs.back());
    for (const Task& task : form.tasks) values.store(task, "");
    if (values.error()) return tl::make_unexpected(*values.error());
    // Of rows of one element all stands in the row's scope.
    const bool rows_are_elements = form.stages[0].axes.empty();
    (rows_are_elements ? text.late : text.early) =
        space.row_axes() + row.text + values.take_early();
    text.late += values.close();
    add_globals(name_of(sections_.size()), values.globals());
    sections_.push_back(std::move(text));
    return {};
  }
  static std::string name_of(size_t section) { return fmt::format("behind{}", section); }

  /// From the product on. Where one section follows, a thread's first element is known before the
  /// product, and what it needs is loaded by then.
  std::string product_and_behind() const {
    const int64_t threads = 32 * config_.warps;
    const int64_t most = most_tokens();
    const auto place = [&](std::string_view item) {
      return most == 1 ? fmt::format("constexpr long long row = 0;\n"
                                     "const int place = product.row({});\n",
                                     item)
                       : fmt::format("const long long row = {0} / product.rows();\n"
                                     "const int place = product.row({0} % product.rows());\n",
                                     item);
    };
    // Where the place is one of the section's, and its element there.
    const auto condition = [&](const SectionText& section) {
      std::string text = section.first > 0 ? fmt::format("place >= {}", section.first) : "";
      if (const int64_t end = section.first + section.width; end < rows_of_matrix())
        text += fmt::format("{}place < {}", text.empty() ? "" : " && ", end);
      return text;
    };
    const auto element = [](const SectionText& section) {
      return section.first > 0 ? fmt::format("place - {}", section.first) : "place";
    };
    const auto guarded = [&](size_t s) {
      const SectionText& section = sections_[s];
      const std::string when = condition(section);
      return fmt::format("{}{{\n", when.empty() ? "" : fmt::format("if ({}) ", when)) +
             indented(fmt::format("using namespace {};\nconst int i = {};\n", name_of(s),
                                  element(section)) +
                      section.results + section.early + section.late) +
             "}\n";
    };
    const std::string run =
        fmt::format("const auto x{} = product.run();\n", group_.inputs.size());
    const std::string items = fmt::format("const int thread = threadIdx.x, items = product.rows() * {};\n",
                                          most == 1 ? "1" : tokens());
    std::string all, rest = "thread";
    for (size_t s = 0; s < sections_.size(); ++s) all += guarded(s);
    std::string text = items;
    if (sections_.size() == 1) {
      const SectionText& section = sections_[0];
      const std::string when = condition(section);
      text += fmt::format("const int item = thread < items ? thread : 0;\n{}using namespace {};\n",
                          place("item"), name_of(0));
      text += when.empty() ? fmt::format("const int i = {};\n", element(section))
                           : fmt::format("const bool mine = {};\nconst int i = mine ? {} : 0;\n",
                                         when, element(section));
      text += section.results + section.early + run +
              fmt::format("if (thread < items{}) {{\n{}}}\n", when.empty() ? "" : " && mine",
                          indented(section.late));
      if (ceil_div(rows_of_matrix() / rows_.units, config_.blocks) * rows_.units * most <= threads)
        return "{\n" + text + "}\n";
      rest = fmt::format("thread + {}", threads);
    } else {
      text += run;
    }
    text += fmt::format("for (int item = {}; item < items; item += {}) {{\n{}}}\n", rest, threads,
                        indented(place("item") + all));
    return "{\n" + text + "}\n";
  }

  int64_t most_tokens() const { return SymExpr(op().type.dims[0]).upper_bound(symbols_); }
  bool may_be_empty() const {
    const Dim dim = op().type.dims[0];
    return dim.is(0) || (!dim.is_constant() && symbols_[dim.symbol().index].low == 0);
  }
  int64_t rows_of_matrix() const { return op().type.dims[1].constant(); }

  Status write_product() {
    const TensorType& matrix = group_[op().operands[1]].type;
    const int64_t rows = matrix.dims[0].constant(), length = matrix.dims[1].constant();
    const int64_t splits = op().attrs.get<int64_t>(AttrName::splits);
    const int64_t most = most_tokens();
    const auto config =
        schedule_matvec(rows, rows_.units, length, static_cast<int64_t>(size_bytes(matrix.dtype)),
                        splits, most, device_);
    const bool fits = direct() || most * length * static_cast<int64_t>(size_bytes(matrix.dtype)) <=
                                      (config ? config->operand_bytes : 0);
    if (!config || !fits)
      return fail(fmt::format("a matvec of {} rows of {} does not fit the shared memory of {}",
                              rows, length, device_.name),
                  {}, "compute the ops in separate kernels", ExitCode::internal_error);
    config_ = *config;
    body_.globals += fmt::format(
        "struct Config {{\n"
        "  using Element = {};\n"
        "  static constexpr int kLength = {}, kRows = {}, kUnits = {}, kStride = {};\n"
        "  static constexpr int kSplits = {}, kTokens = {}, kBlocks = {};\n"
        "  static constexpr int kPiece = {}, kWarps = {}, kOperandBytes = {};\n"
        "  static constexpr bool kDirect = {};\n"
        "}};\n"
        "using Product = Matvec<Config>;\n\n",
        memory_type(matrix.dtype), length, rows, rows_.units, rows_.stride, splits, most,
        config_.blocks, config_.piece, config_.warps, config_.operand_bytes, direct());
    body_.launch.rows = config_.blocks;
    body_.launch.threads = 32 * config_.warps;
    body_.launch.shared_bytes = config_.shared_bytes;
    body_.launch.wanted_shared_bytes =
        SymExpr(config_.ring_bytes) + SymExpr(op().type.dims[0]) * SymExpr(config_.token_bytes);
    body_.resident_blocks = 2;  // its own, and those of the kernels beside it
    return {};
  }

  void add_globals(std::string_view scope, const std::string& globals) {
    body_.globals += fmt::format("namespace {} {{\n{}}}\n", scope, globals);
  }

  const Graph& group_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<SymbolId> parameters_;
  const DeviceDescription& device_;
  ValueId anchor_;
  std::vector<bool> in_front_;
  MatvecRows rows_;
  MatvecConfig config_;
  std::string front_;
  std::vector<SectionText> sections_;
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_matvec(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters,
                               const DeviceDescription& device) {
  return MatvecKernel(group, symbols, parameters, device).emit();
}

}  // namespace sinter
