#include "shim/tensor_cores.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/scalar_math.h"
#include "shim/address_marks.h"

namespace sinter {

using sinter_shim::MatrixDescriptor;
using sinter_shim::MatrixLoad;
using sinter_shim::TensorMap;
using sinter_shim::WarpgroupProduct;
using sinter_shim::WarpProduct;

namespace {

constexpr int kStep = 16;   // elements of the sum that an instruction multiplies
constexpr int kChunk = 16;  // bytes that no swizzle tears apart

/// The float32 numbers of all patterns of 16 bits.
const float* widened(bool is_bf16) {
  static const std::vector<float> numbers = [] {
    std::vector<float> all;
    for (uint32_t bits = 0; bits < 65536; ++bits)
      all.push_back(math::f16_to_float(static_cast<uint16_t>(bits)));
    for (uint32_t bits = 0; bits < 65536; ++bits)
      all.push_back(math::bf16_to_float(static_cast<uint16_t>(bits)));
    return all;
  }();
  return numbers.data() + (is_bf16 ? 65536 : 0);
}

/// sum + the products of a step: added in float64, elements ascending, and rounded once. (The
/// hardware's order is its own.)
float multiply_step(float sum, const double (&a)[kStep], const double (&b)[kStep]) {
  double exact = sum;
  for (int k = 0; k < kStep; ++k) exact += a[k] * b[k];
  return static_cast<float>(exact);
}

void widen_pair(uint32_t word, const float* numbers, double* pair) {
  pair[0] = numbers[word & 0xffff];
  pair[1] = numbers[word >> 16];
}

/// A row of a fragment A, of whose words words_of(lane) has one lane's.
template <typename WordsOf>
void widen_row(WordsOf words_of, int row, const float* numbers, double (&out)[kStep]) {
  for (int k = 0; k < kStep; k += 2)
    widen_pair(words_of(4 * (row % 8) + k % 8 / 2)[row / 8 + k / 8 * 2], numbers, out + k);
}

const char* swizzled(const char* address, int row_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<const char*>(at ^
                                       (at >> 3 & static_cast<uintptr_t>(row_bytes / 16 - 1) << 4));
}

/// A row's elements of a step, which are contiguous but for the swizzle.
bool read_k_major(const MatrixDescriptor& matrix, int row, const float* numbers,
                  double (&out)[kStep]) {
  for (int k = 0; k < kStep; k += 8) {
    uint16_t chunk[8];
    const char* from = swizzled(
        matrix.p + row / 8 * matrix.step + row % 8 * matrix.row_bytes + 2 * k, matrix.row_bytes);
    if (is_poisoned(from, sizeof chunk)) return false;
    std::memcpy(chunk, from, sizeof chunk);
    for (int i = 0; i < 8; ++i) out[k + i] = numbers[chunk[i]];
  }
  return true;
}

/// The elements of a step of two neighbouring columns, the first of which is even.
bool read_mn_major(const MatrixDescriptor& matrix, int column, const float* numbers,
                   double (&out)[2][kStep]) {
  const int in_panel = matrix.row_bytes / 2;
  for (int k = 0; k < kStep; ++k) {
    uint32_t word;
    const char* from = swizzled(matrix.p + column / in_panel * matrix.panel + k / 8 * matrix.step +
                                    k % 8 * matrix.row_bytes + 2 * (column % in_panel),
                                matrix.row_bytes);
    if (is_poisoned(from, sizeof word)) return false;
    std::memcpy(&word, from, sizeof word);
    double pair[2];
    widen_pair(word, numbers, pair);
    out[0][k] = pair[0];
    out[1][k] = pair[1];
  }
  return true;
}

/// A row of the first operand in shared memory.
bool read_first(const WarpgroupProduct& product, int row, double (&out)[kStep]) {
  const float* numbers = widened(product.is_bf16);
  if (!product.is_first_mn_major) return read_k_major(product.first, row, numbers, out);
  double pair[2][kStep];
  if (!read_mn_major(product.first, row / 2 * 2, numbers, pair)) return false;
  std::copy_n(pair[row % 2], kStep, out);
  return true;
}

/// The sums of a lane, whose two rows of the first operand are `a`.
bool multiply_rows(const WarpgroupProduct& product, int lane, const double (&a)[2][kStep]) {
  const float* numbers = widened(product.is_bf16);
  for (int chunk = 0; chunk < product.columns / 8; ++chunk) {
    const int column = 8 * chunk + 2 * (lane % 4);
    double b[2][kStep];
    const bool read = product.is_k_major
                          ? read_k_major(product.second, column, numbers, b[0]) &&
                                read_k_major(product.second, column + 1, numbers, b[1])
                          : read_mn_major(product.second, column, numbers, b);
    if (!read) return false;
    for (int i = 0; i < 4; ++i) {
      float& sum = product.sums[4 * chunk + i];
      sum = multiply_step(product.adds ? sum : 0.0f, a[i / 2], b[i % 2]);
    }
  }
  return true;
}

}  // namespace

bool multiply_warp(const WarpProduct* const (&lanes)[32]) {
  const float* numbers = widened(lanes[0]->is_bf16);
  const auto words_of = [&](int lane) { return lanes[lane]->words; };
  double a[16][kStep], b[8][kStep];
  for (int row = 0; row < 16; ++row) widen_row(words_of, row, numbers, a[row]);
  for (int column = 0; column < 8; ++column)
    for (int k = 0; k < kStep; k += 2)
      widen_pair(words_of(4 * column + k % 8 / 2)[4 + k / 8], numbers, b[column] + k);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      float& sum = lanes[lane]->sums[i];
      sum = multiply_step(sum, a[lane / 4 + i / 2 * 8], b[2 * (lane % 4) + i % 2]);
    }
  return true;
}

bool load_matrices(const MatrixLoad* const (&lanes)[32]) {
  uint16_t rows[32][8];
  for (int lane = 0; lane < 32; ++lane) {
    if (is_poisoned(lanes[lane]->row, sizeof rows[lane])) return false;
    std::memcpy(rows[lane], lanes[lane]->row, sizeof rows[lane]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, q = lane % 4;
    for (int m = 0; m < 4; ++m) {
      const auto& matrix = *reinterpret_cast<const uint16_t(*)[8][8]>(rows[8 * m]);
      const bool is_transposed = lanes[lane]->is_transposed;
      const uint32_t low = is_transposed ? matrix[2 * q][g] : matrix[g][2 * q];
      const uint32_t high = is_transposed ? matrix[2 * q + 1][g] : matrix[g][2 * q + 1];
      lanes[lane]->words[m] = low | high << 16;
    }
  }
  return true;
}

bool multiply_in_warpgroup(const WarpgroupProduct& product, unsigned thread) {
  const int lane = static_cast<int>(thread % 32), row = static_cast<int>(thread / 32 % 4) * 16;
  double a[2][kStep];
  return read_first(product, row + lane / 4, a[0]) &&
         read_first(product, row + lane / 4 + 8, a[1]) && multiply_rows(product, lane, a);
}

bool multiply_warp_of_group(const WarpgroupProduct* const (&lanes)[32]) {
  const auto words_of = [&](int lane) { return lanes[lane]->words; };
  const float* numbers = widened(lanes[0]->is_bf16);
  double rows[16][kStep];
  for (int row = 0; row < 16; ++row) widen_row(words_of, row, numbers, rows[row]);
  for (int lane = 0; lane < 32; ++lane) {
    double a[2][kStep];
    std::memcpy(a[0], rows[lane / 4], sizeof a[0]);
    std::memcpy(a[1], rows[lane / 4 + 8], sizeof a[1]);
    if (!multiply_rows(*lanes[lane], lane, a)) return false;
  }
  return true;
}

// The swizzle depends on the address: bits 4 and up of an offset are combined by xor with its bits
// 7 and up.
bool copy_box(const TensorMap& map, const int* coordinates, void* to) {
  const int64_t bytes = map.element_bytes;
  int64_t rows = 1;
  for (int d = 1; d < map.rank; ++d) rows *= map.box[d];
  auto* out = static_cast<char*>(to);
  for (int64_t row = 0; row < rows; ++row) {
    bool present = true;
    int64_t rest = row, first = 0;
    for (int d = 1; d < map.rank; ++d) {
      const int64_t at = coordinates[d] + rest % map.box[d];
      rest /= map.box[d];
      present = present && at >= 0 && at < map.dims[d];
      first += at * map.strides[d];
    }
    for (int i = 0, count = 0; i < map.box[0]; i += count, out += count * bytes) {
      count = std::min(map.box[0] - i, kChunk / map.element_bytes);
      char* place = map.swizzle ? const_cast<char*>(swizzled(out, map.swizzle)) : out;
      if (is_poisoned(place, count * bytes)) return false;
      std::memset(place, 0, count * bytes);
      const int64_t at = coordinates[0] + i;
      const int64_t begin = std::clamp<int64_t>(-at, 0, count);
      const int64_t end = std::clamp<int64_t>(map.dims[0] - at, begin, count);
      if (!present || begin == end) continue;
      const char* from = static_cast<const char*>(map.base) + (first + at + begin) * bytes;
      if (is_poisoned(from, (end - begin) * bytes)) return false;
      std::memcpy(place + begin * bytes, from, (end - begin) * bytes);
    }
  }
  return true;
}

}  // namespace sinter
