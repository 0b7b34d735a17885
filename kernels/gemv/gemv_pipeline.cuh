// The load pipeline of a gemv's matrix: which rows a block has, the layout of its shared memory,
// and the order in which a warp loads.
//
// Where the device has bulk copies, each warp has a multistage pipeline in shared memory. A stage
// is a buffer, filled with a run of elements of each of the rows that are read together, or of each
// row of a tile. issue() starts the copies of the next stage. wait(), not to be confused with
// griddepcontrol_wait(), waits for the oldest stage that is not consumed and returns it. Both
// follow the same order of runs.
#pragma once

#include "kernels/gemv/gemv_matrix.cuh"
#include "kernels/gemv/gemv_values.cuh"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/order.h"
#include "kernels/isa/bulk_copy.cuh"

namespace sinter {

// Config, the constants of a kernel:
//   Element             element type of the operand
//   Matrix              how the matrix stands in memory (kernels/gemv/gemv_matrix.cuh)
//   kLength             elements of a row (K), a multiple of 8
//   kRows               rows of the matrix
//   kUnits, kStride     rows of a class, and the distance between them (ir/colocation.h)
//   kSplits             splits of a row (split-K), one for a warp; a power of two
//   kTokens             the largest number of tokens
//   kStageLength        elements of a stage for one token, a multiple of a step of the matrix
//   kStages             the largest number of stages of a warp
//   kBlocks             blocks of the grid, at most one for each class
//   kWarps              warps of a block: kTileWarps (16) or half of them
//   kOperandBytes       bytes of shared memory that the operand may take at most
//   kDirect             the operand is copied from memory, not computed by a prologue

template <typename Config>
class GemvPipeline {
 protected:
  using T = typename Config::Element;
  using Matrix = typename Config::Matrix;
  static constexpr int kClasses = Config::kRows / Config::kUnits;
  static constexpr int kChunks = Config::kLength / 8;
  static constexpr int kSplitLength =
      8 * static_cast<int>(split_chunks(kChunks, Config::kSplits, Matrix::kStepLength / 8));
  // Groups of warps; each group takes a row, each of its warps a split.
  static constexpr int kGroups = Config::kWarps / Config::kSplits;
  // The runs of a tile are dealt to kTileWarps shares: how many of these a warp takes.
  static constexpr int kShares = kTileWarps / Config::kWarps;
  // The largest number of rows of a block.
  static constexpr int kBlockRows =
      (kClasses + Config::kBlocks - 1) / Config::kBlocks * Config::kUnits;
  // Tiles that a warp multiplies with the same operand registers: two, or one where no block has
  // more than one tile. One half of tile_sums_ belongs to each. (With four, the sums do not fit
  // into the registers: one H200, a decode step of 8 sequences of Llama-2-7B takes 5.65 ms, with
  // two 5.39.)
  static constexpr int kTileGroup = kBlockRows > kTileRows ? 2 : 1;
  static constexpr bool kPipelined =
#if SINTER_HAS_BULK_COPY
      true;
#else
      false;
#endif

  // How many quarters of the stages start() fills (rounded up to stages): 3 if the operand is
  // copied, 2 if a prologue computes it. (One H200, a token of GPT-NeoX-2.8B: 1.75 ms; with one
  // quarter more in either case 1.76, with all stages 1.81.)
  static constexpr int kFirstQuarters = Config::kDirect ? 3 : 2;

  // Whether the operand is kept in float32.
  static constexpr bool kWide =
      gemv_widens(Config::kLength, static_cast<int>(sizeof(T)), Matrix::kPacked, Config::kTokens,
                  Config::kOperandBytes);
  // Bytes of a token in shared memory.
  static constexpr int kTokenBytes =
      gemv_operand_bytes(Config::kLength, static_cast<int>(sizeof(T)), Matrix::kPacked,
                         Config::kTokens, Config::kOperandBytes);
  // Whether the operand, of this number of tokens, is in shared memory.
  static SINTER_DEVICE constexpr bool shared_operand(int tokens) {
    return !Config::kDirect || tokens * kTokenBytes <= Config::kOperandBytes;
  }
  static constexpr bool kTiles =
#if SINTER_HAS_MMA
      sizeof(T) == 2;
#else
      false;
#endif
  // The number of tokens for which the code of `tokens` tokens is instantiated.
  static SINTER_DEVICE constexpr int rounded(int tokens) {
    return tokens == 1 ? 1 : kMaxGemvTokens;
  }

 public:
  SINTER_DEVICE GemvPipeline(unsigned char* memory, const typename Matrix::Element* matrix,
                             int tokens)
      : matrix_(matrix), tokens_(tokens) {
    first_ = classes_before(blockIdx.x);
    count_ = classes_before(blockIdx.x + 1) - first_;
    warp_ = static_cast<int>(threadIdx.x) / 32;
    lane_ = static_cast<int>(threadIdx.x) % 32;
    const int group = warp_ / Config::kSplits;
    rows_ = count_ * Config::kUnits;
    // With no tokens no copy is issued: nobody would wait for it, and it would outlive the block.
    mine_ = group < rows_ && tokens > 0 ? (rows_ - group + kGroups - 1) / kGroups : 0;
    begin_ = kSplitLength * (warp_ % Config::kSplits);
    if (begin_ > Config::kLength) begin_ = Config::kLength;
    length_ = Config::kLength - begin_ < kSplitLength ? Config::kLength - begin_ : kSplitLength;
    tiles_ = kTiles && tokens > 1;
    const GemvLayout layout =
        gemv_layout({Config::kWarps, rows_, Config::kSplits, tokens,
                     shared_operand(rounded(tokens)) ? kTokenBytes : 0, static_cast<int>(sizeof(T)),
                     Matrix::kStepLength, Matrix::kStepBytes, Config::kStageLength, Matrix::kPacked,
                     tiles_, kPipelined, Config::kStages});
    rows_at_once_ = layout.rows_at_once;
    stage_length_ = layout.stage_length;
    splits_ = layout.splits;
    sums_ = reinterpret_cast<float*>(memory + layout.sums);
    tile_sums_ = reinterpret_cast<float*>(memory + layout.tile_sums);
    operand_ = reinterpret_cast<T*>(memory + layout.operand);
#if SINTER_HAS_BULK_COPY
    stage_bytes_ = layout.stage_bytes;
    run_bytes_ = layout.run_bytes;
    stages_ = layout.stages(dynamic_smem_size(), Config::kWarps);
    pipeline_ = memory + layout.pipelines + warp_ * stages_ * stage_bytes_;
    barriers_ = cvta_to_shared(memory) + 8 * warp_ * Config::kStages;
    if (tiles_) {
      if constexpr (!Matrix::kPacked) {
        next_.stage = warp_;
        settle();
      }
    } else if (mine_ > 0) {
      from_ = next_row();
    }
#endif
  }

  // Issues the copies of the first stages. fill() issues the others when the operand, or what the
  // prologue computes it from, has been loaded: issued earlier, they would delay these loads.
  // start() reads the matrix alone, so that it may stand before the kernel's griddepcontrol_wait().
  SINTER_DEVICE void start() {
#if SINTER_HAS_BULK_COPY
    if (lane_ == 0) {
      for (int s = 0; s < stages_; ++s) mbarrier_init(barriers_ + 8 * s, 1);
      fence_mbarrier_init();
    }
    __syncwarp();
    issue_until((kFirstQuarters * stages_ + 3) / 4);
#endif
  }
  // Issues the copies of the stages that start() left. All threads of a warp call it; a second call
  // does nothing.
  SINTER_DEVICE void fill() {
#if SINTER_HAS_BULK_COPY
    issue_until(stages_);
#endif
  }

  // The number of rows of the block, and the matrix row of the i-th. The order is unit by unit: the
  // first row of each of the block's classes, then the second of each, and so on. So neighbouring
  // threads write neighbouring results.
  SINTER_DEVICE int rows() const { return rows_; }
  SINTER_DEVICE int row(int i) const {
    if constexpr (Config::kUnits == 1) return first_ + i;
    int unit = 0;
#pragma unroll
    for (int u = 1; u < Config::kUnits; ++u) unit += i >= u * count_;
    return row_of_class<Config>(first_ + i - unit * count_, unit);
  }

 protected:
  static SINTER_DEVICE int classes_before(unsigned block) {
    return static_cast<int>(static_cast<math::u64>(kClasses) * block / Config::kBlocks);
  }
  // The matrix row of the block's `own`-th if its rows are numbered class by class.
  SINTER_DEVICE int row_of_block(int own) const {
    return row_of_class<Config>(first_ + own / Config::kUnits, own % Config::kUnits);
  }
  // The matrix row of this warp's k-th.
  SINTER_DEVICE int row_of_warp(int k) const {
    return row_of_block(warp_ / Config::kSplits + k * kGroups);
  }
  // The address of element `begin` of this warp's split of its k-th row.
  SINTER_DEVICE const unsigned char* place(int k, int begin) const {
    return Matrix::at(matrix_, row_of_warp(k), begin_ + begin);
  }

#if SINTER_HAS_BULK_COPY
  // Issues copies until `stages` of them in total have been issued.
  SINTER_DEVICE void issue_until(int stages) {
    for (; issued_ < stages; ++issued_) {
      if constexpr (kTiles && !Matrix::kPacked) {
        if (tiles_) {
          issue_tile();
          continue;
        }
      }
      issue();
    }
  }
  // The position of the next copy: the variables of nested loops, the outermost first.
  //   without tiles   first   rows of the warp, rows_at_once_ of them together
  //                   begin   runs of the split, by their first element
  //   with tiles      first   rows of the block, kTileGroup tiles of them together
  //                   row     shares of the warp
  //                   stage   runs of kTileStageLength elements, by number
  //                   tile    tiles of those read together
  struct Cursor {
    int first = 0, row = 0, begin = 0, stage = 0, tile = 0;
  };
  SINTER_DEVICE void advance_tile() {
    if (++next_.tile < kTileGroup && next_.first + next_.tile * kTileRows < rows_) return;
    next_.tile = 0;
    next_.stage += kTileWarps;
    settle();
  }
  // Moves on to the next share, or to the next tiles, if this one has no more runs.
  SINTER_DEVICE void settle() {
    if (warp_ * kTileStageLength >= Config::kLength) next_.first = rows_;  // the warp has no runs
    while (next_.stage * kTileStageLength >= Config::kLength && next_.first < rows_) {
      next_.row = (next_.row + 1) % kShares;
      next_.stage = warp_ + next_.row * Config::kWarps;
      if (next_.row == 0) next_.first += kTileGroup * kTileRows;
    }
  }
  // Issues the copies of the next run of a tile: each lane copies one row.
  SINTER_DEVICE void issue_tile() {
    if (next_.first >= rows_) return;
    const int left = Config::kLength - next_.stage * kTileStageLength;
    const int bytes =
        (left < kTileStageLength ? left : kTileStageLength) * static_cast<int>(sizeof(T));
    const int first = next_.first + next_.tile * kTileRows;
    const int rows = rows_ - first < kTileRows ? rows_ - first : kTileRows;
    if (lane_ == 0) mbarrier_arrive_expect_tx(barriers_ + 8 * next_stage_, rows * bytes);
    __syncwarp();
    if (lane_ < rows) {
      const long long row = row_of_block(first + lane_);
      cp_async_bulk_evict_first(cvta_to_shared(pipeline_) + next_stage_ * stage_bytes_ +
                                    lane_ * kTileStageLength * static_cast<int>(sizeof(T)),
                                matrix_ + row * Config::kLength + next_.stage * kTileStageLength,
                                bytes, barriers_ + 8 * next_stage_);
    }
    if (++next_stage_ == stages_) next_stage_ = 0;
    advance_tile();
  }
  // The address that this lane copies from next, in one of the rows that are read together.
  SINTER_DEVICE const unsigned char* next_row() const {
    const int last = mine_ - 1 - next_.first;
    const int row = lane_ < rows_at_once_ ? lane_ : 0;
    return place(next_.first + (row < last ? row : last), 0);
  }
  // Issues the copies of the next run of the rows that are read together: a lane copies one row.
  SINTER_DEVICE void issue() {
    if (next_.first >= mine_ || length_ == 0) return;
    const int left = length_ - next_.begin, rows_left = mine_ - next_.first;
    const int rows = rows_left < rows_at_once_ ? rows_left : rows_at_once_;
    const int bytes =
        Matrix::bytes(begin_ + next_.begin, left < stage_length_ ? left : stage_length_);
    const SharedAddress barrier = barriers_ + 8 * next_stage_;
    if (lane_ == 0) mbarrier_arrive_expect_tx(barrier, rows * bytes);
    __syncwarp();
    if (lane_ < rows)
      cp_async_bulk_evict_first(
          cvta_to_shared(pipeline_) + next_stage_ * stage_bytes_ + lane_ * run_bytes_, from_, bytes,
          barrier);
    if (++next_stage_ == stages_) next_stage_ = 0;
    next_.begin += stage_length_;
    from_ += run_bytes_;
    if (next_.begin < length_) return;
    next_.begin = 0;
    next_.first += rows_at_once_;
    if (next_.first < mine_) from_ = next_row();
  }
  // Waits for the oldest stage that is not consumed and returns its elements.
  SINTER_DEVICE const unsigned char* wait() {
    mbarrier_try_wait_parity(barriers_ + 8 * stage_, phase_);
    const unsigned char* elements = pipeline_ + stage_ * stage_bytes_;
    if (++stage_ == stages_) {
      stage_ = 0;
      phase_ ^= 1;
    }
    return elements;
  }
#endif

  const typename Matrix::Element* matrix_;
  int tokens_, first_, count_, warp_, lane_;
  int rows_, mine_;                  // matrix rows of the block, of this warp
  int begin_, length_;               // this warp's split of a row, in elements
  int rows_at_once_, stage_length_;  // rows that a warp reads together, elements of a stage
  int splits_;                       // sums of a row and token: its splits, or 1 with tiles
  bool tiles_;
  float *sums_, *tile_sums_;
  T* operand_;
#if SINTER_HAS_BULK_COPY
  unsigned char* pipeline_;  // the warp's stages
  SharedAddress barriers_;   // one for each stage
  int stages_, stage_bytes_, run_bytes_;
  Cursor next_;                // what the next copy loads
  const unsigned char* from_;  // the address of that, without tiles
  int next_stage_ = 0;         // the stage that it fills
  int issued_ = 0;             // copies that start() and fill() issued
  int stage_ = 0;              // the stage that is consumed next
  unsigned phase_ = 0;         // of that stage's barrier
#endif
};

}  // namespace sinter
