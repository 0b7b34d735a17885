// A row of logits as `sample` reads it.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/sample/order.h"

namespace sinter {

// A row in chunks of 8 elements, which begin at multiples of 8 elements in memory: loaded whole,
// but for the first and the last one. Elements of these that are not the row's are NaN: of weight
// 0, and last by sampling_key, so that the k < count elements of a top_k are found before them.
template <typename T>
class LogitRow {
 public:
  SINTER_DEVICE LogitRow(const T* x, int count) : x_(x), count_(count) {
    before_ = static_cast<int>(reinterpret_cast<math::u64>(x) / sizeof(T) % 8);
  }
  SINTER_DEVICE int chunks() const { return (count_ + before_ + 7) / 8; }
  // Whole chunks: whole_begin() .. whole_end() - 1.
  SINTER_DEVICE int whole_begin() const { return before_ > 0 ? 1 : 0; }
  SINTER_DEVICE int whole_end() const { return (count_ + before_) / 8; }
  // The number of a chunk's element in the row, and whether the row has it.
  SINTER_DEVICE int index(int chunk, int e) const { return 8 * chunk - before_ + e; }
  SINTER_DEVICE bool has(int i) const { return i >= 0 && i < count_; }

  SINTER_DEVICE float operator[](int i) const { return sinter::load(x_ + i); }
  SINTER_DEVICE void load_whole(float (&out)[8], int chunk) const {
    load_chunk(out, x_ + index(chunk, 0));
  }
  SINTER_DEVICE void load(float (&out)[8], int chunk) const {
    if (chunk >= whole_begin() && chunk < whole_end()) return load_whole(out, chunk);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      out[e] = has(index(chunk, e)) ? (*this)[index(chunk, e)] : math::bits_float(0x7fc00000u);
  }

 private:
  const T* x_;
  int count_, before_;  // elements of the first chunk that are not the row's
};

// The shift of the lowest digit that tells keys apart: the key of a widened f16 or bf16 ends in 13
// or 16 equal bits, which follow from its sign. `p` tells the type.
SINTER_DEVICE constexpr int lowest_digit(const float*) { return 0; }
SINTER_DEVICE constexpr int lowest_digit(const f16*) { return 8; }
SINTER_DEVICE constexpr int lowest_digit(const bf16*) { return 16; }

}  // namespace sinter
