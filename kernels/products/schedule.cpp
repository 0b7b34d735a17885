#include "kernels/products/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/integers.h"
#include "kernels/cost.h"
#include "kernels/products/layout.h"
#include "kernels/tile/layout.h"
#include "kernels/tile/search.h"

namespace sinter {
namespace {

constexpr int64_t kDeclaredBytes = 1024;  // barriers, and the alignment of the tiles
constexpr int64_t kLeastStages = 3, kMostStages = 6;
/// Elements of K in a stage: a row of a panel of 128 bytes.
constexpr int64_t kDepth = 64;
constexpr int64_t kTileCluster = 2, kWarpgroupThreads = 128, kTileAlignment = 1024;

/// Tiles of many tokens: the sums of a warpgroup fit into its registers. With 112 rows of the
/// matrix some numbers of tiles leave fewer multiprocessors idle.
struct ManyTile {
  int64_t tokens, matrix_rows;
  bool in_turns = false;
};
constexpr std::array<ManyTile, 9> kManyTiles = {{{256, 128},
                                                 {256, 112},
                                                 {192, 192},
                                                 {192, 128},
                                                 {128, 256},
                                                 {128, 192},
                                                 {128, 128},
                                                 {128, 64},
                                                 {128, 128, true}}};
/// Warpgroups of a long epilogue: its instructions take about as long as the tile's products.
constexpr int64_t kEpilogueGroups = 2;
/// Rows of the matrix in tiles of pairs of them: two neighbouring lanes have both of a pair.
constexpr int64_t kPairedRows[] = {64, 128};
/// Between two tiles: the epilogue and the wait for the first stage, about 4,000 clocks, in
/// multiplications, of which a multiprocessor has 2,048 in a clock.
constexpr int64_t kBetweenTiles = int64_t{4000} * 2048;

/// Rows of the matrix in a tile of few tokens, and of codes.
constexpr int64_t kFewRows[] = {64, 32, 128, 192};
/// Rows of the matrix in a box of its tensor map: of shares, of the smallest tiles, and of others.
constexpr int64_t kBoxes[] = {kShareRows, 32, kMatrixBox};
/// Shares: the most tokens for which they were faster, and what a row costs more in boxes of
/// kShareRows rows.
constexpr int64_t kMaxSharedTokens = 16;
constexpr double kShareCost = 1.05;
/// A warpgroup's sums of 256 tokens leave registers for two such warpgroups.
constexpr int64_t kTwoWarpgroupTokens = 256;
/// Tokens in a tile of codes.
constexpr int64_t kCodesTokens[] = {16, 32, 64, 128, 160, 192, 256};
/// The times of codes_clocks(): of a window, and in it of a warpgroup and of each of its tokens;
/// bytes that a multiprocessor gets in a clock.
constexpr double kWindowClocks = 272, kPairClocks = 78, kTokenClocks = 1.75;
constexpr double kMemoryBytesPerClock = 14, kCacheBytesPerClock = 40;
/// A larger tile of codes that gains less is left out.
constexpr double kWorthwhileShare = 0.99;

int64_t bytes_of_tile(int64_t rows, int64_t length) {
  return tile_bytes(static_cast<int>(rows), static_cast<int>(length));
}

/// Whether a box of `box` rows of the matrix has whole runs of pairs `apart` (PairedRows).
bool has_whole_runs(int64_t box, int64_t apart) {
  const int64_t chunks = box / 2 / kRowChunk, of_stride = apart / kRowChunk;
  return chunks % of_stride == 0 || of_stride % chunks == 0;
}

/// The cost of the slowest cluster, in multiplications: its tiles, the rows that it copies, and the
/// time between tiles.
int64_t many_cost(const ManyTile& tile, int64_t cluster, const Product& product,
                  int64_t multiprocessors) {
  const Product::Groups& groups = product.groups;
  // A run with a matrix has about half a tile that is not filled.
  const int64_t row_tiles = groups.summed_rows > 0
                                ? groups.count * ceil_div(groups.summed_rows, tile.tokens)
                                : ceil_div(product.tokens.most, tile.tokens) + groups.count / 2;
  const int64_t tiles = row_tiles * ceil_div(product.matrix.rows, tile.matrix_rows * cluster);
  const int64_t rounds = ceil_div(tiles, multiprocessors / cluster);
  const int64_t of_tile =
      (tile.tokens * tile.matrix_rows + kElementsOfRow * (tile.tokens + tile.matrix_rows)) *
      product.sum_length();
  if (!tile.in_turns) return rounds * (of_tile + kBetweenTiles);
  // One warpgroup multiplies while the other is between tiles.
  return rounds * std::max(of_tile, (of_tile + kBetweenTiles) / 2) + kBetweenTiles;
}

std::optional<ProductConfig> many_config(const Product& product, const DeviceDescription& device) {
  const bool transposed = product.matrix.form == Product::Matrix::Form::transposed;
  const auto& [pairs, is_long] = product.epilogue;
  if (pairs > 0 && transposed) return std::nullopt;
  const auto cluster_of = [&](const ManyTile& tile) {
    const bool clusters = product.matrix.rows > tile.matrix_rows &&
                          device.multiprocessors >= kTileCluster && product.groups.summed_rows == 0;
    return clusters ? kTileCluster : 1;
  };
  const auto cost = [&](const ManyTile& tile) -> std::optional<double> {
    if ((transposed && tile.matrix_rows % kPanel != 0) || (is_long && !tile.in_turns) ||
        (product.groups.count > 0 && tile.in_turns) ||
        (pairs > 0 && !(llvm::is_contained(kPairedRows, tile.matrix_rows) &&
                        has_whole_runs(tile.matrix_rows, pairs))))
      return std::nullopt;
    return static_cast<double>(many_cost(tile, cluster_of(tile), product, device.multiprocessors));
  };
  const std::optional<ManyTile> best = cheapest(kManyTiles, cost);
  if (!best) return std::nullopt;
  const auto& [tokens, matrix_rows, in_turns] = *best;
  const int64_t epilogue_groups = is_long ? kEpilogueGroups : 0;
  const int64_t stage = bytes_of_tile(tokens + matrix_rows, kDepth);
  const int64_t results = is_long ? 2 * bytes_of_tile(tokens, matrix_rows) : 0;
  const auto stages = stages_that_fit(device.max_shared_bytes - kDeclaredBytes - results, stage,
                                      kLeastStages, kMostStages);
  if (!stages) return std::nullopt;
  return ProductConfig{.forms = {{product.tokens.most, {tokens, matrix_rows, kDepth}}},
                       .threads = 2 * tokens + (1 + epilogue_groups) * kWarpgroupThreads,
                       .shared_bytes = *stages * stage + results,
                       .in_turns = in_turns,
                       .epilogue_groups = epilogue_groups,
                       .cluster = cluster_of(*best),
                       .stages = *stages};
}

/// The forms of a kernel for up to `tokens` tokens: one for each power of two up to
/// Product::kFewTokens, fewer for more tokens, which would take long to compile; neighbours with
/// the same tile are one. form_of(most): nullopt if none fits. Empty: none does.
template <typename FormOf>
std::vector<ProductForm> forms_up_to(int64_t tokens, FormOf form_of) {
  const int64_t factor = tokens <= Product::kFewTokens ? 2 : 4;
  std::vector<ProductForm> forms;
  for (int64_t most = tokens <= 16 ? 16 : 32;; most *= factor) {
    if (most > Product::kFewTokens) most = tokens;
    const std::optional<ProductForm> form = form_of(most);
    if (!form) return {};
    if (!forms.empty() && forms.back().tile == form->tile && forms.back().shares == form->shares)
      forms.back().most_tokens = most;
    else
      forms.push_back(*form);
    if (most >= tokens) return forms;
  }
}

/// The most blocks that one of the forms has use for.
int64_t blocks_of(const std::vector<ProductForm>& forms, const Product& product,
                  int64_t multiprocessors) {
  int64_t blocks = 0;
  for (const ProductForm& form : forms)
    blocks = std::max(
        blocks, form.busy_blocks(product.matrix.rows) +
                    product.groups.count * ceil_div(product.matrix.rows, form.tile.matrix_rows));
  return std::min(blocks, multiprocessors);
}

/// Multiples of kTileAlignment in a block's shared memory, beside barriers.
int64_t stage_bytes(const DeviceDescription& device, int64_t barrier_bytes) {
  return (device.max_shared_bytes - kDeclaredBytes - barrier_bytes) / kTileAlignment *
         kTileAlignment;
}

/// The most rows of the matrix that a block has where all have the same share.
int64_t rows_of_share(int64_t matrix_rows, int64_t blocks) {
  return ceil_div(ceil_div(matrix_rows, int64_t{kShareRows}), blocks) * kShareRows;
}

bool is_few_tile(int64_t rows, int64_t tokens, int64_t most_rows) {
  // With few tokens memory is the bound, and one warpgroup with deep stages keeps up with it.
  if (tokens <= 64) return rows <= 64;
  return rows >= 64 && rows <= most_rows && (rows <= 128 || tokens < kTwoWarpgroupTokens);
}

/// Rows of either operand that the slowest block copies, in boxes of 64 rows: a multiprocessor
/// copies at a limited rate, which the matrix alone does not reach.
double rows_copied(const ProductForm& form, int64_t matrix_rows, int64_t multiprocessors) {
  const auto& [tokens, rows, depth] = form.tile;
  if (!form.shares)
    return static_cast<double>(ceil_div(form.tiles(matrix_rows), multiprocessors) *
                               (tokens + rows));
  const int64_t share = rows_of_share(matrix_rows, multiprocessors);
  return static_cast<double>(share + ceil_div(share, rows) * tokens) * kShareCost;
}

/// The form for up to `most` tokens whose slowest block copies the fewest rows.
std::optional<ProductForm> few_form(int64_t most, const Product& product, int64_t most_rows,
                                    int64_t multiprocessors) {
  const int64_t share = rows_of_share(product.matrix.rows, multiprocessors);
  std::vector<ProductForm> candidates;
  for (int64_t tokens = most; tokens >= std::min<int64_t>(most, 32); tokens /= 2)
    for (const int64_t rows : kFewRows) {
      const bool deep =
          rows <= 64 && tokens < 256 && has_whole_panels(static_cast<int>(product.matrix.length));
      if (!is_few_tile(rows, tokens, most_rows)) continue;
      ProductForm form{most, {tokens, rows, deep ? 2 * kDepth : kDepth}};
      candidates.push_back(form);
      form.shares = true;
      if (most <= kMaxSharedTokens && share > rows) candidates.push_back(form);
    }
  return cheapest(candidates, [&](const ProductForm& form) {
    return std::optional(rows_copied(form, product.matrix.rows, multiprocessors));
  });
}

std::optional<ProductConfig> few_config(const Product& product, const DeviceDescription& device) {
  const auto forms_of = [&](int64_t most_rows) -> std::vector<ProductForm> {
    // The number of tokens says little of the runs' lengths.
    if (product.groups.count > 0) {
      int64_t tokens = 16;
      while (tokens < product.tokens_of_run()) tokens *= 2;
      const int64_t depth = has_whole_panels(product.matrix.length) ? 2 * kDepth : kDepth;
      return {{product.tokens.most, {tokens, kMatrixBox, depth}}};
    }
    return forms_up_to(product.tokens.most, [&](int64_t most) {
      return few_form(most, product, most_rows, device.multiprocessors);
    });
  };
  ProductConfig config{.forms = forms_of(192)};
  if (config.tile().tokens == kTwoWarpgroupTokens) config.forms = forms_of(128);
  int64_t stage = 0;
  for (const ProductForm& form : config.forms)
    stage =
        std::max(stage, bytes_of_tile(form.tile.tokens + form.tile.matrix_rows, form.tile.depth));
  // One warpgroup for 64 rows, and two warps that copy.
  config.threads = config.most_matrix_rows() * 2 + 64;
  config.shared_bytes = stage_bytes(device, kFewBarrierBytes);
  config.blocks = blocks_of(config.forms, product, device.multiprocessors);
  if (config.shared_bytes < kLeastStages * stage) return std::nullopt;
  return config;
}

/// Clocks of the slowest block for 64 columns of K, measured: pairs of codes and products of its
/// warpgroups, or the copies. A matrix that is read once comes from memory.
double codes_clocks(const ProductForm& form, const Product& product, int64_t multiprocessors) {
  const auto tokens = static_cast<double>(form.tile.tokens);
  // The sums of tokens that minima take are products of the same size.
  const double of_token = (product.matrix.format.minima ? 2 : 1) * kTokenClocks;
  const auto warpgroups = static_cast<double>(ceil_div(form.tile.matrix_rows, int64_t{64}));
  const bool once = form.most_tokens <= form.tile.tokens;
  const int64_t code_bytes = form.tile.matrix_rows * 8 * product.matrix.format.bits();
  const double copies =
      static_cast<double>(code_bytes) / (once ? kMemoryBytesPerClock : kCacheBytesPerClock) +
      128 * tokens / kCacheBytesPerClock;
  const double of_tile =
      std::max(kWindowClocks + warpgroups * (kPairClocks + of_token * tokens), copies);
  return static_cast<double>(ceil_div(form.tiles(product.matrix.rows), multiprocessors)) * of_tile;
}

/// The most tokens of a tile in a kernel with tiles of up to `rows` rows: the sums are in
/// registers, a set of whole rows, one more for groups, and one more for minima.
int64_t most_codes_tokens(int64_t rows, const CodeLayout& layout) {
  if (rows > 128) return layout.minima ? 64 : 128;
  const bool groups = layout.group > 0;
  if (layout.minima) return groups ? 128 : 160;
  return groups ? 192 : 256;
}

/// The least stages fit into `bytes`.
bool codes_fit(const ProductTile& tile, const CodeLayout& layout, int64_t bytes) {
  const CodesStages stages = codes_stages(
      static_cast<int>(bytes), codes_stage_bytes(layout, static_cast<int>(tile.matrix_rows)),
      static_cast<int>(bytes_of_tile(tile.tokens, kCodesWindow)));
  return stages.codes >= 2 && stages.tokens >= kLeastStages;
}

std::optional<ProductConfig> codes_config(const Product& product, const DeviceDescription& device) {
  const CodeLayout layout = product.matrix.format.layout();
  const int64_t tokens = product.tokens.most;
  ProductConfig config{.shared_bytes = stage_bytes(device, kCodesBarrierBytes)};
  const auto clocks = [&](const ProductForm& form) {
    return codes_clocks(form, product, device.multiprocessors);
  };
  const auto form_of = [&](int64_t most, int64_t most_rows) {
    std::vector<ProductForm> candidates;
    for (const int64_t of_tile : kCodesTokens)
      for (const int64_t rows : kFewRows)
        if (of_tile <= std::max<int64_t>(16, most) && rows <= most_rows &&
            of_tile <= most_codes_tokens(most_rows, layout))
          candidates.push_back({most, {of_tile, rows, 0}});
    const auto cost = [&](const ProductForm& form) -> std::optional<double> {
      if (!codes_fit(form.tile, layout, config.shared_bytes)) return std::nullopt;
      return clocks(form);
    };
    return cheapest(candidates, cost, kWorthwhileShare);
  };
  // The most tokens decide which tiles the kernel has.
  const auto wide = form_of(tokens, 128), tall = form_of(tokens, 192);
  const int64_t most_rows = tall && (!wide || clocks(*tall) < clocks(*wide)) ? 192 : 128;
  config.forms = forms_up_to(tokens, [&](int64_t most) { return form_of(most, most_rows); });
  if (config.forms.empty()) return std::nullopt;
  config.threads = 2 * config.most_matrix_rows() + kWarpgroupThreads;
  config.blocks = blocks_of(config.forms, product, device.multiprocessors);
  return config;
}

}  // namespace

int64_t ProductForm::tiles(int64_t matrix_rows) const {
  return ceil_div(matrix_rows, tile.matrix_rows) * ceil_div(most_tokens, tile.tokens);
}

int64_t ProductForm::busy_blocks(int64_t matrix_rows) const {
  return shares ? ceil_div(matrix_rows, int64_t{kShareRows}) : tiles(matrix_rows);
}

int64_t ProductConfig::most_matrix_rows() const {
  int64_t rows = 64;
  for (const ProductForm& form : forms) rows = std::max(rows, form.tile.matrix_rows);
  return rows;
}

std::optional<ProductConfig> product_config(const Product& product,
                                            const DeviceDescription& device) {
  if (!device.has.wgmma) return std::nullopt;
  switch (product.loop()) {
    case Product::Loop::many:
      return many_config(product, device);
    case Product::Loop::few:
      return few_config(product, device);
    case Product::Loop::codes:
      break;
  }
  return codes_config(product, device);
}

bool takes_rows(const Product& product, const ColocatedRows& rows) {
  const auto whole = [](int64_t of_rows) { return of_rows % kRowChunk == 0; };
  for (const ColocatedRows::Section& section : rows.sections)
    if (!whole(section.first) || !whole(section.width)) return false;
  if (rows.units == 1) return true;
  if (rows.units > 2 || !whole(rows.stride)) return false;
  const auto has_runs = [&](int64_t box) { return has_whole_runs(box, rows.stride); };
  return product.is_transposed_result() ? llvm::all_of(kBoxes, has_runs)
                                        : llvm::any_of(kPairedRows, has_runs);
}

}  // namespace sinter
