// The result of products whose rows are tokens and whose columns are rows of a matrix: a lane takes
// chunks of 8 columns of its two rows.
//
// Config: Element, ResultElement, kColumns, kResultColumns, kLoops, kBias, kSections and kPairs, as
// kernels/products/config.cuh says.
#pragma once

#include "kernels/common/ahead_loads.cuh"
#include "kernels/tile/epilogue/port_rows.cuh"
#include "kernels/tile/epilogue/ports.cuh"
#include "kernels/tile/layout.h"
#include "kernels/tile/sums/fragment.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config>
class ChunkedResult {
  using T = typename Config::Element;
  using Rounded = typename Config::ResultElement;
  static constexpr bool kPaired = Config::kPairs > 0;
  using Pairs = PairedRows<kPaired ? Config::kPairs : Config::kColumns, Config::kColumns>;
  static constexpr int kAheadTurns = 4;  // of an epilogue, whose inputs are in registers

 public:
  // A warpgroup's sums of 64 rows and the tile's columns.
  using Sums = float[Config::kColumns / 2];

  // `rows`: of the result.
  explicit SINTER_DEVICE ChunkedResult(long long rows) : rows_(rows) {}

  // Adds the bias and gives the result a lane's rows, `row` and 8 more, and the columns of the tile
  // at `column`. The sums are lost.
  template <typename Result>
  SINTER_DEVICE void store(Sums& sums, int row, int column, const T* bias,
                           const Result& result) const {
    if constexpr (Config::kBias) add_bias(sums, bias, column);
    if constexpr (kPaired || Config::kSections)
      store_sections(sums, row, column, result);
    else
      store_chunks(sums, row, column, result);
  }
  // The same of several slabs of 64 rows; the text of the epilogue stands once where it is a loop.
  template <int slabs, typename Result>
  SINTER_DEVICE void store_slabs(Sums (&sums)[slabs], int row, int column, const T* bias,
                                 const Result& result) const {
    if constexpr (Config::kLoops) {
#pragma unroll 1
      for (int slab = 0; slab < slabs; ++slab) {
        store(sums[0], row + 64 * slab, column, bias, result);
#pragma unroll
        for (int next = 1; next < slabs; ++next) move_sums(sums[next - 1], sums[next]);
      }
    } else {
#pragma unroll
      for (int slab = 0; slab < slabs; ++slab)
        store(sums[slab], row + 64 * slab, column, bias, result);
    }
  }

  // Adds the bias alone, where rows of the matrix are not paired and whole chunks of 8.
  template <int slabs>
  static SINTER_DEVICE void add_bias_to_tile(Sums (&sums)[slabs], const T* bias, int first) {
    const int own = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int chunk = 0; chunk < Config::kColumns / 8; ++chunk) {
      const int column = first + 8 * chunk;
      if (column >= Config::kResultColumns) return;
      const unsigned word = *reinterpret_cast<const unsigned*>(bias + column + own);
      const float pair[2] = {low_half(bias, word & 0xffffu), low_half(bias, word >> 16)};
#pragma unroll
      for (int slab = 0; slab < slabs; ++slab)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[slab][4 * chunk + i] = math::add(sums[slab][4 * chunk + i], pair[i % 2]);
    }
  }

 private:
  static SINTER_DEVICE void move_sums(Sums& to, const Sums& from) {
#pragma unroll
    for (int i = 0; i < Config::kColumns / 2; ++i) to[i] = from[i];
  }
  // The first row of the matrix that a chunk of 8 columns of the tile at `column` has.
  static SINTER_DEVICE int matrix_row(int column, int chunk) {
    if constexpr (kPaired)
      return Pairs::matrix_row(column, chunk / 2) + chunk % 2 * Config::kPairs;
    else
      return column + 8 * chunk;
  }
  static SINTER_DEVICE void add_bias(Sums& sums, const T* bias, int first) {
    const int own = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int i = 0; i < Config::kColumns / 2; ++i) {
      const int row = matrix_row(first, i / 4) + own + i % 2;
      if (row < Config::kResultColumns) sums[i] = math::add(sums[i], load(bias + row));
    }
  }
  // Calls take(turn, half, chunk, values) in each turn of a lane (kernels/tile/sums/fragment.cuh).
  template <int units, typename Take>
  static SINTER_DEVICE void for_each_turn(Sums& sums, Take take) {
    if constexpr (Config::kLoops)
      take_chunks_in_a_loop<Rounded, Config::kColumns / 8, units>(sums, take);
    else
      take_chunks_in_turns<Rounded, Config::kColumns / 8, units>(sums, take);
  }
  SINTER_DEVICE bool has_chunk(int row, int column, int half, int chunk) const {
    return chunk < Config::kColumns / 8 && row + 8 * half < rows_ &&
           matrix_row(column, chunk) < Config::kResultColumns;
  }
  template <typename Result>
  SINTER_DEVICE void store_sections(Sums& sums, int row, int column, const Result& result) const {
    constexpr int units = kPaired ? 2 : 1;
    for_each_turn<units>(sums, [&](int, int half, int chunk, const Chunk(&values)[units]) {
      if (!has_chunk(row, column, half, chunk)) return;
      const long long own = row + 8 * half;
      const int first = matrix_row(column, chunk);
      const long long at = own * Config::kResultColumns + first;
      if constexpr (kPaired) {
        constexpr int apart = Config::kPairs;
        result(own, first, PortRows<true>(at, values[0], values[1]));
        result(own, first + apart, PortRows<true>(at + apart, values[1], values[0]));
      } else {
        result(own, first, PortRows<false>(at, values[0]));
      }
    });
  }
  // The inputs of kAheadTurns turns are loaded ahead.
  template <typename Result>
  SINTER_DEVICE void store_chunks(Sums& sums, int row, int column, const Result& result) const {
    constexpr int columns = Config::kResultColumns;
    constexpr int row_turns = turns_of_row(Config::kColumns / 8, 1);
    constexpr bool whole = columns % 8 == 0;
    AheadWords words[kAheadTurns];
    Chunk no_sums = {};
    const auto at = [&](int half, int chunk) {
      return static_cast<long long>(row + 8 * half) * columns + matrix_row(column, chunk);
    };
    const auto load_ahead = [&](int turn, AheadWords& to) {
      if (!whole || turn >= 2 * row_turns) return;
      const int half = Config::kLoops ? turn % 2 : turn / row_turns;
      const int of_row = Config::kLoops ? turn / 2 : turn % row_turns;
      const int chunk = 4 * of_row + static_cast<int>(threadIdx.x) % 4;
      if (has_chunk(row, column, half, chunk)) result.issue_loads(at(half, chunk), to);
    };
#pragma unroll
    for (int turn = 0; turn < kAheadTurns; ++turn) load_ahead(turn, words[turn]);
    for_each_turn<1>(sums, [&](int turn, int half, int chunk, const Chunk(&values)[1]) {
      AheadWords& own = words[Config::kLoops ? 0 : turn % kAheadTurns];
      if (has_chunk(row, column, half, chunk)) {
        if constexpr (whole)
          result.set_chunk(at(half, chunk), values[0], TakenLoads(own, no_sums));
        else
          write_port<false>(result, at(half, chunk), columns - matrix_row(column, chunk),
                            values[0]);
      }
      if constexpr (Config::kLoops) {
#pragma unroll
        for (int next = 1; next < kAheadTurns; ++next) words[next - 1] = words[next];
        load_ahead(turn + kAheadTurns, words[kAheadTurns - 1]);
      } else {
        load_ahead(turn + kAheadTurns, own);
      }
    });
  }

  long long rows_;
};

}  // namespace sinter
#endif
