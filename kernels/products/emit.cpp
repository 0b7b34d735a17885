// The kernel of a group around tiled_linear, tiled_codes, grouped_linear or grouped_outer: tensor
// maps of both operands, and an accessor of the result that holds the text of the epilogue. Where
// an epilogue has other elements than the product, or needs pairs of its rows, the accessor is
// called for chunks of 8 elements:
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
#include "ir/decompose.h"
#include "ir/integers.h"
#include "ir/op_flops.h"
#include "ir/side_results.h"
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
          .swizzle = kPanelRow};
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

/// The columns of the matrix, or of the first of several, that tensor maps describe.
Result<TensorMap> matrix_columns(const EmitContext& context) {
  const ValueId id = context.anchor_op().operands[1];
  const auto columns = tensor_map_columns(context.group, id, context.symbols);
  if (!columns) return undescribed();
  const DimsRef dims = DimsRef(context.group[id].type.dims).take_back(2);
  return map_of(context, id, *columns, SymExpr(dims[0]), SymExpr(dims[1]));
}

/// Instructions of an epilogue for an element from which on it is long (bench/log/products.md,
/// "Narrow products with epilogues" and "Epilogues").
constexpr int64_t kLongEpilogue = 20;

/// The text and launch of a kernel around such an op.
class ProductKernel {
 public:
  ProductKernel(const EmitContext& context, std::string_view steps)
      : context_(context),
        steps_(steps),
        op_(context.anchor_op()),
        product_(product_of(context.group, op_, context.symbols)) {}

  Result<KernelBody> emit() {
    body_.minimum_arch = kFirstArchWithClusters;
    SINTER_LET(by_section, this->sections());
    sections_ = by_section ? &*by_section : nullptr;
    if (sections_ && sections_->rows().units == 2)
      product_.epilogue.pairs = sections_->rows().stride;
    if (product_.loop() == Product::Loop::many)
      product_.epilogue.is_long =
          !sections_ && product_.groups.count == 0 && product_.matrix.rows % kRowChunk == 0 &&
          dtype_info(op_.type.dtype).bits == 16 && (has_long_epilogue() || has_sums());
    const auto config = product_config(product_, context_.device);
    if (!config)
      return fail(fmt::format("Sinter's own product on tensor cores does not run on {}",
                              context_.device.name),
                  {}, "compile for sm_90a");
    switch (product_.loop()) {
      case Product::Loop::many:
        SINTER_TRY(write_many(*config));
        break;
      case Product::Loop::few:
        SINTER_TRY(write_few(*config));
        break;
      case Product::Loop::codes:
        SINTER_TRY(write_codes(*config));
        break;
    }
    return std::move(body_);
  }

 private:
  Status write_many(const ProductConfig& config) {
    const ProductTile& tile = config.tile();
    const bool transposed = product_.matrix.form == Product::Matrix::Form::transposed;
    const int64_t summed_rows = product_.groups.summed_rows;
    SINTER_LET(x, rows_map(0, summed_rows > 0 ? tile.depth : tile.tokens / config.cluster));
    SINTER_LET(w, summed_rows > 0               ? rows_map(1, tile.depth)
                  : transposed                  ? transposed_map(tile.depth)
                  : product_.epilogue.pairs > 0 ? paired_map(tile.matrix_rows)
                                                : rows_map(1, tile.matrix_rows));
    body_.tensor_maps = {std::move(x), std::move(w)};
    body_.moves_registers = true;
    SINTER_TRY(write_common(
        "many", config.threads,
        ConfigText()
            .constant("kRows", tile.tokens)
            .constant("kColumns", tile.matrix_rows)
            .constant("kDepth", tile.depth)
            .constant("kStages", config.stages)
            .constant("kCluster", config.cluster)
            .constant("kEpilogueGroups", config.epilogue_groups)
            .constant("kInTurns", config.in_turns)
            .constant("kLoops",
                      config.in_turns && config.epilogue_groups == 0 && has_long_epilogue())
            .constant("kTransposed", transposed)
            .constant("kSummedRows", summed_rows)
            .constant("kSums", has_sums())
            .type("Steps", steps_),
        true));
    body_.text = tile_text(ports_, call_text("multiply_matrices<Config>",
                                             with_ends({"t0", "t1", bias_, rows_code(),
                                                        fmt::format("{}{{memory}}", result_type()),
                                                        "shared_memory"})));
    set_tile_launch(
        body_, context_.device,
        {.work_tiles =
             (product_.tokens.count + SymExpr((product_.groups.count + 1) * tile.tokens - 1)) *
             SymExpr(ceil_div(product_.matrix.rows, tile.matrix_rows * config.cluster)),
         .cluster = config.cluster,
         .units_per_tile = tile.tokens,
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
      // An append stores other elements than its state has, even where these are as many.
      by_chunk &= op_class(group[output]) != OpClass::append &&
                  volume(group[output].type.dims) == volume(op_.type.dims);
    }
    if (op_.kind == OpKind::grouped_outer) return std::optional<SumsEpilogue>{};
    auto sums = SumsEpilogue::create(group, context_.anchor->id, results, context_.symbols);
    if (by_chunk && (!sums || sums->rows().units == 1)) return std::optional<SumsEpilogue>{};
    if (!sums) return tl::make_unexpected(std::move(sums).error());
    return std::optional(*std::move(sums));
  }

  Status write_few(const ProductConfig& config) {
    SINTER_TRY(write_common(
        "few", config.threads,
        ConfigText().constant("kSharedBytes", config.shared_bytes).type("Steps", steps_)));
    const bool early = write_early_matrix();
    std::string calls;
    for (size_t i = 0; i < config.forms.size(); ++i) {
      const ProductTile& tile = config.forms[i].tile;
      SINTER_LET(x, panels_map(0, tile.tokens, tile.depth));
      const bool shares = config.forms[i].shares;
      const int64_t box = shares ? kShareRows : std::min<int64_t>(tile.matrix_rows, kMatrixBox);
      SINTER_LET(w, product_.epilogue.pairs > 0 ? paired_map(box)
                                                : panels_map(1, box, shares ? kPanel : tile.depth));
      const std::string of_x = map_name(std::move(x)), of_w = map_name(std::move(w));
      calls += call_of_form(
          i, config.forms, "multiply_few_tokens", early,
          form_text(i, tile).constant("kDepth", tile.depth).constant("kShares", shares),
          {of_x, of_w});
    }
    write_branches(early, "int", calls);
    set_launch(config, kFewBarrierBytes);
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
  /// The calls of the forms; `count`: the type of the number of tokens.
  void write_branches(bool early, std::string_view count, std::string_view calls) {
    const Overlap& overlap = context_.overlap;
    const std::string text = fmt::format(
        "const auto wait = [] {{\n{}}};\nconst {} tokens = static_cast<{}>({});\n"
        "const {} result{{memory}};\n{}",
        overlap.waits ? indented(wait_text(overlap)) : "", count, count, rows_code(), result_type(),
        calls);
    body_.text = (early ? "fence_acq_rel_gpu();\n" : "") + tile_text(ports_, text);
  }
  void set_launch(const ProductConfig& config, int64_t barrier_bytes) {
    // No tokens, no blocks.
    body_.launch.rows = product_.tokens.count;
    body_.launch.items_per_row = config.blocks;
    body_.launch.threads = config.threads;
    body_.launch.shared_bytes = config.shared_bytes + barrier_bytes;
    body_.launch.most_blocks = config.blocks;
  }

  Status write_codes(const ProductConfig& config) {
    const CodeFormat& format = product_.matrix.format;
    SINTER_TRY(write_common("codes", config.threads,
                            ConfigText()
                                .type("Matrix", packed_matrix(format, product_.matrix.length))
                                .constant("kSharedBytes", config.shared_bytes)
                                .constant("kMostRows", config.most_matrix_rows())));
    const bool early = write_early_matrix();
    SINTER_LET(matrix, OperandRows(context_).pointer(1));
    std::string calls;
    for (size_t i = 0; i < config.forms.size(); ++i) {
      const ProductTile& tile = config.forms[i].tile;
      SINTER_LET(x, rows_map(0, tile.tokens));
      const int64_t box = std::min<int64_t>(tile.matrix_rows, kMatrixBox);
      SINTER_LET(codes, packed_map(kPanelRow, kPanelRow, box));
      std::vector<std::string> operands = {map_name(std::move(x)), map_name(std::move(codes))};
      // Rows with one scale have it in their tail.
      const int scale_bytes = codes_scale_bytes(format.layout());
      if (scale_bytes > 0) {
        SINTER_LET(scales, packed_map(scale_bytes, 0, box));
        operands.push_back(map_name(std::move(scales)));
      } else {
        operands.push_back(operands.back());
      }
      operands.push_back(matrix);
      calls += call_of_form(i, config.forms, "multiply_codes", early, form_text(i, tile),
                            std::move(operands));
    }
    body_.moves_registers = true;
    write_branches(early, "long long", calls);
    set_launch(config, kCodesBarrierBytes);
    return {};
  }

  static ConfigText form_text(size_t i, const ProductTile& tile) {
    ConfigText text(fmt::format("Form{}", i));
    text.constant("kRows", tile.matrix_rows).constant("kColumns", tile.tokens);
    return text;
  }
  /// Defines form `i` and calls `function` with it where there are at most as many tokens as the
  /// form is for. `operands`: the arguments before the bias.
  std::string call_of_form(size_t i, llvm::ArrayRef<ProductForm> forms, std::string_view function,
                           bool early, const ConfigText& form, std::vector<std::string> operands) {
    body_.globals += form.text();
    llvm::append_values(operands, bias_, "tokens", "result", "shared_memory", "wait");
    const std::string call = call_text(fmt::format("{}<Config, Form{}, {}>", function, i, early),
                                       with_ends(std::move(operands)));
    if (i + 1 == forms.size()) return call;
    return fmt::format("if (tokens <= {}) {}else ", forms[i].most_tokens, call);
  }

  /// An operand in boxes of `rows` rows and a panel.
  Result<TensorMap> rows_map(size_t operand, int64_t rows) const {
    SINTER_LET(map, operand_rows(context_, operand));
    map.box = {kPanel, rows};
    return map;
  }
  /// An operand in boxes of `rows` rows and `depth` elements, in panels.
  Result<TensorMap> panels_map(size_t operand, int64_t rows, int64_t depth) const {
    SINTER_LET(map, operand_rows(context_, operand));
    const bool panels = has_whole_panels(product_.matrix.length);
    if (panels) map.dims[0] = SymExpr(kPanel);
    map.dims.push_back(SymExpr(panels ? product_.matrix.length / kPanel : 1));
    map.strides.push_back(SymExpr(kPanel));
    map.box = {kPanel, rows, depth / kPanel};
    return map;
  }
  /// The matrix in boxes of pairs of rows and a panel.
  Result<TensorMap> paired_map(int64_t box) const {
    SINTER_LET(map, operand_rows(context_, 1));
    interleave_pairs(map, box, kPanel);
    return map;
  }
  /// The packed matrix in boxes of `bytes` and `box` rows.
  Result<TensorMap> packed_map(int64_t bytes, int64_t swizzle, int64_t box) const {
    SINTER_LET(map, operand_rows(context_, 1));
    map.swizzle = swizzle;
    const int64_t words = bytes / 4;
    if (product_.epilogue.pairs > 0)
      interleave_pairs(map, box, words);
    else
      map.box = {words, box};
    return map;
  }
  /// The columns of the matrix in boxes of a panel of them and `depth` elements. Matrices of runs
  /// are a dimension of their own: a box has elements of one.
  Result<TensorMap> transposed_map(int64_t depth) const {
    SINTER_LET(map, matrix_columns(context_));
    map.box = {kPanel, depth};
    if (product_.groups.count > 0) {
      map.dims.push_back(SymExpr(product_.groups.count));
      map.strides.push_back(map.strides[0] * SymExpr(product_.matrix.length));
      map.box.push_back(1);
    }
    return map;
  }
  /// Boxes of `box` rows of the matrix in pairs (PairedRows, layout.h) and of `elements` of each.
  /// Dimensions: elements, rows of a chunk, both rows of a pair, chunks of a run, runs.
  void interleave_pairs(TensorMap& map, int64_t box, int64_t elements) const {
    const int64_t apart = product_.epilogue.pairs;
    const SymExpr row = map.strides[0];
    const int64_t of_run = apart / kRowChunk, chunks = box / 2 / kRowChunk,
                  in_run = std::min(of_run, chunks);
    const int64_t rows = product_.matrix.rows * std::max<int64_t>(1, product_.groups.count);
    map.dims = {map.dims[0], SymExpr(kRowChunk), SymExpr(2), SymExpr(of_run),
                SymExpr(rows / (2 * apart))};
    map.strides = {row, row * SymExpr(apart), row * SymExpr(kRowChunk), row * SymExpr(2 * apart)};
    map.box = {elements, kRowChunk, 2, in_run, chunks / in_run};
  }
  /// The kernel's parameter with this map.
  std::string map_name(TensorMap map) {
    const auto same = [&](const TensorMap& other) {
      return other.input == map.input && other.offset == map.offset && other.dims == map.dims &&
             other.strides == map.strides && other.box == map.box && other.swizzle == map.swizzle;
    };
    const auto found = llvm::find_if(body_.tensor_maps, same);
    const auto number = static_cast<size_t>(found - body_.tensor_maps.begin());
    if (number == body_.tensor_maps.size()) body_.tensor_maps.push_back(std::move(map));
    return fmt::format("t{}", number);
  }

  /// Writes includes, ports and Config: `constants` of the file's kernels, and the members that all
  /// kernels have.
  Status write_common(std::string_view file, int64_t threads, ConfigText constants,
                      bool loads_ahead = false) {
    if (op_.operands.size() == 3) {
      SINTER_LET(pointer, OperandRows(context_).pointer(2));
      (has_bias() ? bias_ : ends_) = std::move(pointer);
    }
    SINTER_LET(ports, sections_ ? emit_operand_ports(context_, threads)
                                : emit_ports(context_, threads, loads_ahead));
    ports_ = std::move(ports);
    if (sections_) SINTER_TRY(write_sections(*sections_));
    body_.includes += fmt::format("#include \"kernels/products/{}.cuh\"\n", file) + ports_.includes;
    body_.globals = ports_.memory + ports_.accessors + ports_.store_globals;
    body_.globals += constants.type("Element", memory_type(product_.elements))
                         .type("ResultElement", memory_type(op_.type.dtype))
                         .constant("kLength", product_.matrix.length)
                         .constant("kResultColumns", product_.matrix.rows)
                         .constant("kPairs", product_.epilogue.pairs)
                         .constant("kGroups", product_.groups.count)
                         .constant("kBias", has_bias())
                         .constant("kSections", sections_ != nullptr)
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
  bool has_bias() const { return op_.operands.size() == 3 && product_.groups.count == 0; }
  /// The arguments of a kernel's function, and the ends of runs behind them.
  std::vector<std::string> with_ends(std::vector<std::string> arguments) const {
    if (product_.groups.count > 0) arguments.push_back(ends_);
    return arguments;
  }
  std::string_view result_type() const { return sections_ ? "SectionsResult" : "PortResult"; }
  /// The number of rows of the first operand.
  std::string rows_code() const {
    const Dims& dims = context_.group[op_.operands[0]].type.dims;
    return size_code(volume(DimsRef(dims).drop_back()), context_.parameters, false);
  }

  const EmitContext& context_;
  std::string_view steps_;  // Config's Steps
  const Op& op_;
  Product product_;
  const SumsEpilogue* sections_ = nullptr;  // nullptr: the epilogue takes the result by chunk
  std::string bias_ = "nullptr", ends_;
  PortText ports_;
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_product(const EmitContext& context, std::string_view steps) {
  return ProductKernel(context, steps).emit();
}

}  // namespace sinter
