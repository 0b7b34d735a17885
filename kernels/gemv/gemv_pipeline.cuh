// The load pipeline of a gemv's matrix: which rows a block has, the layout of its shared memory,
// and the order in which a warp loads.
//
// Where the device has bulk copies, each warp has a multistage pipeline in shared memory. A stage
// holds a run of elements of one row, or of each row of a tile. issue() starts the copy of the next
// stage, wait() returns the oldest stage that is not consumed; both follow the same order.
#pragma once

#include "kernels/common/bulk_copies.cuh"
#include "kernels/gemv/gemv_values.cuh"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/order.h"

namespace sinter {

// Config, the constants of a kernel:
//   Element             of the matrix and the operand
//   kLength             elements of a row (K), a multiple of 8
//   kRows               of the matrix
//   kUnits, kStride     rows of a class, and the distance between them
//   kSplits             split-K: warps that share a row, a power of two
//   kTokens             the largest number of tokens
//   kStageLength        elements of a stage, a multiple of 256
//   kStages             the largest number of stages of a warp
//   kBlocks             of the grid, at most one for each class
//   kWarps              of a block: kTileWarps or half of them
//   kOperandBytes       of shared memory, the most that the operand may take
//   kDirect             the operand is copied from memory, not computed by a prologue

template <typename Config>
class GemvPipeline {
 protected:
  using T = typename Config::Element;
  static constexpr int kClasses = Config::kRows / Config::kUnits;
  static constexpr int kChunks = Config::kLength / 8;
  static constexpr int kSplitLength = 8 * static_cast<int>(split_chunks(kChunks, Config::kSplits));
  static constexpr int kGroups = Config::kWarps / Config::kSplits;  // of warps that share a row
  static constexpr int kShares = kTileWarps / Config::kWarps;       // of a tile, that a warp takes
  // Tiles that a warp multiplies with the same operand registers: two, or one where a block has no
  // more; the halves of tile_sums_ alternate within a group. (The sums of four do not fit into the
  // registers: one H200, a token of 8 sequences of Llama-2-7B 5.65 ms, with two 5.39.)
  static constexpr int kBlockRows =
      (kClasses + Config::kBlocks - 1) / Config::kBlocks * Config::kUnits;  // the most
  static constexpr int kTileGroup = kBlockRows > kTileRows ? 2 : 1;
  static constexpr bool kPipelined =
#if SINTER_HAS_BULK_COPY
      true;
#else
      false;
#endif

  // Quarters of the stages, rounded up, whose copies start() issues. (One H200, a token of
  // GPT-NeoX-2.8B: 1.75 ms; with a quarter more of either 1.76, with all quarters 1.81.)
  static constexpr int kFirstQuarters = Config::kDirect ? 3 : 2;

  // Whether the operand of so many tokens is in shared memory.
  static SINTER_DEVICE constexpr bool shared_operand(int tokens) {
    return !Config::kDirect ||
           tokens * Config::kLength * static_cast<int>(sizeof(T)) <= Config::kOperandBytes;
  }
  static constexpr bool kTiles =
#if SINTER_HAS_MMA
      sizeof(T) == 2;
#else
      false;
#endif
  // Tokens that one reading serves.
  static SINTER_DEVICE constexpr int rounded(int tokens) {
    return tokens == 1 ? 1 : kMaxGemvTokens;
  }

 public:
  SINTER_DEVICE GemvPipeline(unsigned char* memory, const T* matrix, int tokens)
      : matrix_(matrix), tokens_(tokens) {
    first_ = classes_before(blockIdx.x);
    count_ = classes_before(blockIdx.x + 1) - first_;
    warp_ = static_cast<int>(threadIdx.x) / 32;
    lane_ = static_cast<int>(threadIdx.x) % 32;
    const int group = warp_ / Config::kSplits;
    rows_ = count_ * Config::kUnits;
    // Without tokens nothing is loaded: a copy in flight would outlive the block.
    mine_ = group < rows_ && tokens > 0 ? (rows_ - group + kGroups - 1) / kGroups : 0;
    begin_ = kSplitLength * (warp_ % Config::kSplits);
    if (begin_ > Config::kLength) begin_ = Config::kLength;
    length_ = Config::kLength - begin_ < kSplitLength ? Config::kLength - begin_ : kSplitLength;
    tiles_ = kTiles && tokens > 1;
    const GemvLayout layout = gemv_layout(
        {Config::kWarps, rows_, Config::kSplits, tokens,
         shared_operand(rounded(tokens)) ? Config::kLength * static_cast<int>(sizeof(T)) : 0,
         static_cast<int>(sizeof(T)), Config::kStageLength, tiles_, kPipelined, Config::kStages});
    rows_at_once_ = layout.rows_at_once;
    stage_length_ = layout.stage_length;
    splits_ = layout.splits;
    sums_ = reinterpret_cast<float*>(memory + layout.sums);
    tile_sums_ = reinterpret_cast<float*>(memory + layout.tile_sums);
    operand_ = reinterpret_cast<T*>(memory + layout.operand);
#if SINTER_HAS_BULK_COPY
    stage_bytes_ = layout.stage_bytes;
    stages_ = layout.stages(dynamic_shared_bytes(), Config::kWarps);
    pipeline_ = memory + layout.pipelines + warp_ * stages_ * stage_bytes_;
    barriers_ = shared_address(memory) + 8 * warp_ * Config::kStages;
    if (tiles_) {
      next_.stage = warp_;
      settle();
    } else if (mine_ > 0) {
      from_ = place(0, 0);
    }
#endif
  }

  // Issues the copies of the first stages. The others follow in fill(), when the prologue has
  // loaded its inputs: earlier they would delay these loads. Reads the matrix alone, so that it may
  // stand before the kernel's wait.
  SINTER_DEVICE void start() {
#if SINTER_HAS_BULK_COPY
    if (lane_ == 0) {
      for (int s = 0; s < stages_; ++s) init_barrier(barriers_ + 8 * s);
      show_barriers();
    }
    __syncwarp();
    issue_until((kFirstQuarters * stages_ + 3) / 4);
#endif
  }
  // Issues the copies of all stages that are not under way. All threads of a warp call it; a second
  // call does nothing.
  SINTER_DEVICE void fill() {
#if SINTER_HAS_BULK_COPY
    issue_until(stages_);
#endif
  }

  // The number of rows of the block, and the matrix row of the i-th. Rows of one unit follow one
  // another, so that neighbouring threads write neighbouring results.
  SINTER_DEVICE int rows() const { return rows_; }
  SINTER_DEVICE int row(int i) const {
    if constexpr (Config::kUnits == 1) return first_ + i;
    int unit = 0;
#pragma unroll
    for (int u = 1; u < Config::kUnits; ++u) unit += i >= u * count_;
    return gemv_row<Config>(first_ + i - unit * count_, unit);
  }

 protected:
  static SINTER_DEVICE int classes_before(unsigned block) {
    return static_cast<int>(static_cast<math::u64>(kClasses) * block / Config::kBlocks);
  }
  // The matrix row that is the block's `own`-th where a class's rows follow one another.
  SINTER_DEVICE int row_of_block(int own) const {
    return gemv_row<Config>(first_ + own / Config::kUnits, own % Config::kUnits);
  }
  // Element `begin` of this warp's split of its k-th row.
  SINTER_DEVICE const T* place(int k, int begin) const {
    const int row = row_of_block(warp_ / Config::kSplits + k * kGroups);
    return matrix_ + static_cast<long long>(row) * Config::kLength + begin_ + begin;
  }

#if SINTER_HAS_BULK_COPY
  // Issues copies until `stages` have been issued.
  SINTER_DEVICE void issue_until(int stages) {
    for (; issued_ < stages; ++issued_) {
      if (tiles_)
        issue_tile();
      else
        issue();
    }
  }
  // What the next copy loads. Without tiles: for each `rows_at_once_` rows from `first` on, for
  // each stage from element `begin` of the split on, each `row`. With tiles: for each group of
  // tiles from row `first` on, for each share (`row`) of the warp, for each `stage` of the row,
  // each `tile`.
  struct Cursor {
    int first = 0, row = 0, begin = 0, stage = 0, tile = 0;
  };
  SINTER_DEVICE void advance_tile() {
    if (++next_.tile < kTileGroup && next_.first + next_.tile * kTileRows < rows_) return;
    next_.tile = 0;
    next_.stage += kTileWarps;
    settle();
  }
  // Moves on to the next share, or group, if this one has no more stages.
  SINTER_DEVICE void settle() {
    if (warp_ * kTileStageLength >= Config::kLength)
      next_.first = rows_;  // no stage is this warp's
    while (next_.stage * kTileStageLength >= Config::kLength && next_.first < rows_) {
      next_.row = (next_.row + 1) % kShares;
      next_.stage = warp_ + next_.row * Config::kWarps;
      if (next_.row == 0) next_.first += kTileGroup * kTileRows;
    }
  }
  // Issues the copy of the next stage of a tile: a lane copies a row.
  SINTER_DEVICE void issue_tile() {
    if (next_.first >= rows_) return;
    const int left = Config::kLength - next_.stage * kTileStageLength;
    const int bytes =
        (left < kTileStageLength ? left : kTileStageLength) * static_cast<int>(sizeof(T));
    const int first = next_.first + next_.tile * kTileRows;
    const int rows = rows_ - first < kTileRows ? rows_ - first : kTileRows;
    if (lane_ == 0) expect_bytes(barriers_ + 8 * next_stage_, rows * bytes);
    __syncwarp();
    if (lane_ < rows) {
      const long long row = row_of_block(first + lane_);
      copy_once(shared_address(pipeline_) + next_stage_ * stage_bytes_ +
                    lane_ * kTileStageLength * static_cast<int>(sizeof(T)),
                matrix_ + row * Config::kLength + next_.stage * kTileStageLength, bytes,
                barriers_ + 8 * next_stage_);
    }
    if (++next_stage_ == stages_) next_stage_ = 0;
    advance_tile();
  }
  SINTER_DEVICE void advance() {
    if (++next_.row >= rows_at_once_ || next_.first + next_.row >= mine_) {
      next_.row = 0;
      next_.begin += stage_length_;
      if (next_.begin >= length_) {
        next_.begin = 0;
        next_.first += rows_at_once_;
      }
    }
    if (rows_at_once_ == 1 && next_.begin > 0)
      from_ += stage_length_;
    else
      from_ = place(next_.first + next_.row, next_.begin);
  }
  // Issues the copy of the next stage of a row.
  SINTER_DEVICE void issue() {
    if (next_.first >= mine_ || length_ == 0) return;
    if (lane_ == 0) {
      const int left = length_ - next_.begin;
      const int bytes = (left < stage_length_ ? left : stage_length_) * static_cast<int>(sizeof(T));
      expect_bytes(barriers_ + 8 * next_stage_, bytes);
      copy_once(shared_address(pipeline_) + next_stage_ * stage_bytes_, from_, bytes,
                barriers_ + 8 * next_stage_);
    }
    if (++next_stage_ == stages_) next_stage_ = 0;
    advance();
  }
  // Waits for the oldest stage that is not consumed and returns its elements.
  SINTER_DEVICE const T* wait() {
    wait_for_bytes(barriers_ + 8 * stage_, phase_);
    const T* elements = reinterpret_cast<const T*>(pipeline_ + stage_ * stage_bytes_);
    if (++stage_ == stages_) {
      stage_ = 0;
      phase_ ^= 1;
    }
    return elements;
  }
#endif

  const T* matrix_;
  int tokens_, first_, count_, warp_, lane_;
  int rows_, mine_;                  // matrix rows of the block, of this warp
  int begin_, length_;               // this warp's split of a row, in elements
  int rows_at_once_, stage_length_;  // rows that a warp reads together, elements of a stage
  int splits_;                       // sums of a row that are added at the end
  bool tiles_;
  float *sums_, *tile_sums_;
  T* operand_;
#if SINTER_HAS_BULK_COPY
  unsigned char* pipeline_;  // the warp's stages
  SharedAddress barriers_;   // one for each stage
  int stages_, stage_bytes_;
  Cursor next_;         // what the next copy loads
  const T* from_;       // its address, without tiles
  int next_stage_ = 0;  // the stage that it fills
  int issued_ = 0;      // copies before the first is consumed
  int stage_ = 0;       // the stage that is consumed next
  unsigned phase_ = 0;  // of its barrier
#endif
};

}  // namespace sinter
