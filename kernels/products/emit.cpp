// The kernel of a group around tiled_linear or tiled_codes: tensor maps of both operands, and an
// accessor of the result that holds the text of the epilogue. Where an epilogue has other elements
// than the product, or needs pairs of its rows, the accessor is called for chunks of 8 elements:
//
//   struct SectionsResult : PortMemory {
//     template <typename Rows>
//     SINTER_DEVICE void operator()(long long row, int matrix_row, const Rows& x2) const {
//       if (matrix_row < 8192) { ... load_chunk(v0, x2 + ...); ... store_chunk(y0 + ..., o0); }
//     }
//   };
#include "kernels/tile/emit.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "codegen/emission/packed_matrix.h"
#include "ir/block_sums.h"
#include "ir/decompose.h"
#include "ir/integers.h"
#include "ir/op_flops.h"
#include "kernels/common/sums_epilogue.h"
#include "kernels/products/layout.h"
#include "kernels/products/schedule.h"

namespace sinter {
namespace {

/// A tensor map without boxes of an operand's rows, or of the rows of its transpose.
TensorMap map_of(const EmitContext& context, ValueId id, const StridedMatrix& rows,
                 const SymExpr& length, const SymExpr& count) {
  return {.input = *input_of(context.group, id),
          .offset = rows.offset,
          .dims = {length, count},
          .strides = {rows.row_stride},
          .box = {},
          .swizzle = 2 * kTiledLinearDepth};
}

tl::unexpected<Error> undescribed() {
  return fail("a product reads a matrix that no tensor map describes", {}, {},
              ExitCode::internal_error);
}

/// The rows of an operand that tensor maps describe.
Result<TensorMap> operand_rows(const EmitContext& context, size_t operand) {
  const ValueId id = context.anchor_op().operands[operand];
  const auto rows = tensor_map_rows(context.group, id, context.symbols);
  if (!rows) return undescribed();
  const DimsRef dims = context.group[id].type.dims;
  return map_of(context, id, *rows, SymExpr(dims.back()), volume(dims.drop_back()));
}

/// The columns of the matrix that tensor maps describe.
Result<TensorMap> matrix_columns(const EmitContext& context) {
  const ValueId id = context.anchor_op().operands[1];
  const auto columns = tensor_map_columns(context.group, id, context.symbols);
  if (!columns) return undescribed();
  const DimsRef dims = context.group[id].type.dims;
  return map_of(context, id, *columns, SymExpr(dims[0]), SymExpr(dims[1]));
}

constexpr int64_t kPanel = kFewTokensPanelRow / 2;  // elements of 16 bits

/// Elements of a row of the matrix.
int64_t matrix_length(const Graph& group, const Op& op) {
  return op.kind == OpKind::quantized_linear ? op.attrs.get<Dim>(AttrName::size).constant()
                                             : group[op.operands[1]].type.dims[1].constant();
}

/// The text and launch of a kernel around tiled_linear or tiled_codes.
class TiledLinearKernel {
 public:
  explicit TiledLinearKernel(const EmitContext& context)
      : context_(context),
        op_(context.anchor_op()),
        tokens_(volume(DimsRef(op_.type.dims).drop_back())),
        columns_(op_.type.dims.back().constant()),
        length_(matrix_length(context.group, op_)) {}

  Result<KernelBody> emit() {
    const int64_t most = most_tokens(op_, context_.symbols);
    body_.minimum_arch = kFirstArchWithClusters;
    SINTER_LET(by_section, this->sections());
    const SumsEpilogue* sections = by_section ? &*by_section : nullptr;
    const int64_t pairs = sections && sections->rows().units == 2 ? sections->rows().stride : 0;
    if (op_.kind == OpKind::quantized_linear) {
      const auto config = codes_config(context_.group, op_, most, context_.device);
      if (!config) return unsupported();
      SINTER_TRY(write_codes(*config, sections, pairs));
    } else if (most <= kMostFewTokens) {
      const FewTokensProblem problem = few_tokens_problem(context_.group, op_, most);
      const auto config = few_tokens_config(problem, context_.device);
      if (!config) return unsupported();
      SINTER_TRY(write_few_tokens(*config, sections, pairs));
    } else {
      TiledLinearProblem problem =
          tiled_linear_problem(context_.group, op_, most, pairs, context_.symbols);
      problem.long_epilogue = !sections && columns_ % kFewTokensChunk == 0 &&
                              dtype_info(op_.type.dtype).bits == 16 &&
                              (has_long_epilogue() || has_sums());
      const auto config = tiled_linear_config(problem, context_.device);
      if (!config) return unsupported();
      SINTER_TRY(write_many_tokens(*config, problem, sections));
    }
    return std::move(body_);
  }

 private:
  tl::unexpected<Error> unsupported() const {
    return fail(fmt::format("Sinter's own product on tensor cores does not run on {}",
                            context_.device.name),
                {}, "compile for sm_90a");
  }

  Status write_many_tokens(const TiledLinearConfig& config, const TiledLinearProblem& problem,
                           const SumsEpilogue* sections) {
    const int64_t pairs = problem.pairs;
    SINTER_LET(x, many_tokens_map(0, config.rows / config.cluster));
    SINTER_LET(w, problem.transposed ? transposed_map()
                  : pairs > 0        ? paired_map(pairs, config.columns)
                                     : many_tokens_map(1, config.columns));
    body_.tensor_maps = {std::move(x), std::move(w)};
    body_.moves_registers = true;
    SINTER_TRY(write_common(
        "many", config.threads,
        ConfigText()
            .constant("kRows", config.rows)
            .constant("kColumns", config.columns)
            .constant("kDepth", kTiledLinearDepth)
            .constant("kStages", config.stages)
            .constant("kCluster", config.cluster)
            .constant("kEpilogueGroups", config.epilogue_groups)
            .constant("kInTurns", config.in_turns)
            .constant("kLoops",
                      config.in_turns && config.epilogue_groups == 0 && has_long_epilogue())
            .constant("kTransposed", problem.transposed)
            .constant("kSums", has_sums()),
        sections, pairs, true));
    body_.text = tile_text(
        ports_, call_text("multiply_matrices<Config>",
                          {"t0", "t1", bias_, rows_code(),
                           fmt::format("{}{{memory}}", result_type(sections)), "shared_memory"}));
    set_tile_launch(body_, context_.device,
                    {.work_tiles = (tokens_ + SymExpr(config.rows - 1)) *
                                   SymExpr(ceil_div(columns_, config.columns * config.cluster)),
                     .cluster = config.cluster,
                     .units_per_tile = config.rows,
                     .threads = config.threads,
                     .shared_bytes = config.shared_bytes,
                     .persistent = true});
    return {};
  }

  /// Whether the epilogue's text, once for each sum of a lane, is more than instruction caches
  /// hold.
  bool has_long_epilogue() const {
    const Graph primitives = decompose_all(context_.group, context_.symbols);
    int64_t count = 0;
    for (const Op& op : primitives.ops()) count += element_instructions(op);
    return count >= kLongEpilogue;
  }

  /// Whether an output is the sums of blocks of rows of a value of the epilogue.
  bool has_sums() const {
    const Graph& group = context_.group;
    return llvm::any_of(group.outputs,
                        [&](ValueId id) { return as_block_sums(group, id).has_value(); });
  }

  /// The epilogue where it takes sections of the matrix's rows: results have other elements than
  /// the product, or need pairs of rows. nullopt: it takes the result by chunk.
  Result<std::optional<SumsEpilogue>> sections() {
    const Graph& group = context_.group;
    const std::vector<bool> takes = takes_result(context_);
    llvm::SmallVector<ValueId, 4> results;
    bool by_chunk = true;
    for (ValueId output : group.outputs) {
      if (!takes[output.index] || as_block_sums(group, output)) continue;
      results.push_back(output);
      by_chunk &= volume(group[output].type.dims) == volume(op_.type.dims);
    }
    if (by_chunk && op_.type.rank() != 2) return std::optional<SumsEpilogue>{};
    auto sums = SumsEpilogue::create(group, context_.anchor->id, results, context_.symbols);
    if (by_chunk && (!sums || sums->rows().units == 1)) return std::optional<SumsEpilogue>{};
    if (!sums) return tl::make_unexpected(std::move(sums).error());
    return std::optional(*std::move(sums));
  }

  Status write_few_tokens(const FewTokensConfig& config, const SumsEpilogue* sections,
                          int64_t pairs) {
    SINTER_TRY(write_common("few", config.threads,
                            ConfigText().constant("kSharedBytes", config.stage_bytes), sections,
                            pairs));
    const bool early = write_early_matrix();
    SINTER_LET(calls, few_tokens_calls(config, pairs, early));
    write_few_tokens_text(early, "int", calls, sections);
    set_few_tokens_launch(config.blocks, config.threads,
                          config.stage_bytes + kFewTokensBarrierBytes);
    return {};
  }
  /// Whether the matrix is read before the wait, which the body then says.
  bool write_early_matrix() {
    const uint32_t matrix = *input_of(context_.group, op_.operands[1]);
    const bool early = llvm::is_contained(context_.overlap.early_inputs, matrix);
    body_.waits = context_.overlap.waits;
    if (early) body_.early_inputs = {matrix};
    return early;
  }
  void write_few_tokens_text(bool early, std::string_view count, std::string_view calls,
                             const SumsEpilogue* sections) {
    const Overlap& overlap = context_.overlap;
    const std::string text = fmt::format(
        "const auto wait = [] {{\n{}}};\nconst {} tokens = static_cast<{}>({});\n"
        "const {} result{{memory}};\n{}",
        overlap.waits ? indented(wait_text(overlap)) : "", count, count, rows_code(),
        result_type(sections), calls);
    body_.text = (early ? "fence_acq_rel_gpu();\n" : "") + tile_text(ports_, text);
  }
  void set_few_tokens_launch(int64_t blocks, int64_t threads, int64_t shared_bytes) {
    // No tokens, no blocks.
    body_.launch.rows = tokens_;
    body_.launch.items_per_row = blocks;
    body_.launch.threads = threads;
    body_.launch.shared_bytes = shared_bytes;
    body_.launch.most_blocks = blocks;
  }

  Status write_codes(const CodesConfig& config, const SumsEpilogue* sections, int64_t pairs) {
    const CodeFormat format = code_format(op_.attrs);
    SINTER_TRY(write_common("codes", config.threads,
                            ConfigText()
                                .type("Matrix", packed_matrix(format, length_))
                                .constant("kSharedBytes", config.stage_bytes)
                                .constant("kMostRows", config.rows),
                            sections, pairs));
    const bool early = write_early_matrix();
    SINTER_LET(matrix, OperandRows(context_).pointer(1));
    std::string calls;
    for (size_t i = 0; i < config.forms.size(); ++i) {
      const FewTokensForm& form = config.forms[i];
      SINTER_LET(x, many_tokens_map(0, form.columns));
      const size_t tokens = number_of(std::move(x));
      const int64_t box = std::min<int64_t>(form.rows, kFewTokensBox);
      SINTER_LET(codes, packed_map(kCodesPanelRow, kCodesPanelRow, box, pairs));
      // Rows with one scale have it in their tail.
      const int scale_bytes = codes_scale_bytes(format.layout());
      size_t scales = codes;
      if (scale_bytes > 0) {
        SINTER_LET(map, packed_map(scale_bytes, 0, box, pairs));
        scales = map;
      }
      calls += call_of_form(i, config.forms, "multiply_codes", early,
                            ConfigText(fmt::format("Form{}", i))
                                .constant("kRows", form.rows)
                                .constant("kColumns", form.columns),
                            {fmt::format("t{}", tokens), fmt::format("t{}", codes),
                             fmt::format("t{}", scales), matrix});
    }
    body_.moves_registers = true;
    write_few_tokens_text(early, "long long", calls, sections);
    set_few_tokens_launch(config.blocks, config.threads, config.stage_bytes + kCodesBarrierBytes);
    return {};
  }
  /// The number of the packed matrix's map in boxes of `bytes` and `box` rows.
  Result<size_t> packed_map(int64_t bytes, int64_t swizzle, int64_t box, int64_t pairs) {
    SINTER_LET(map, operand_rows(context_, 1));
    map.swizzle = swizzle;
    const int64_t words = bytes / 4;
    if (pairs > 0)
      interleave_pairs(map, pairs, box, words);
    else
      map.box = {words, box};
    return number_of(std::move(map));
  }

  /// The calls of the forms, each for its numbers of tokens; defines the forms.
  Result<std::string> few_tokens_calls(const FewTokensConfig& config, int64_t pairs, bool early) {
    std::string calls;
    for (size_t i = 0; i < config.forms.size(); ++i) {
      const FewTokensForm& form = config.forms[i];
      SINTER_LET(x, few_tokens_map(0, form.columns, form.depth));
      const int64_t box = std::min<int64_t>(form.rows, kFewTokensBox);
      SINTER_LET(w, pairs > 0 ? paired_number(pairs, box) : few_tokens_map(1, box, form.depth));
      calls += call_of_form(i, config.forms, "multiply_few_tokens", early,
                            ConfigText(fmt::format("Form{}", i))
                                .constant("kRows", form.rows)
                                .constant("kColumns", form.columns)
                                .constant("kDepth", form.depth),
                            {fmt::format("t{}", x), fmt::format("t{}", w)});
    }
    return calls;
  }

  /// Defines form `i` and calls `function` with it where there are at most as many tokens as the
  /// form is for. `operands`: the arguments before the bias.
  std::string call_of_form(size_t i, llvm::ArrayRef<FewTokensForm> forms, std::string_view function,
                           bool early, const ConfigText& form, std::vector<std::string> operands) {
    body_.globals += form.text();
    llvm::append_values(operands, bias_, "tokens", "result", "shared_memory", "wait");
    const std::string call =
        call_text(fmt::format("{}<Config, Form{}, {}>", function, i, early), operands);
    if (i + 1 == forms.size()) return call;
    return fmt::format("if (tokens <= {}) {}else ", forms[i].most_tokens, call);
  }

  /// The number of the map of an operand in boxes of `rows` rows and `depth` elements.
  Result<size_t> few_tokens_map(size_t operand, int64_t rows, int64_t depth) {
    SINTER_LET(map, operand_rows(context_, operand));
    const bool panels = few_tokens_panels(length_);
    if (panels) map.dims[0] = SymExpr(kPanel);
    map.dims.push_back(SymExpr(panels ? length_ / kPanel : 1));
    map.strides.push_back(SymExpr(kPanel));
    map.box = {kPanel, rows, depth / kPanel};
    return number_of(std::move(map));
  }
  /// The number of the matrix's map in boxes of pairs of rows `apart` (PairedRows, layout.h) and a
  /// panel. Dimensions: elements, rows of a chunk, both rows of a pair, chunks of a run, runs.
  Result<TensorMap> paired_map(int64_t apart, int64_t box) {
    SINTER_LET(map, operand_rows(context_, 1));
    interleave_pairs(map, apart, box, kPanel);
    return map;
  }
  void interleave_pairs(TensorMap& map, int64_t apart, int64_t box, int64_t elements) const {
    const SymExpr row = map.strides[0];
    const int64_t of_run = apart / kFewTokensChunk, chunks = box / 2 / kFewTokensChunk,
                  in_run = std::min(of_run, chunks);
    map.dims = {map.dims[0], SymExpr(kFewTokensChunk), SymExpr(2), SymExpr(of_run),
                SymExpr(columns_ / (2 * apart))};
    map.strides = {row, row * SymExpr(apart), row * SymExpr(kFewTokensChunk),
                   row * SymExpr(2 * apart)};
    map.box = {elements, kFewTokensChunk, 2, in_run, chunks / in_run};
  }
  Result<size_t> paired_number(int64_t apart, int64_t box) {
    SINTER_LET(map, paired_map(apart, box));
    return number_of(std::move(map));
  }
  Result<TensorMap> many_tokens_map(size_t operand, int64_t rows) const {
    SINTER_LET(map, operand_rows(context_, operand));
    map.box = {kTiledLinearDepth, rows};
    return map;
  }
  Result<TensorMap> transposed_map() const {
    SINTER_LET(map, matrix_columns(context_));
    map.box = {kTransposedPanel, kTiledLinearDepth};
    return map;
  }
  size_t number_of(TensorMap map) {
    const auto same = [&](const TensorMap& other) {
      return other.input == map.input && other.offset == map.offset && other.dims == map.dims &&
             other.strides == map.strides && other.box == map.box && other.swizzle == map.swizzle;
    };
    const auto found = llvm::find_if(body_.tensor_maps, same);
    const auto number = static_cast<size_t>(found - body_.tensor_maps.begin());
    if (number == body_.tensor_maps.size()) body_.tensor_maps.push_back(std::move(map));
    return number;
  }

  /// Writes includes, ports and Config: `constants` of the file's kernels, and the members that all
  /// kernels have.
  Status write_common(std::string_view file, int64_t threads, ConfigText constants,
                      const SumsEpilogue* sections, int64_t pairs, bool loads_ahead = false) {
    if (op_.operands.size() == 3) {
      SINTER_LET(pointer, OperandRows(context_).pointer(2));
      bias_ = std::move(pointer);
    }
    SINTER_LET(ports, sections ? emit_operand_ports(context_, threads)
                               : emit_ports(context_, threads, loads_ahead));
    ports_ = std::move(ports);
    if (sections) SINTER_TRY(write_sections(*sections));
    body_.includes += fmt::format("#include \"kernels/products/{}.cuh\"\n", file) + ports_.includes;
    body_.globals = ports_.memory + ports_.accessors + ports_.store_globals;
    body_.globals +=
        constants.type("Element", memory_type(context_.group[op_.operands[0]].type.dtype))
            .type("ResultElement", memory_type(op_.type.dtype))
            .constant("kLength", length_)
            .constant("kResultColumns", columns_)
            .constant("kPairs", pairs)
            .constant("kBias", op_.operands.size() == 3)
            .constant("kSections", sections != nullptr)
            .text() +
        "\n";
    return {};
  }

  /// Defines SectionsResult.
  Status write_sections(const SumsEpilogue& sections) {
    SINTER_LET(text, sections.emit(context_.parameters, SumsEpilogue::Access::chunk));
    ports_.accessors += text.globals;
    ports_.accessors += fmt::format(
        "struct SectionsResult : PortMemory {{\n"
        "  template <typename Rows>\n"
        "  SINTER_DEVICE void operator()(long long row, int matrix_row, const Rows& x{}) const "
        "{{\n{}  }}\n"
        "}};\n",
        sections.inputs(), indented(indented(sections.of_matrix_row(text.sections))));
    return {};
  }
  static std::string_view result_type(const SumsEpilogue* sections) {
    return sections ? "SectionsResult" : "PortResult";
  }
  std::string rows_code() const { return size_code(tokens_, context_.parameters, false); }

  const EmitContext& context_;
  const Op& op_;
  SymExpr tokens_;
  int64_t columns_, length_;
  std::string bias_ = "nullptr";
  PortText ports_;
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_tiled_linear(const EmitContext& context) {
  return TiledLinearKernel(context).emit();
}

}  // namespace sinter
