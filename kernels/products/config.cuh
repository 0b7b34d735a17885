// Config: the constants of a product's kernel. Form: the constants of a branch of the kernel for
// some number of tokens.
//
//   Element          of the tokens and of a matrix that is not packed: f16 or bf16
//   ResultElement    the same, or float
//   Steps            the order of the steps of a sum, as AscendingSteps; not of codes
//   kLength          elements of a row of both operands (K)
//   kResultColumns   columns of the result: rows of the matrix
//   kBias            the product has a bias
//   kSections        the result is called with a token, the first of 8 rows of the matrix, and
//                    their PortRows; else it is a port by chunk
//                    (kernels/tile/epilogue/ports.cuh)
//   kPairs           the epilogue needs pairs of rows of the matrix so far apart; 0: none
//   kGroups          the number of runs of tokens, each with a matrix of its own; 0: one matrix.
//                    The kernel of codes has no runs
//
// Constants of many tokens (many.cuh), whose tiles have tokens as rows:
//   kRows, kColumns  of a tile of the result; rows: a multiple of 64
//   kDepth           elements of K in a stage
//   kStages          of the pipeline
//   kCluster         blocks of a cluster
//   kInTurns         two warpgroups take tiles in turns; else kRows / 64 of them share a tile
//   kEpilogueGroups  warpgroups that compute the epilogue, where two others multiply in turns; 0:
//                    those that multiply compute it
//   kLoops           the epilogue is a loop whose text stands once
//   kTransposed      the matrix's columns, not its rows, are contiguous in memory
//   kSummedRows      rows of the result of a run that is summed; 0: a run's rows are the result's
//   kSums            the result's text adds the rows of a value, whose sums of 64 rows are stored
// Its port by chunk has inputs that are loaded ahead (codegen/emission/element_ports.h).
//
// Constants of few tokens (few.cuh) and codes (codes.cuh), whose tiles have rows of the matrix as
// rows:
//   kSharedBytes     of the stages
//   Matrix           of codes: a PackedMatrix
//   kMostRows        of codes: of the matrix in a tile of any Form, 64 for each multiplying
//                    warpgroup
// and their Form:
//   kRows            of the matrix in a tile: 32, or a multiple of 64
//   kColumns         tokens in a tile: a multiple of 16
//   kDepth           of few tokens: elements of K in a stage, a multiple of 64; 64 unless K is a
//                    multiple
//   kShares          of few tokens: a block has an equal share of the matrix's rows, and all tokens
#pragma once
