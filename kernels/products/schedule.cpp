#include "kernels/products/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/integers.h"
#include "kernels/cost.h"
#include "kernels/products/layout.h"
#include "kernels/products/order.h"
#include "kernels/tile/config.h"
#include "kernels/tile/layout.h"

namespace sinter {
namespace {

constexpr int64_t kDeclaredBytes = 1024;  // barriers, and the alignment of the tiles
constexpr int64_t kLeastStages = 3, kMostStages = 6;

constexpr int64_t kTileCluster = 2, kWarpgroupThreads = 128;
/// Tiles of many tokens: the sums of a warpgroup fit into its registers. With 112 columns some
/// numbers of tiles leave fewer multiprocessors idle.
constexpr struct {
  int64_t rows, columns;
  bool in_turns;
} kTiles[] = {{256, 128, false}, {256, 112, false}, {192, 192, false},
              {192, 128, false}, {128, 256, false}, {128, 192, false},
              {128, 128, false}, {128, 64, false},  {128, 128, true}};
/// Warpgroups of a long epilogue: its instructions take about as long as the tile's products.
constexpr int64_t kEpilogueGroups = 2;
/// Columns of tiles of pairs of rows of the matrix: two neighbouring lanes have both of a pair.
constexpr int64_t kPairedBoxes[] = {64, 128};
/// Between two tiles: the epilogue and the wait for the first stage, about 4,000 clocks, in
/// multiplications, of which a multiprocessor has 2,048 in a clock.
constexpr int64_t kBetweenTiles = int64_t{4000} * 2048;

/// Whether a box of `box` rows of the matrix has whole runs of pairs `apart` (PairedRows).
bool has_whole_runs(int64_t box, int64_t apart) {
  const int64_t chunks = box / 2 / kFewTokensChunk, of_stride = apart / kFewTokensChunk;
  return chunks % of_stride == 0 || of_stride % chunks == 0;
}

/// The cost of the slowest cluster, in multiplications: its tiles, the rows that it copies, and the
/// time between tiles.
int64_t many_tokens_cost(const TiledLinearConfig& config, const TiledLinearProblem& problem,
                         int64_t multiprocessors) {
  const int64_t tiles = ceil_div(problem.rows, config.rows) *
                        ceil_div(problem.columns, config.columns * config.cluster);
  const int64_t rounds = ceil_div(tiles, multiprocessors / config.cluster);
  const int64_t of_tile =
      (config.rows * config.columns + kElementsOfRow * (config.rows + config.columns)) *
      problem.length;
  if (!config.in_turns) return rounds * (of_tile + kBetweenTiles);
  // One warpgroup multiplies while the other is between tiles.
  return rounds * std::max(of_tile, (of_tile + kBetweenTiles) / 2) + kBetweenTiles;
}

constexpr int64_t kTileAlignment = 1024;
constexpr int64_t kTensorMapRowBytes = 16;  // rows begin at multiples of it
// The times of codes_time(): of a window, and in it of a warpgroup and of each of its tokens; bytes
// that a multiprocessor gets in a clock.
constexpr double kWindowClocks = 272, kPairClocks = 78, kColumnClocks = 1.75;
constexpr double kMemoryBytesPerClock = 14, kCacheBytesPerClock = 40;
// Rows of the matrix in a box of its tensor map: of the smallest tiles, and of the others.
constexpr int64_t kBoxes[] = {32, kFewTokensBox};
// A warpgroup's sums of 256 columns leave registers for two such warpgroups.
constexpr int64_t kTwoWarpgroupColumns = 256;

/// The rows of either operand that the slowest block copies: a multiprocessor copies at a limited
/// rate, which the matrix alone does not reach.
int64_t few_tokens_cost(const FewTokensForm& form, int64_t rows, int64_t multiprocessors) {
  return ceil_div(form.tiles(rows), multiprocessors) * (form.rows + form.columns);
}

bool is_few_tokens_form(int64_t rows, int64_t columns, int64_t most_rows) {
  // With few columns memory is the bound, and one warpgroup with deep stages keeps up with it.
  if (columns <= 64) return rows <= 64;
  return rows >= 64 && rows <= most_rows && (rows <= 128 || columns < kTwoWarpgroupColumns);
}

/// The form of the least cost for up to `tokens` tokens.
FewTokensForm few_tokens_form(int64_t tokens, int64_t rows, int64_t length, int64_t most_rows,
                              int64_t multiprocessors) {
  FewTokensForm best;
  for (int64_t columns = tokens; columns >= std::min<int64_t>(tokens, 32); columns /= 2)
    for (const int64_t of_tile : {64, 32, 128, 192}) {
      if (!is_few_tokens_form(of_tile, columns, most_rows)) continue;
      const bool deep = of_tile <= 64 && columns < 256 && few_tokens_panels(length);
      const FewTokensForm form{tokens, of_tile, columns, deep ? 128 : 64};
      if (best.rows == 0 || few_tokens_cost(form, rows, multiprocessors) <
                                few_tokens_cost(best, rows, multiprocessors))
        best = form;
    }
  return best;
}

std::vector<FewTokensForm> few_tokens_forms(const FewTokensProblem& problem, int64_t most_rows,
                                            int64_t multiprocessors) {
  std::vector<FewTokensForm> forms;
  for (int64_t most = problem.tokens <= 16 ? 16 : 32;; most *= 2) {
    const auto form =
        few_tokens_form(most, problem.rows, problem.length, most_rows, multiprocessors);
    if (!forms.empty() && forms.back().has_tiles_of(form))
      forms.back().most_tokens = most;
    else
      forms.push_back(form);
    if (most >= problem.tokens) return forms;
  }
}

/// Clocks of the slowest block for 64 columns of K, measured: pairs of codes and products of its
/// warpgroups, or the copies. A matrix that is read once comes from memory.
double codes_time(const FewTokensForm& form, int64_t rows, int64_t bits, int64_t multiprocessors) {
  const auto columns = static_cast<double>(form.columns);
  const auto warpgroups = static_cast<double>(ceil_div(form.rows, int64_t{64}));
  const bool once = form.most_tokens <= form.columns;
  const double copies = static_cast<double>(form.rows * 8 * bits) /
                            (once ? kMemoryBytesPerClock : kCacheBytesPerClock) +
                        128 * columns / kCacheBytesPerClock;
  const double of_tile =
      std::max(kWindowClocks + warpgroups * (kPairClocks + kColumnClocks * columns), copies);
  return static_cast<double>(ceil_div(form.tiles(rows), multiprocessors)) * of_tile;
}

/// The most columns of a kernel with tiles of up to `rows` rows: the sums, two sets of them for
/// groups, are in registers.
int64_t most_codes_columns(int64_t rows, const CodeLayout& layout) {
  return rows > 128 ? 128 : layout.group > 0 ? 192 : 256;
}

/// The least stages fit into `bytes`.
bool codes_fit(const FewTokensForm& form, const CodeLayout& layout, int64_t bytes) {
  const CodesStages stages =
      codes_stages(static_cast<int>(bytes), codes_stage_bytes(layout, static_cast<int>(form.rows)),
                   tile_bytes(static_cast<int>(form.columns), kCodesWindow));
  return stages.codes >= 2 && stages.tokens >= kLeastStages;
}

/// The form of least time for up to `tokens` tokens whose stages have `bytes`; of a kernel with
/// tiles of up to `most_rows` rows. No rows: none fits.
FewTokensForm codes_form(int64_t tokens, int64_t rows, int64_t most_rows, const CodeLayout& layout,
                         int64_t bytes, int64_t multiprocessors) {
  FewTokensForm best;
  double least = INFINITY;
  for (const int64_t columns : {16, 32, 64, 128, 160, 192, 256})
    for (const int64_t of_tile : {64, 32, 128, 192}) {
      if (columns > std::max<int64_t>(16, tokens) || of_tile > most_rows ||
          columns > most_codes_columns(most_rows, layout))
        continue;
      const FewTokensForm form{tokens, of_tile, columns, 0};
      if (!codes_fit(form, layout, bytes)) continue;
      const double clocks = codes_time(form, rows, layout.bits, multiprocessors);
      if (clocks < 0.99 * least) best = form, least = clocks;
    }
  return best;
}

}  // namespace

std::optional<CodesConfig> codes_config(const Graph& graph, const Op& product, int64_t tokens,
                                        const DeviceDescription& device) {
  if (!device.has.wgmma) return std::nullopt;
  const CodeFormat format = code_format(product.attrs);
  const int64_t rows = graph[product.operands[1]].type.dims[0].constant();
  CodesConfig config;
  const int64_t fit = device.max_shared_bytes - kDeclaredBytes - kCodesBarrierBytes;
  config.stage_bytes = fit / kTileAlignment * kTileAlignment;
  const auto form_of = [&](int64_t most, int64_t most_rows) {
    return codes_form(most, rows, most_rows, format.layout(), config.stage_bytes,
                      device.multiprocessors);
  };
  // The most tokens decide which tiles the kernel has.
  const FewTokensForm wide = form_of(tokens, 128), tall = form_of(tokens, 192);
  const auto time = [&](const FewTokensForm& form) {
    return form.rows == 0 ? INFINITY
                          : codes_time(form, rows, format.bits(), device.multiprocessors);
  };
  const int64_t most_rows = time(tall) < time(wide) ? 192 : 128;
  // Few tokens have a form for each power of two; for more the kernel would take long to compile.
  const int64_t factor = tokens <= kMostFewTokens ? 2 : 4;
  for (int64_t most = tokens <= 16 ? 16 : 32;; most *= factor) {
    if (most > kMostFewTokens) most = tokens;
    const FewTokensForm form = form_of(most, most_rows);
    if (form.rows == 0) return std::nullopt;
    if (!config.forms.empty() && config.forms.back().has_tiles_of(form))
      config.forms.back().most_tokens = most;
    else
      config.forms.push_back(form);
    if (most >= tokens) break;
  }
  for (const FewTokensForm& form : config.forms) {
    config.rows = std::max<int64_t>({64, config.rows, form.rows});
    config.blocks = std::max(config.blocks, form.tiles(rows));
  }
  config.threads = 2 * config.rows + kWarpgroupThreads;
  config.blocks = std::min(config.blocks, device.multiprocessors);
  return config;
}

TiledLinearProblem tiled_linear_problem(const Graph& graph, const Op& product, int64_t tokens,
                                        int64_t pairs, llvm::ArrayRef<Symbol> symbols) {
  const ValueId id = product.operands[1];
  const Dims& matrix = graph[id].type.dims;
  return {.rows = tokens,
          .columns = matrix[0].constant(),
          .length = matrix[1].constant(),
          .pairs = pairs,
          .transposed = !tensor_map_rows(graph, id, symbols).has_value()};
}

std::optional<TiledLinearConfig> tiled_linear_config(const TiledLinearProblem& problem,
                                                     const DeviceDescription& device) {
  if (!device.has.wgmma || (problem.pairs > 0 && problem.transposed)) return std::nullopt;
  const auto cost = [&](const TiledLinearConfig& config) {
    return many_tokens_cost(config, problem, device.multiprocessors);
  };
  TiledLinearConfig best;
  for (const auto& tile : kTiles) {
    if (problem.transposed && tile.columns % kTransposedPanel != 0) continue;
    if (problem.long_epilogue && !tile.in_turns) continue;
    if (problem.pairs > 0 && !(llvm::is_contained(kPairedBoxes, tile.columns) &&
                               has_whole_runs(tile.columns, problem.pairs)))
      continue;
    const bool clusters = problem.columns > tile.columns && device.multiprocessors >= kTileCluster;
    const int64_t epilogue_groups = problem.long_epilogue ? kEpilogueGroups : 0;
    const TiledLinearConfig config{
        .rows = tile.rows,
        .columns = tile.columns,
        .in_turns = tile.in_turns,
        .epilogue_groups = epilogue_groups,
        .cluster = clusters ? kTileCluster : 1,
        .threads = 2 * tile.rows + (1 + epilogue_groups) * kWarpgroupThreads};
    if (best.rows == 0 || cost(config) < cost(best)) best = config;
  }
  if (best.rows == 0) return std::nullopt;
  const int64_t stage =
      tile_bytes(static_cast<int>(best.rows + best.columns), static_cast<int>(kTiledLinearDepth));
  const int64_t results =
      best.epilogue_groups == 0
          ? 0
          : 2 * tile_bytes(static_cast<int>(best.rows), static_cast<int>(best.columns));
  const auto stages = stages_that_fit(device.max_shared_bytes - kDeclaredBytes - results, stage,
                                      kLeastStages, kMostStages);
  if (!stages) return std::nullopt;
  best.stages = *stages;
  best.shared_bytes = *stages * stage + results;
  return best;
}

int64_t most_tokens(const Op& product, llvm::ArrayRef<Symbol> symbols) {
  return std::max<int64_t>(1, volume(DimsRef(product.type.dims).drop_back()).upper_bound(symbols));
}

int64_t FewTokensForm::tiles(int64_t matrix_rows) const {
  return ceil_div(matrix_rows, rows) * ceil_div(most_tokens, columns);
}

FewTokensProblem few_tokens_problem(const Graph& graph, const Op& product, int64_t tokens) {
  const Dims& matrix = graph[product.operands[1]].type.dims;
  return {.tokens = tokens, .rows = matrix[0].constant(), .length = matrix[1].constant()};
}

bool tiled_linear_takes(const ColocatedRows& rows, int64_t tokens) {
  const auto whole = [](int64_t of_rows) { return of_rows % kFewTokensChunk == 0; };
  for (const ColocatedRows::Section& section : rows.sections)
    if (!whole(section.first) || !whole(section.width)) return false;
  if (rows.units == 1) return true;
  if (rows.units > 2 || !whole(rows.stride)) return false;
  const auto has_runs = [&](int64_t box) { return has_whole_runs(box, rows.stride); };
  return tokens <= kMostFewTokens ? llvm::all_of(kBoxes, has_runs)
                                  : llvm::any_of(kPairedBoxes, has_runs);
}

std::optional<FewTokensConfig> few_tokens_config(const FewTokensProblem& problem,
                                                 const DeviceDescription& device) {
  if (!device.has.wgmma) return std::nullopt;
  const auto forms_of = [&](int64_t most_rows) {
    return few_tokens_forms(problem, most_rows, device.multiprocessors);
  };
  FewTokensConfig config{.forms = forms_of(192)};
  if (config.forms.back().columns == kTwoWarpgroupColumns) config.forms = forms_of(128);
  int64_t most_rows = 0, stage = 0;
  for (const FewTokensForm& form : config.forms) {
    most_rows = std::max<int64_t>({64, most_rows, form.rows});
    config.blocks = std::max(config.blocks, form.tiles(problem.rows));
    stage = std::max<int64_t>(stage, tile_bytes(static_cast<int>(form.rows + form.columns),
                                                static_cast<int>(form.depth)));
  }
  // One warpgroup for 64 rows, and two warps that copy.
  config.threads = most_rows * 2 + 64;
  const int64_t fit = device.max_shared_bytes - kDeclaredBytes - kFewTokensBarrierBytes;
  config.stage_bytes = fit / kTileAlignment * kTileAlignment;
  config.blocks = std::min(config.blocks, device.multiprocessors);
  if (config.stage_bytes < kLeastStages * stage) return std::nullopt;
  return config;
}

namespace {

/// Rows begin at multiples of kTensorMapRowBytes.
bool has_aligned_rows(const StridedMatrix& rows, DType dtype, llvm::ArrayRef<Symbol> symbols) {
  const auto aligned = [&](const SymExpr& elements) {
    return elements.divisor(symbols) * whole_bytes(dtype) % kTensorMapRowBytes == 0;
  };
  return rows.column_stride.is(1) && aligned(rows.row_stride) && aligned(rows.offset);
}

}  // namespace

std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols) {
  const TensorType& type = graph[id].type;
  std::optional<StridedMatrix> rows;
  if (type.rank() == 2)
    rows = strided_rows(graph, id);
  else if (is_dense(graph, id))
    rows = {root_of(graph, id), 0, SymExpr(type.dims.back()), 1};
  if (!rows || !has_aligned_rows(*rows, type.dtype, symbols)) return std::nullopt;
  return rows;
}

std::optional<StridedMatrix> tensor_map_columns(const Graph& graph, ValueId id,
                                                llvm::ArrayRef<Symbol> symbols) {
  const TensorType& type = graph[id].type;
  if (type.rank() != 2) return std::nullopt;
  const auto view = strided_view(graph, id, type.dims);
  if (!view) return std::nullopt;
  const StridedMatrix columns{view->root, view->offset, view->strides[1], view->strides[0]};
  if (!has_aligned_rows(columns, type.dtype, symbols)) return std::nullopt;
  return columns;
}

}  // namespace sinter
