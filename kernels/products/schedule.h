// The configuration of a tiled_linear kernel, and which operands its tensor maps can describe.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "ir/code_format.h"
#include "ir/colocation.h"
#include "ir/contraction.h"

namespace sinter {

struct TiledLinearConfig {
  int64_t rows = 0, columns = 0;  // of a tile of the result: tokens, rows of the matrix
  bool in_turns = false;          // two warpgroups take tiles in turns; else all share a tile
  int64_t epilogue_groups = 0;    // warpgroups that compute the epilogue alone
  int64_t cluster = 0;            // blocks of neighbouring tiles, which share the tokens' tiles
  int64_t threads = 0;            // of a block
  int64_t stages = 0;             // tiles of both operands in shared memory
  int64_t shared_bytes = 0;       // of the tiles, and of rounded results on the way to the epilogue
};
/// Elements of K in a stage: a row of a panel of 128 bytes.
inline constexpr int64_t kTiledLinearDepth = 64;

/// A product of more than kMostFewTokens tokens.
struct TiledLinearProblem {
  int64_t rows = 0, columns = 0;  // of the result, at most
  int64_t length = 0;             // elements of a row of both operands
  int64_t pairs = 0;              // the epilogue needs rows of the matrix so far apart; 0: none
  bool transposed = false;        // the matrix's columns are contiguous, not its rows
  bool long_epilogue = false;     // of rounded chunks: of kLongEpilogue instructions, or with sums
};
/// The problem of `product`, a tiled_linear of at most `tokens` tokens, without a long epilogue.
TiledLinearProblem tiled_linear_problem(const Graph& graph, const Op& product, int64_t tokens,
                                        int64_t pairs, llvm::ArrayRef<Symbol> symbols);
/// Instructions of an epilogue for an element from which on it is long (bench/log/products.md,
/// "Narrow products with epilogues" and "Epilogues").
inline constexpr int64_t kLongEpilogue = 20;
/// nullopt: the device has no products of warpgroups, too little shared memory, or no tile has
/// whole runs of the pairs.
std::optional<TiledLinearConfig> tiled_linear_config(const TiledLinearProblem& problem,
                                                     const DeviceDescription& device);

/// A kernel for at most this number of tokens reads the matrix once: few.cuh.
inline constexpr int64_t kMostFewTokens = 256;
/// The most tokens of a product: rows of its result.
int64_t most_tokens(const Op& product, llvm::ArrayRef<Symbol> symbols);

struct FewTokensForm {
  int64_t most_tokens = 0;        // the form is for up to this number
  int64_t rows = 0, columns = 0;  // of a tile: rows of the matrix, tokens
  int64_t depth = 0;              // elements of K in a stage

  /// The tiles of a product of most_tokens tokens.
  int64_t tiles(int64_t matrix_rows) const;
  bool has_tiles_of(const FewTokensForm& other) const {
    return rows == other.rows && columns == other.columns && depth == other.depth;
  }
};
struct FewTokensConfig {
  std::vector<FewTokensForm> forms;  // by most_tokens, ascending
  int64_t threads = 0;               // of a block
  int64_t stage_bytes = 0;           // of shared memory: all stages
  /// The most blocks that a form has use for: a block without a tile would keep the next kernel's
  /// from its multiprocessor.
  int64_t blocks = 0;
};
struct FewTokensProblem {
  int64_t tokens = 0;            // at most, no more than kMostFewTokens
  int64_t rows = 0, length = 0;  // of the matrix; elements of a row
};
/// The problem of `product`, a tiled_linear, without an epilogue.
FewTokensProblem few_tokens_problem(const Graph& graph, const Op& product, int64_t tokens);
/// nullopt: the device has no products of warpgroups, or too little shared memory.
std::optional<FewTokensConfig> few_tokens_config(const FewTokensProblem& problem,
                                                 const DeviceDescription& device);

/// The configuration of a tiled_codes kernel; threads: a warpgroup for 64 rows, and one that
/// copies.
struct CodesConfig {
  std::vector<FewTokensForm> forms;  // by most_tokens, ascending; depth is not used
  int64_t rows = 0;                  // the most of a tile
  int64_t threads = 0;               // of a block
  int64_t stage_bytes = 0;           // of shared memory: all stages
  int64_t blocks = 0;                // the most that a form has use for
};
/// For `product` of up to `tokens` tokens. nullopt: the device has no products of warpgroups, or
/// too little shared memory.
std::optional<CodesConfig> codes_config(const Graph& graph, const Op& product, int64_t tokens,
                                        const DeviceDescription& device);

/// Whether the epilogue of a product of up to `tokens` tokens can have these rows: a lane has
/// chunks of 8 rows, or of 8 pairs.
bool tiled_linear_takes(const ColocatedRows& rows, int64_t tokens);

/// An operand as rows of neighbouring elements that a tensor map can describe: rows begin at
/// multiples of 16 bytes. nullopt: it has to be copied first.
std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols);
/// The same of a matrix whose columns are neighbouring elements: as the rows of its transpose.
std::optional<StridedMatrix> tensor_map_columns(const Graph& graph, ValueId id,
                                                llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
