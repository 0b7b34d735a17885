// A product of tokens and a matrix, read once from its op: all that the choice of a family, costs,
// configurations and emission ask.
#pragma once

#include "ir/code_format.h"
#include "ir/contraction.h"

namespace sinter {

/// result[t, m] = sum over k of x[t, k] · w[m, k] + bias[m]. t counts tokens, the rows of the
/// result; m the rows of the matrix. Of runs that are summed, result[g, i, j] = sum over the rows k
/// of run g of x[k, i] · w[k, j]: t counts g and i, m counts j.
struct Product {
  struct Tokens {
    SymExpr count;
    int64_t most = 1;  // for all values of the symbols
  };
  struct Matrix {
    enum class Form : uint8_t {
      dense,       // rows of neighbouring elements
      transposed,  // columns of neighbouring elements: a transposed view
      codes,       // packed (ir/packed_codes.h)
    };
    Form form = Form::dense;
    int64_t rows = 0, length = 0;  // length: elements of a row
    CodeFormat format = {};        // of codes
  };
  /// Runs of tokens, each with a matrix of its own, or each with a result of its own.
  struct Groups {
    int64_t count = 0;        // 0: none, one matrix for all tokens
    int64_t summed_rows = 0;  // of the result of a run that is summed; 0: runs have matrices
    int64_t summed = 0;       // the most rows that all sums have
  };
  /// Demands of the ops that share the kernel.
  struct Epilogue {
    int64_t pairs = 0;     // rows of the matrix so far apart together; 0: none
    bool is_long = false;  // computed by warpgroups of its own
  };
  /// The main loop of its kernel, a file of this folder.
  enum class Loop : uint8_t {
    many,   // many.cuh: tokens are the rows of tensor cores' products
    few,    // few.cuh: the matrix's rows are, and the kernel takes as long as reading them
    codes,  // codes.cuh: the same, of codes
  };

  DType elements = DType::f16;  // of the tokens
  Tokens tokens = {};
  Matrix matrix = {};  // with groups: one of them
  Groups groups = {};
  Epilogue epilogue = {};

  /// A product of at most this many tokens takes about as long as reading its matrix.
  static constexpr int64_t kFewTokens = 256;
  /// Runs of at most this many tokens, on average, take the kernel of few tokens: its tile has
  /// 16 to 64 tokens, one of many tokens 128 or more. Not measured.
  static constexpr int64_t kFewTokensOfRun = 64;
  /// The tokens of a run, if all runs are equal; groups.count is not 0.
  int64_t tokens_of_run() const { return (tokens.most + groups.count - 1) / groups.count; }
  /// Elements of a sum; of runs that are summed, if all are equal.
  int64_t sum_length() const {
    return groups.summed_rows > 0 ? (groups.summed + groups.count - 1) / groups.count
                                  : matrix.length;
  }
  Loop loop() const {
    if (matrix.form == Matrix::Form::codes) return Loop::codes;
    if (groups.summed_rows > 0) return Loop::many;
    if (groups.count == 0) return tokens.most <= kFewTokens ? Loop::few : Loop::many;
    // The kernel of few tokens streams rows: transposed matrices would be copied for it, which
    // reads and writes all of them. The kernel of many tokens reads their columns. Not measured.
    const bool few = tokens_of_run() <= kFewTokensOfRun && matrix.form != Matrix::Form::transposed;
    return few ? Loop::few : Loop::many;
  }
  /// The tile's rows are rows of the matrix, of which a lane has sums.
  bool is_transposed_result() const { return loop() != Loop::many; }
};

/// The product of a grouped_linear or grouped_outer, or of an op of the order tiled_linear or
/// tiled_codes, without what its epilogue asks.
Product product_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols);

/// An operand of any rank as rows of neighbouring elements that a tensor map can describe: rows
/// begin at multiples of 16 bytes. nullopt: it has to be copied first.
std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols);
/// The same of a matrix whose columns are neighbouring elements: as the rows of its transpose. For
/// matrices [G, M, K], the rows of matrix g + 1 follow the K rows of matrix g.
std::optional<StridedMatrix> tensor_map_columns(const Graph& graph, ValueId id,
                                                llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
