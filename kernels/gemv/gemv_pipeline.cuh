// How a gemv's block comes by its part of the matrix: which rows are its own, where its shared
// memory keeps what, and in which order the pieces of each warp come.
//
// On sm_90 and sm_100 a warp's pieces come through a ring of its own in shared memory, filled by
// bulk copies. gemv.cuh takes them in the order in which they are sent for here.
#pragma once

#include "kernels/common/bulk_copies.cuh"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/gemv_values.cuh"
#include "kernels/gemv/order.h"

namespace sinter {

// What a kernel's text fixes.
//   Element             of the matrix and the operand
//   kLength             elements of a row (K), a multiple of 8
//   kRows               of the matrix
//   kUnits, kStride     rows of a class, and how far apart they are
//   kSplits             parts of a row, a power of two
//   kTokens             the most tokens
//   kStageLength              elements of a copy, a multiple of 256
//   kBlocks             of the grid, at most one for each class
//   kWarps              of a block: kTileWarps or a half of them
//   kStages             the most pieces of a warp in flight
//   kOperandBytes       of shared memory, the most that the operand may take
//   kDirect             the operand is copied from memory, not made by the kernel

template <typename Config>
class GemvPipeline {
 protected:
  using T = typename Config::Element;
  static constexpr int kClasses = Config::kRows / Config::kUnits;
  static constexpr int kChunks = Config::kLength / 8;
  static constexpr int kPart = 8 * static_cast<int>(split_chunks(kChunks, Config::kSplits));
  static constexpr int kGroups = Config::kWarps / Config::kSplits;  // of warps that share a row
  static constexpr int kShares = kTileWarps / Config::kWarps;       // of a tile, that a warp takes
  // Tiles that a warp takes side by side: what it reads of the operand serves them all. One where a
  // block has no more: the halves of tile_sums_ take turns within a group. (Of four the sums do not
  // fit into the registers: one H200, a token of 8 sequences of Llama-2-7B 5.65 ms, with two 5.39.)
  static constexpr int kBlockRows =
      (kClasses + Config::kBlocks - 1) / Config::kBlocks * Config::kUnits;  // the most
  static constexpr int kTileGroup = kBlockRows > kTileRows ? 2 : 1;
  static constexpr bool kPipelined =
#if SINTER_HAS_BULK_COPY
      true;
#else
      false;
#endif

  // Quarters of its ring, up to whole pieces, that a warp sends for in start(). (One H200, a token
  // of GPT-NeoX-2.8B: 1.75 ms; with a quarter more of either 1.76, with all quarters 1.81.)
  static constexpr int kFirstQuarters = Config::kDirect ? 3 : 2;

  // The operand of so many tokens stands in shared memory.
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
    // Without tokens nothing is read: copies under way would outlive the block.
    mine_ = group < rows_ && tokens > 0 ? (rows_ - group + kGroups - 1) / kGroups : 0;
    begin_ = kPart * (warp_ % Config::kSplits);
    if (begin_ > Config::kLength) begin_ = Config::kLength;
    length_ = Config::kLength - begin_ < kPart ? Config::kLength - begin_ : kPart;
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
      next_.stage_length = warp_;
      settle();
    } else if (mine_ > 0) {
      from_ = place(0, 0);
    }
#endif
  }

  // Sends for the first pieces of the matrix, as many as leave the way free for what the operand is
  // made of; fill() sends for the rest of the ring, once that is loaded. Touches nothing that
  // another kernel writes.
  SINTER_DEVICE void start() {
#if SINTER_HAS_BULK_COPY
    if (lane_ == 0) {
      for (int s = 0; s < stages_; ++s) init_barrier(barriers_ + 8 * s);
      show_barriers();
    }
    __syncwarp();
    send((kFirstQuarters * stages_ + 3) / 4);
#endif
  }
  // All threads of a warp call it, as often as they like.
  SINTER_DEVICE void fill() {
#if SINTER_HAS_BULK_COPY
    send(stages_);
#endif
  }

  // Rows of the block, and which rows of the matrix they are: a unit's neighbours are neighbours.
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
  // The matrix row that is the block's `own`-th, class by class.
  SINTER_DEVICE int row_of_block(int own) const {
    return gemv_row<Config>(first_ + own / Config::kUnits, own % Config::kUnits);
  }
  // Element `begin` of this warp's part of its k-th row.
  SINTER_DEVICE const T* place(int k, int begin) const {
    const int row = row_of_block(warp_ / Config::kSplits + k * kGroups);
    return matrix_ + static_cast<long long>(row) * Config::kLength + begin_ + begin;
  }

#if SINTER_HAS_BULK_COPY
  // Sends for pieces until `pieces` have been sent for.
  SINTER_DEVICE void send(int pieces) {
    for (; sent_ < pieces; ++sent_) {
      if (tiles_)
        issue_tile();
      else
        issue();
    }
  }
  // A place in the warp's stream: rows rows_at_once_ at a time, of those the pieces in turn, from
  // element `begin` of the part on. Of tiles, for each group the warp's shares (`row`) in turn, for
  // each share its pieces, for each piece the tiles.
  struct Cursor {
    int first = 0, row = 0, begin = 0, piece = 0, tile = 0;
  };
  SINTER_DEVICE void advance_tile() {
    if (++next_.tile < kTileGroup && next_.first + next_.tile * kTileRows < rows_) return;
    next_.tile = 0;
    next_.piece += kTileWarps;
    settle();
  }
  // To the next share, or group, if this one has no more pieces.
  SINTER_DEVICE void settle() {
    if (warp_ * kTileStageLength >= Config::kLength) next_.first = rows_;  // no piece is this warp's
    while (next_.piece * kTileStageLength >= Config::kLength && next_.first < rows_) {
      next_.row = (next_.row + 1) % kShares;
      next_.stage_length = warp_ + next_.row * Config::kWarps;
      if (next_.row == 0) next_.first += kTileGroup * kTileRows;
    }
  }
  // Lets the next piece of a tile come: a lane copies a row.
  SINTER_DEVICE void issue_tile() {
    if (next_.first >= rows_) return;
    const int left = Config::kLength - next_.piece * kTileStageLength;
    const int bytes = (left < kTileStageLength ? left : kTileStageLength) * static_cast<int>(sizeof(T));
    const int first = next_.first + next_.tile * kTileRows;
    const int rows = rows_ - first < kTileRows ? rows_ - first : kTileRows;
    if (lane_ == 0) expect_bytes(barriers_ + 8 * next_stage_, rows * bytes);
    __syncwarp();
    if (lane_ < rows) {
      const long long row = row_of_block(first + lane_);
      copy_once(shared_address(pipeline_) + next_stage_ * stage_bytes_ +
                    lane_ * kTileStageLength * static_cast<int>(sizeof(T)),
                matrix_ + row * Config::kLength + next_.piece * kTileStageLength, bytes,
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
  // Lets the stream's next piece come.
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
  // The oldest piece that is not taken, when it is there.
  SINTER_DEVICE const T* wait() {
    wait_for_bytes(barriers_ + 8 * stage_, phase_);
    const T* piece = reinterpret_cast<const T*>(pipeline_ + stage_ * stage_bytes_);
    if (++stage_ == stages_) {
      stage_ = 0;
      phase_ ^= 1;
    }
    return piece;
  }
#endif

  const T* matrix_;
  int tokens_, first_, count_, warp_, lane_;
  int rows_, mine_;       // matrix rows of the block, of this warp
  int begin_, length_;    // this warp's part of a row
  int rows_at_once_, stage_length_;  // rows at once, elements of a piece
  int splits_;             // of a row's sum
  bool tiles_;
  float *sums_, *tile_sums_;
  T* operand_;
#if SINTER_HAS_BULK_COPY
  unsigned char* pipeline_;
  SharedAddress barriers_;
  int stages_;
  Cursor next_;         // what is sent for next
  const T* from_;       // and from where, but for tiles
  int next_stage_ = 0;  // and where to
  int sent_ = 0;        // pieces, up to a full ring
  int stage_bytes_;            // bytes of a piece's place
  int stage_ = 0;       // what is taken next
  unsigned phase_ = 0;
#endif
};

}  // namespace sinter
