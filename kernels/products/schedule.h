// The configuration of a product's kernel: its tiles, threads and shared memory.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "ir/colocation.h"
#include "kernels/products/product.h"

namespace sinter {

/// A tile of a product. In the kernel of many tokens these are its rows, else its columns.
struct ProductTile {
  int64_t tokens = 0, matrix_rows = 0;
  int64_t depth = 0;  // elements of K in a stage; not of codes, whose stage is half of a step

  bool operator==(const ProductTile&) const = default;
};
/// The tile of a kernel's branch for up to some number of tokens.
struct ProductForm {
  int64_t most_tokens = 0;
  ProductTile tile;
  bool shares = false;  // a block has an equal share of the matrix's rows (few tokens, one tile)

  /// The tiles of a product of most_tokens tokens by a matrix of `matrix_rows` rows.
  int64_t tiles(int64_t matrix_rows) const;
  /// The blocks that have something to do.
  int64_t busy_blocks(int64_t matrix_rows) const;
};

struct ProductConfig {
  std::vector<ProductForm> forms = {};  // by most_tokens, ascending; one of many tokens
  int64_t threads = 0;                  // of a block
  int64_t shared_bytes = 0;             // of the stages, and of rounded results on their way
  // Many tokens.
  bool in_turns = false;        // two warpgroups take tiles in turns; else all share a tile
  int64_t epilogue_groups = 0;  // warpgroups that compute the epilogue alone
  int64_t cluster = 1;          // blocks of neighbouring tiles, which share the tokens' tiles
  int64_t stages = 0;           // tiles of both operands in shared memory
  /// Few tokens and codes: the most blocks that a form has use for. A block without a tile would
  /// keep the next kernel's from its multiprocessor.
  int64_t blocks = 0;

  const ProductTile& tile() const { return forms.back().tile; }  // of the most tokens
  /// The most rows of the matrix in a tile, and no less than a warpgroup has.
  int64_t most_matrix_rows() const;
};
/// nullopt: the device has no products of warpgroups, too little shared memory, or no tile has
/// whole runs of the pairs.
std::optional<ProductConfig> product_config(const Product& product,
                                            const DeviceDescription& device);

/// Whether an epilogue can have these rows of the matrix: a lane has chunks of 8 rows, or of 8
/// pairs.
bool takes_rows(const Product& product, const ColocatedRows& rows);

}  // namespace sinter
