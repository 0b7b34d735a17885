// expert_linear; kernels/experts/order.h states its order of operations.
//
// A block has a group: a token and one of its experts, or all of its experts, where the epilogue
// needs their sums together. It computes consecutive classes of the group's rows (ir/colocation.h),
// unit by unit: the first row of each class, then the second of each. Each of its warps multiplies
// kExpertWarpRows rows of one unit, neighbours in one matrix, whose loads are in flight together.
// The sums go to shared memory, where the epilogue reads them.
//
// Where a kernel runs between the choice of the experts and this one, a warp prefetches the first
// kExpertAheadBytes of its rows into the L2 cache before the kernel's wait. (To prefetch further
// while it multiplies is slower: one H200, gate and up of Qwen3-30B-A3B 17.7 us, 15.8 without.)
//
// Blocks with the same rows of all groups are neighbours, so that tokens of one expert find its
// rows in the L2 cache.
//
// Config: Element; kExperts; kRows and kLength of a matrix; kChosen experts of a token; kShared:
// they multiply the same row of x; kTogether: a group has all of them; kUnits and kStride of a
// class: rows of a matrix or, if kTogether, kChosen and kRows; for packed matrices also Matrix, a
// PackedMatrix (kernels/common/packed_matrix.cuh).
#pragma once

#include "kernels/common/colocated_rows.cuh"
#include "kernels/common/lane_sums.cuh"
#include "kernels/common/packed_sums.cuh"
#include "kernels/common/vector.cuh"
#include "kernels/experts/layout.h"
#include "kernels/experts/order.h"
#include "kernels/isa/bulk_copy.cuh"

namespace sinter {

// The sums of a block, addressed like the results of its group.
template <typename Config>
struct ExpertSums {
  const float* sums;  // [unit][class of the block]
  int first;          // class of the block
  long long at;
  SINTER_DEVICE ExpertSums operator+(long long n) const { return {sums, first, at + n}; }
  SINTER_DEVICE ExpertSums operator-(long long n) const { return *this + -n; }
};
template <typename Config>
SINTER_DEVICE float load(ExpertSums<Config> p) {
  const int row =
      static_cast<int>(p.at % (Config::kRows * (Config::kTogether ? Config::kChosen : 1)));
  return p.sums[unit_of_row<Config>(row) * expert_block_classes(Config::kUnits) +
                class_of_row<Config>(row) - p.first];
}

template <typename Config>
class ExpertLinear {
  using T = typename Config::Element;
  static constexpr int kUnits = Config::kUnits;
  static constexpr int kClasses =
      Config::kTogether ? Config::kRows : Config::kRows / Config::kUnits;
  static constexpr int kBlockClasses = expert_block_classes(Config::kUnits);
  static constexpr int kBlocks = (kClasses + kBlockClasses - 1) / kBlockClasses;  // of a group
  static_assert(!Config::kTogether ||
                (kUnits == Config::kChosen && (kUnits == 1 || Config::kStride == Config::kRows)));
  // Bytes of a row of a matrix of elements, or of a packed one.
  static SINTER_DEVICE constexpr long long row_bytes(const T*) {
    return static_cast<long long>(sizeof(T)) * Config::kLength;
  }
  static SINTER_DEVICE constexpr long long row_bytes(const int*) {
    return Config::Matrix::kRowBytes;
  }

 public:
  // `sums`: kExpertBlockRows elements of shared memory.
  SINTER_DEVICE explicit ExpertLinear(float* sums)
      : sums_(sums),
        group_(blockIdx.x % (gridDim.x / kBlocks)),
        first_(static_cast<int>(blockIdx.x / (gridDim.x / kBlocks)) * kBlockClasses) {
    const int thread = static_cast<int>(threadIdx.x);
    const int at = thread / 32 * kExpertWarpRows;
    lane_ = thread % 32;
    unit_ = at / kBlockClasses;
    class_ = first_ + at % kBlockClasses;
    has_rows_ = unit_ < kUnits && class_ < kClasses;
    pair_ = Config::kTogether ? group_ * Config::kChosen + unit_ : group_;
  }

  SINTER_DEVICE long long group() const { return group_; }
  // The row of the group whose sum this thread takes; -1: none.
  SINTER_DEVICE int row() const {
    const int thread = static_cast<int>(threadIdx.x), own = first_ + thread % kBlockClasses;
    return thread < kUnits * kBlockClasses && own < kClasses
               ? row_of_class<Config>(own, thread / kBlockClasses)
               : -1;
  }
  SINTER_DEVICE ExpertSums<Config> sums() const { return {sums_, first_, 0}; }

  // Reads nothing but the matrices and the numbers of the experts, so that it may stand before the
  // kernel's wait. W: T, or int of packed matrices.
  template <typename W>
  SINTER_DEVICE void prefetch_rows(const W* w, const int* experts) const {
#if SINTER_HAS_BULK_COPY
    constexpr long long bytes = row_bytes(static_cast<const W*>(nullptr));
    if (!has_rows_ || lane_ >= kExpertWarpRows || bytes % 16 != 0) return;
    const int expert = experts[pair_];
    if (!is_there(expert)) return;
    cp_async_bulk_prefetch_L2(
        reinterpret_cast<const unsigned char*>(w) + row_of_matrix(expert, lane_) * bytes,
        static_cast<int>(bytes < kExpertAheadBytes ? bytes : kExpertAheadBytes));
#endif
  }

  // Computes the block's sums; ends with a barrier.
  template <typename W>
  SINTER_DEVICE void run(const T* x, const W* w, const int* experts) {
    if (has_rows_) multiply(x, w, experts[pair_]);
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
  SINTER_DEVICE void add_products(float (&sums)[kExpertWarpRows], const T* row, const T* w,
                                  const long long (&rows)[kExpertWarpRows]) const {
#pragma unroll 2
    for (int at = lane_ * kExpertChunk; at < Config::kLength; at += kExpertLanes * kExpertChunk) {
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
  SINTER_DEVICE void add_products(float (&sums)[kExpertWarpRows], const T* row, const int* w,
                                  const long long (&rows)[kExpertWarpRows]) const {
    using Matrix = typename Config::Matrix;
    PackedSums<Matrix, T, kExpertWarpRows, 1> codes;
    const unsigned char* at[kExpertWarpRows];
    float own[kExpertWarpRows][1] = {};
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) {
      at[r] = Matrix::at(w, rows[r], 0);
      if constexpr (Matrix::kRowScale) codes.load_scale(r, w, rows[r]);
    }
    codes.add_run(own, at, LaneChunks{row, lane_ * kExpertChunk}, 1, lane_, Config::kLength);
    if constexpr (Matrix::kRowScale) codes.scale_sums(own);
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) sums[r] = own[r][0];
  }

  static SINTER_DEVICE bool is_there(int expert) {
    return expert >= 0 && expert < Config::kExperts;
  }
  // The warp's i-th row of all experts' matrices; the last one again behind the end.
  SINTER_DEVICE long long row_of_matrix(int expert, int i) const {
    const int own = class_ + i < kClasses ? class_ + i : kClasses - 1;
    return static_cast<long long>(expert) * Config::kRows +
           (Config::kTogether ? own : row_of_class<Config>(own, unit_));
  }

  template <typename W>
  SINTER_DEVICE void multiply(const T* x, const W* w, int expert) {
    // A number that names no expert gives 0 (the op's attribute `checked`).
    const bool there = is_there(expert);
    const T* const row = x + (Config::kShared ? pair_ / Config::kChosen : pair_) * Config::kLength;
    long long rows[kExpertWarpRows];
    float sums[kExpertWarpRows] = {};
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r) rows[r] = row_of_matrix(there ? expert : 0, r);
    add_products(sums, row, w, rows);
    sum_lanes<1, kExpertLanes, kExpertWarpRows>(sums, lane_);
    if (lane_ < kExpertWarpRows)
      sums_[unit_ * kBlockClasses + class_ - first_ +
            kept_value<1, kExpertLanes, kExpertWarpRows>(lane_)] = there ? sums[0] : 0.0f;
  }

  float* sums_;
  long long group_, pair_;   // the warp's pair of a token and an expert
  int first_;                // class of the block
  int lane_, unit_, class_;  // the unit and the first class of the warp
  bool has_rows_;
};

}  // namespace sinter
