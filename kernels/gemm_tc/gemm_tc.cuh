// tiled_linear; kernels/gemm_tc/order.h states its order of operations.
//
// A block computes tiles of the result, one after the other. One thread of the first warpgroup
// copies tiles of both operands through the stages of a pipeline, by tensor maps, which write zeros
// where a tile reaches beyond its operand; each of the other two warpgroups multiplies 64 rows.
//
// Config, the constants of a kernel:
//   Element          of operands: f16 or bf16
//   ResultElement    the same, or float
//   kLength          elements of a row of both operands (K)
//   kResultColumns   columns of the result: rows of the matrix
//   kRows, kColumns  of a tile of the result
//   kDepth           elements of K in a stage
//   kStages          of the pipeline
//   kBias            the product has a bias
#pragma once

#include "kernels/isa/tensor_map.cuh"
#include "kernels/tile/fragment.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/ports.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/scheduler.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config>
class TiledLinear {
  using T = typename Config::Element;
  static constexpr int kRowBytes = tile_bytes(Config::kRows, Config::kDepth);
  static constexpr int kColumnBytes = tile_bytes(Config::kColumns, Config::kDepth);
  static constexpr int kSteps = (Config::kLength + Config::kDepth - 1) / Config::kDepth;
  static constexpr int kColumnTiles =
      (Config::kResultColumns + Config::kColumns - 1) / Config::kColumns;
  static constexpr int kMultiplyingWarps = Config::kRows / 16;

 public:
  using Stages = Pipeline<Config::kStages>;

  // `shared`: the stages' tiles, at a multiple of 1024 bytes. `rows`: of the result.
  SINTER_DEVICE TiledLinear(Stages& stages, unsigned char* shared, long long rows)
      : stage_(stages),
        shared_(shared),
        rows_(rows),
        row_tiles_(static_cast<int>((rows + Config::kRows - 1) / Config::kRows)),
        tiles_(row_tiles_ * kColumnTiles) {}

  static SINTER_DEVICE void init(Stages& stages) { stages.init(1, kMultiplyingWarps); }

  // One thread copies the tiles of both operands.
  SINTER_DEVICE void produce(const TensorMap& x, const TensorMap& w) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round)
#pragma unroll 1
      for (int step = 0; step < kSteps; ++step) {
        stage_.producer_acquire();
        stage_.producer_expect(kRowBytes + kColumnBytes);
        const int k = step * Config::kDepth;
        cp_async_bulk_tensor_2d(cvta_to_shared(row_tile()), x, k, row(round), stage_.full());
        cp_async_bulk_tensor_2d(cvta_to_shared(column_tile()), w, k, column(round), stage_.full());
        stage_.advance();
      }
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      float sums[Config::kColumns / 2];
#pragma unroll 1
      for (int step = 0; step < kSteps; ++step) {
        stage_.consumer_wait();
        multiply_tiles<T, Config::kRows, Config::kColumns, Config::kDepth>(
            sums, row_tile(), 64 * group, column_tile(), step > 0);
        wgmma_commit_group();
        wgmma_wait_group<0>(sums);
        stage_.consumer_release();
      }
      if constexpr (Config::kBias) add_bias(sums, bias, column(round));
      store(sums, row(round) + 64 * group + first_row_in_warpgroup(), column(round), result);
    }
  }

 private:
  SINTER_DEVICE unsigned char* row_tile() const {
    return shared_ + stage_.stage() * (kRowBytes + kColumnBytes);
  }
  SINTER_DEVICE unsigned char* column_tile() const { return row_tile() + kRowBytes; }
  // The first row and column of a round's tile. Neighbouring blocks read the same columns.
  SINTER_DEVICE int row(int round) const { return tiles_.tile(round) % row_tiles_ * Config::kRows; }
  SINTER_DEVICE int column(int round) const {
    return tiles_.tile(round) / row_tiles_ * Config::kColumns;
  }

  static SINTER_DEVICE void add_bias(float (&sums)[Config::kColumns / 2], const T* bias,
                                     int first) {
    const int own = first + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int i = 0; i < Config::kColumns / 2; ++i) {
      const int column = own + i / 4 * 8 + i % 2;
      if (column < Config::kResultColumns) sums[i] = math::add(sums[i], load(bias + column));
    }
  }
  // Gives the result a lane's rows, `row` and 8 more.
  template <typename Result>
  SINTER_DEVICE void store(const float (&sums)[Config::kColumns / 2], int row, int column,
                           const Result& result) const {
    constexpr int columns = Config::kResultColumns;
    using Rounded = typename Config::ResultElement;
    take_chunks<Rounded, Config::kColumns / 8>(sums, [&](int half, int chunk, const Chunk& values) {
      const long long own = row + 8 * half;
      const int first = column + 8 * chunk;
      if (own < rows_ && first < columns)
        write_port<columns % 8 == 0>(result, own * columns + first, columns - first, values);
    });
  }

  PipelineState<Config::kStages> stage_;
  unsigned char* shared_;
  long long rows_;
  int row_tiles_;
  RoundRobinTiles tiles_;
};

// result = x wᵀ + bias. `result` takes elements by set(at, x) and set_chunk(at, values).
template <typename Config, typename Result>
SINTER_DEVICE void multiply_matrices(const TensorMap& x, const TensorMap& w,
                                     const typename Config::Element* bias, long long rows,
                                     const Result& result, unsigned char* shared) {
  __shared__ typename TiledLinear<Config>::Stages stages;
  if (threadIdx.x == 0) {
    TiledLinear<Config>::init(stages);
    fence_mbarrier_init();
  }
  __syncthreads();
  TiledLinear<Config> product(stages, shared, rows);
  const int warpgroup = warpgroup_index();
  if (warpgroup > 0)
    product.multiply(warpgroup - 1, bias, result);
  else if (threadIdx.x == 0)
    product.produce(x, w);
}

}  // namespace sinter
#endif
