// expert_linear; kernels/experts/order.h states its order of operations.
//
// A pair is a token and one of its experts. A block has a pair and a run of classes of rows
// (ir/colocation.h) of the expert's matrix. Each of its warps multiplies kExpertWarpRows rows,
// whose loads are on their way together. The sums go to shared memory, where the epilogue reads
// them.
//
// Config: Element; kExperts; kRows and kLength of a matrix; kPairsOfRow: neighbouring pairs that
// multiply the same row of x; kUnits and kStride of a class; of packed matrices also Matrix, a
// PackedMatrix (kernels/common/packed_matrix.cuh).
#pragma once

#include "kernels/common/colocated_rows.cuh"
#include "kernels/common/lane_sums.cuh"
#include "kernels/common/packed_sums.cuh"
#include "kernels/common/vector.cuh"
#include "kernels/experts/layout.h"
#include "kernels/experts/order.h"

namespace sinter {

// The sums of a block, addressed like the whole result.
template <typename Config>
struct ExpertSums {
  const float* sums;  // [class of the block][unit]
  int first;          // class of the block
  long long at;
  SINTER_DEVICE ExpertSums operator+(long long n) const { return {sums, first, at + n}; }
  SINTER_DEVICE ExpertSums operator-(long long n) const { return *this + -n; }
};
template <typename Config>
SINTER_DEVICE float load(ExpertSums<Config> p) {
  const int row = static_cast<int>(p.at % Config::kRows);
  return p.sums[(class_of_row<Config>(row) - p.first) * Config::kUnits + unit_of_row<Config>(row)];
}

template <typename Config>
class ExpertLinear {
  using T = typename Config::Element;
  static constexpr int kUnits = Config::kUnits, kClasses = Config::kRows / kUnits;
  static constexpr int kBlockClasses = kExpertBlockRows / kUnits;
  static constexpr int kBlocks = (kClasses + kBlockClasses - 1) / kBlockClasses;  // of a pair

 public:
  // `sums`: kExpertBlockRows elements of shared memory.
  SINTER_DEVICE explicit ExpertLinear(float* sums) : sums_(sums) {
    pair_ = static_cast<long long>(blockIdx.x) / kBlocks;
    first_ = static_cast<int>(blockIdx.x % kBlocks) * kBlockClasses;
  }

  SINTER_DEVICE long long pair() const { return pair_; }
  // Rows of the matrix that the block has, and the i-th of them.
  SINTER_DEVICE int rows() const {
    const int left = kClasses - first_;
    return (left < kBlockClasses ? left : kBlockClasses) * kUnits;
  }
  SINTER_DEVICE int row(int i) const {
    return row_of_class<Config>(first_ + i / kUnits, i % kUnits);
  }
  SINTER_DEVICE ExpertSums<Config> sums() const { return {sums_, first_, 0}; }

  // Computes the block's sums; ends with a barrier. W: T, or int of packed matrices.
  template <typename W>
  SINTER_DEVICE void run(const T* x, const W* w, const int* experts) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    if (warp * kExpertWarpRows < rows()) multiply(x, w, experts[pair_], warp, lane);
    __syncthreads();
  }

 private:
  // Elements at .. at + 7 of a row; 0 behind its end.
  static SINTER_DEVICE void load_row(float (&out)[kExpertChunk], const T* row, int at) {
    if constexpr (Config::kLength % kExpertChunk == 0) {
      load_chunk(out, row + at);
    } else {
#pragma unroll
      for (int e = 0; e < kExpertChunk; ++e)
        out[e] = at + e < Config::kLength ? sinter::load(row + at + e) : 0.0f;
    }
  }

  // A lane's chunks of a row, for PackedSums.
  struct LaneChunks {
    const T* row;
    int at;
    SINTER_DEVICE void skip(int elements) { at += elements; }
    SINTER_DEVICE void read(float (&out)[kExpertChunk], int elements) const {
      load_row(out, row, at + elements);
    }
  };

  // Adds the products of a lane's elements of the row of x and rows of all experts' matrices.
  static SINTER_DEVICE void add_products(float (&sums)[kExpertWarpRows], const T* row, const T* w,
                                         const long long (&rows)[kExpertWarpRows], int lane) {
#pragma unroll 2
    for (int at = lane * kExpertChunk; at < Config::kLength; at += kExpertLanes * kExpertChunk) {
      float of_x[kExpertChunk], of_w[kExpertWarpRows][kExpertChunk];
#pragma unroll
      for (int r = 0; r < kExpertWarpRows; ++r)
        load_row(of_w[r], w + rows[r] * Config::kLength, at);
      load_row(of_x, row, at);
#pragma unroll
      for (int r = 0; r < kExpertWarpRows; ++r)
#pragma unroll
        for (int e = 0; e < kExpertChunk; ++e) sums[r] = math::fma(of_w[r][e], of_x[e], sums[r]);
    }
  }
  static SINTER_DEVICE void add_products(float (&sums)[kExpertWarpRows], const T* row, const int* w,
                                         const long long (&rows)[kExpertWarpRows], int lane) {
    using Matrix = typename Config::Matrix;
    PackedSums<Matrix, T, kExpertWarpRows, 1> codes;
    const unsigned char* at[kExpertWarpRows];
    float own[kExpertWarpRows][1] = {};
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) {
      at[r] = Matrix::at(w, rows[r], 0);
      if constexpr (Matrix::kRowScale) codes.load_scale(r, w, rows[r]);
    }
    codes.add_run(own, at, LaneChunks{row, lane * kExpertChunk}, 1, lane, Config::kLength);
    if constexpr (Matrix::kRowScale) codes.scale_sums(own);
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) sums[r] = own[r][0];
  }

  template <typename W>
  SINTER_DEVICE void multiply(const T* x, const W* w, int expert, int warp, int lane) {
    // A number that names no expert gives 0 (the op's attribute `checked`).
    const bool is_there = expert >= 0 && expert < Config::kExperts;
    const T* const row = x + pair_ / Config::kPairsOfRow * Config::kLength;
    long long rows[kExpertWarpRows];
    float sums[kExpertWarpRows] = {};
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) {
      const int own = warp * kExpertWarpRows + r, count = this->rows();
      rows[r] = static_cast<long long>(is_there ? expert : 0) * Config::kRows +
                this->row(own < count ? own : count - 1);
    }
    add_products(sums, row, w, rows, lane);
    sum_lanes<1, kExpertLanes, kExpertWarpRows>(sums, lane);
    if (lane < kExpertWarpRows)
      sums_[warp * kExpertWarpRows + kept_value<1, kExpertLanes, kExpertWarpRows>(lane)] =
          is_there ? sums[0] : 0.0f;
  }

  float* sums_;
  long long pair_;
  int first_;  // class of the block
};

}  // namespace sinter
