// matvec: products of a matrix and a few rows, in the order of ir/matvec_order.h, at the speed at
// which the matrix can be read.
//
// A block has a run of neighbouring results, and streams the rows of the matrix that they need. On
// sm_90 every warp streams through a ring of its own in shared memory, filled by bulk copies: they
// start before the block waits for the kernels ahead of it, so that the matrix is on its way while
// those still run and while the operand is made ready. Below that, warps load from memory as they go.
//
// Shared memory: the rings' barriers, the sums, the operand, the rings.
#pragma once

#include "ir/matvec_order.h"
#include "sinter/vector.cuh"

#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 900
#define SINTER_BULK_COPIES 1
#endif

namespace sinter {

// What a kernel's text fixes.
//   Element             of the matrix and the operand
//   kLength             elements of a row (K), a multiple of 8
//   kRows, kUnits       rows of the matrix (M); of them rows r, r + M / kUnits, ... belong together
//   kSplits             parts of a row, a power of two
//   kTokens             the most tokens
//   kPiece              elements of a copy, a multiple of 256
//   kWarps, kBytes      of a block; dynamic shared memory
//   kOperandBytes       of it, the most that the operand may take
//   kDirect             the operand is copied from memory, not made by the kernel

constexpr int kMatvecStages = 4;               // the most pieces of a warp in flight
constexpr int kMatvecStep = 8 * kMatvecLanes;  // elements that a warp takes at once

// Eight elements, from shared memory or another place that the compiler sees.
template <typename T>
SINTER_DEVICE void widen(float (&out)[8], const T* p, uint4 words) {
  const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[2 * k] = low_half(p, word[k] & 0xffffu);
    out[2 * k + 1] = low_half(p, word[k] >> 16);
  }
}
SINTER_DEVICE void read_chunk(float (&out)[8], const f16* p) {
  widen(out, p, *reinterpret_cast<const uint4*>(p));
}
SINTER_DEVICE void read_chunk(float (&out)[8], const bf16* p) {
  widen(out, p, *reinterpret_cast<const uint4*>(p));
}
SINTER_DEVICE void read_chunk(float (&out)[8], const float* p) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const float4 words = reinterpret_cast<const float4*>(p)[k];
    out[4 * k] = words.x;
    out[4 * k + 1] = words.y;
    out[4 * k + 2] = words.z;
    out[4 * k + 3] = words.w;
  }
}

// The operand in shared memory, for the code that writes its rows.
template <typename T>
struct SharedRows {
  T* at;
  SINTER_DEVICE SharedRows operator+(long long n) const { return {at + n}; }
};
template <typename T>
SINTER_DEVICE void store(SharedRows<T> p, float x) {
  store(p.at, x);
}
template <typename T>
SINTER_DEVICE void store_chunk(SharedRows<T> p, const float (&in)[8]) {
  if constexpr (sizeof(T) == 2) {
    uint4 words;
    words.x = pack(p.at, in[0], in[1]);
    words.y = pack(p.at, in[2], in[3]);
    words.z = pack(p.at, in[4], in[5]);
    words.w = pack(p.at, in[6], in[7]);
    *reinterpret_cast<uint4*>(p.at) = words;
  } else {
#pragma unroll
    for (int k = 0; k < 2; ++k)
      reinterpret_cast<float4*>(p.at)[k] = make_float4(in[4 * k], in[4 * k + 1], in[4 * k + 2], in[4 * k + 3]);
  }
}
template <typename T, typename Element>
SINTER_DEVICE void store_chunk(SharedRows<T> p, const Packed<Element>& in) {
  float wide[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) wide[k] = in[k];
  store_chunk(p, wide);
}

// A block's sums, addressed like the whole result [tokens, kRows] in memory.
template <typename Config>
struct MatvecSums {
  const float* sums;  // [token][unit][result of the block][part]
  int first, count;   // results of the block
  long long at;
  SINTER_DEVICE MatvecSums operator+(long long n) const { return {sums, first, count, at + n}; }
};
template <typename Config>
SINTER_DEVICE float load(MatvecSums<Config> p) {
  constexpr int width = Config::kRows / Config::kUnits;
  const int at = static_cast<int>(p.at);
  const int token = at / Config::kRows, row = at % Config::kRows;
  const int unit = Config::kUnits == 1 ? 0 : row / width;
  const int own = row - unit * width - p.first;
  const float* parts = p.sums + ((token * Config::kUnits + unit) * p.count + own) * Config::kSplits;
  float sum = parts[0];
#pragma unroll
  for (int s = 1; s < Config::kSplits; ++s) sum = math::add(sum, parts[s]);
  return sum;
}

template <typename Config>
class Matvec {
  using T = typename Config::Element;
  static constexpr int kWidth = Config::kRows / Config::kUnits;
  static constexpr int kChunks = Config::kLength / 8;
  static constexpr int kPart = 8 * static_cast<int>(matvec_part(kChunks, Config::kSplits));
  static constexpr int kGroups = Config::kWarps / Config::kSplits;  // of warps that share a row
  static constexpr int kBarrierBytes = 8 * Config::kWarps * kMatvecStages;
  static constexpr bool kRing =
#ifdef SINTER_BULK_COPIES
      true;
#else
      false;
#endif

  // The operand of so many tokens stands in shared memory.
  static SINTER_DEVICE constexpr bool shared_operand(int tokens) {
    return !Config::kDirect ||
           tokens * Config::kLength * static_cast<int>(sizeof(T)) <= Config::kOperandBytes;
  }
  // Tokens are served by the next power of two: so many, and so many rows at once that what is read
  // of the operand serves.
  static SINTER_DEVICE int rounded(int tokens) { return tokens <= 2 ? tokens : tokens <= 4 ? 4 : 8; }
  static SINTER_DEVICE constexpr int rows_at_once(int tokens) {
    return tokens == 1 ? 1 : tokens == 2 ? 2 : 4;
  }
  static SINTER_DEVICE int aligned(int bytes) { return (bytes + 127) / 128 * 128; }

 public:
  SINTER_DEVICE Matvec(unsigned char* memory, const T* matrix, int tokens)
      : matrix_(matrix), tokens_(tokens) {
    const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
    first_ = static_cast<int>(static_cast<long long>(kWidth) * block / blocks);
    count_ = static_cast<int>(static_cast<long long>(kWidth) * (block + 1) / blocks) - first_;
    warp_ = static_cast<int>(threadIdx.x) / 32;
    lane_ = static_cast<int>(threadIdx.x) % 32;
    const int group = warp_ / Config::kSplits;
    rows_ = count_ * Config::kUnits;
    // Without tokens nothing is read: copies under way would outlive the block.
    mine_ = group < rows_ && tokens > 0 ? (rows_ - group + kGroups - 1) / kGroups : 0;
    begin_ = kPart * (warp_ % Config::kSplits);
    if (begin_ > Config::kLength) begin_ = Config::kLength;
    length_ = Config::kLength - begin_ < kPart ? Config::kLength - begin_ : kPart;
    together_ = rows_at_once(rounded(tokens));
    // Rows that are read at once have a piece each in flight: shorter pieces leave room for more.
    constexpr int short_piece = 1024 / static_cast<int>(sizeof(T));
    piece_ = together_ < 4 || Config::kPiece < short_piece ? Config::kPiece : short_piece;

    int at = kRing ? kBarrierBytes : 0;
    sums_ = reinterpret_cast<float*>(memory + at);
    at = aligned(at + 4 * tokens * rows_ * Config::kSplits);
    operand_ = reinterpret_cast<T*>(memory + at);
    if (shared_operand(rounded(tokens)))
      at = aligned(at + tokens * Config::kLength * static_cast<int>(sizeof(T)));
#ifdef SINTER_BULK_COPIES
    const int slot = piece_ * static_cast<int>(sizeof(T));
    stages_ = (Config::kBytes - at) / (slot * Config::kWarps);
    if (stages_ > kMatvecStages) stages_ = kMatvecStages;
    ring_ = memory + at + warp_ * stages_ * slot;
    barriers_ = address(memory) + 8 * warp_ * kMatvecStages;
#endif
  }

  // Lets the first pieces of the matrix come. Touches nothing that another kernel writes.
  SINTER_DEVICE void start() {
#ifdef SINTER_BULK_COPIES
    if (lane_ == 0) {
      for (int s = 0; s < stages_; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers_ + 8 * s) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    for (int s = 0; s < stages_; ++s) issue();
#endif
  }

  // Where the operand's rows are written; for kernels that make it. A barrier must follow.
  SINTER_DEVICE SharedRows<T> operand() const { return {operand_}; }
  // Takes the operand's rows from memory.
  SINTER_DEVICE void take(const T* rows) {
    if (!shared_operand(rounded(tokens_))) {
      operand_ = const_cast<T*>(rows);
      return;
    }
    constexpr int words = static_cast<int>(sizeof(T)) * 8 / 16;  // of 16 bytes, in a chunk
    const int all = tokens_ * kChunks * words;
    for (int i = static_cast<int>(threadIdx.x); i < all; i += 32 * Config::kWarps)
      reinterpret_cast<uint4*>(operand_)[i] = __ldg(reinterpret_cast<const uint4*>(rows) + i);
    __syncthreads();
  }

  // All sums of the block; ends with a barrier.
  SINTER_DEVICE MatvecSums<Config> run() {
    if (tokens_ == 1)
      run_rows<1>();
    else if constexpr (Config::kTokens > 1) {
      if (tokens_ == 2)
        run_rows<2>();
      else if constexpr (Config::kTokens > 2) {
        if (tokens_ <= 4)
          run_rows<4>();
        else if constexpr (Config::kTokens > 4)
          run_rows<8>();
      }
    }
    __syncthreads();
    return {sums_, first_, count_, 0};
  }

  // Results of the block: first() .. first() + count() - 1 of every token.
  SINTER_DEVICE int first() const { return first_; }
  SINTER_DEVICE int count() const { return count_; }

 private:
  // The matrix row of this warp's k-th.
  SINTER_DEVICE int row_of(int k) const {
    const int own = warp_ / Config::kSplits + k * kGroups;
    return Config::kUnits == 1 ? first_ + own
                               : own % Config::kUnits * kWidth + first_ + own / Config::kUnits;
  }
  SINTER_DEVICE const T* place(int k, int piece) const {
    return matrix_ + static_cast<long long>(row_of(k)) * Config::kLength + begin_ + piece * piece_;
  }

#ifdef SINTER_BULK_COPIES
  static SINTER_DEVICE unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }
  // Lets the stream's next piece come: rows together_ at a time, of those the pieces in turn.
  SINTER_DEVICE void issue() {
    if (next_first_ >= mine_ || length_ == 0) return;
    if (lane_ == 0) {
      const int left = length_ - next_piece_ * piece_;
      const unsigned bytes = static_cast<unsigned>((left < piece_ ? left : piece_) * static_cast<int>(sizeof(T)));
      const unsigned barrier = barriers_ + 8 * next_slot_;
      const unsigned to = address(ring_) + next_slot_ * piece_ * static_cast<int>(sizeof(T));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
      // The matrix is read once: what else the cache holds should outlive it.
      asm volatile(
          "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
          "[%0], [%1], %2, [%3], policy;\n}" ::"r"(to),
          "l"(place(next_first_ + next_row_, next_piece_)), "r"(bytes), "r"(barrier)
          : "memory");
    }
    if (++next_slot_ == stages_) next_slot_ = 0;
    if (++next_row_ < together_ && next_first_ + next_row_ < mine_) return;
    next_row_ = 0;
    if (++next_piece_ * piece_ < length_) return;
    next_piece_ = 0;
    next_first_ += together_;
  }
  // The oldest piece that is not taken, when it is there.
  SINTER_DEVICE const T* wait() {
    const unsigned barrier = barriers_ + 8 * slot_;
    unsigned done = 0;
    while (done == 0)
      asm volatile(
          "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(barrier), "r"(phase_)
          : "memory");
    const T* piece = reinterpret_cast<const T*>(ring_) + slot_ * piece_;
    if (++slot_ == stages_) {
      slot_ = 0;
      phase_ ^= 1;
    }
    return piece;
  }
#endif

  static SINTER_DEVICE void read_matrix(float (&out)[8], const T* p) {
    if constexpr (kRing)
      read_chunk(out, p);
    else
      load_chunk(out, p);
  }

  template <int tokens>
  SINTER_DEVICE void run_rows() {
    constexpr int rows = rows_at_once(tokens);
    constexpr bool shared = shared_operand(tokens);
    const T* operand = operand_;
#ifdef SINTER_BULK_COPIES
    if constexpr (shared) __builtin_assume(__isShared(operand));
#endif
    for (int k = 0; k < mine_; k += rows) {
      const int have = mine_ - k < rows ? mine_ - k : rows;
      float sum[rows][tokens] = {};
      for (int piece = 0; piece * piece_ < length_; ++piece) {
        const T* w[rows];
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          w[r] = nullptr;
          if (r >= have) continue;
#ifdef SINTER_BULK_COPIES
          w[r] = wait();
#else
          w[r] = place(k + r, piece);
#endif
        }
        const int left = length_ - piece * piece_, length = left < piece_ ? left : piece_;
        const T* x = operand + begin_ + piece * piece_;
#pragma unroll 4
        for (int i = 8 * lane_; i < length; i += kMatvecStep) {
          float a[rows][8];
#pragma unroll
          for (int r = 0; r < rows; ++r)
            if (r < have) read_matrix(a[r], w[r] + i);
#pragma unroll
          for (int t = 0; t < tokens; ++t) {
            float b[8];
            const int token = t < tokens_ ? t : tokens_ - 1;
            read_chunk(b, x + token * Config::kLength + i);
#pragma unroll
            for (int r = 0; r < rows; ++r)
#pragma unroll
              for (int e = 0; e < 8; ++e)
                if (r < have) sum[r][t] = math::fma(a[r][e], b[e], sum[r][t]);
          }
        }
#ifdef SINTER_BULK_COPIES
        __syncwarp();
        for (int r = 0; r < have; ++r) issue();
#endif
      }
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        if (r >= have) continue;
        const int own = warp_ / Config::kSplits + (k + r) * kGroups;
        const int at = (own % Config::kUnits * count_ + own / Config::kUnits) * Config::kSplits + warp_ % Config::kSplits;
#pragma unroll
        for (int t = 0; t < tokens; ++t) {
#pragma unroll
          for (int stride = 1; stride < kMatvecLanes; stride *= 2)
            sum[r][t] = math::add(sum[r][t], __shfl_xor_sync(0xffffffffu, sum[r][t], stride));
          if (lane_ == 0 && t < tokens_) sums_[t * rows_ * Config::kSplits + at] = sum[r][t];
        }
      }
    }
  }

  const T* matrix_;
  int tokens_, first_, count_, warp_, lane_;
  int rows_, mine_;           // matrix rows of the block, of this warp
  int begin_, length_;        // this warp's part of a row
  int together_, piece_;      // rows at once, elements of a piece
  float* sums_;
  T* operand_;
#ifdef SINTER_BULK_COPIES
  unsigned char* ring_;
  unsigned barriers_;
  int stages_;
  int next_first_ = 0, next_row_ = 0, next_piece_ = 0, next_slot_ = 0;  // what is issued next
  int slot_ = 0;                                                        // what is taken next
  unsigned phase_ = 0;
#endif
};

}  // namespace sinter
