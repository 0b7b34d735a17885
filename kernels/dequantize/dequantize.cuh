// The elements of packed rows: a thread computes 8 neighbouring ones of a row.
#pragma once

#include "kernels/common/packed_matrix.cuh"

namespace sinter {

// `out` takes elements of the result: out.set(at, x), out.set_chunk(at, values).
template <typename Matrix, typename Result>
SINTER_DEVICE void dequantize(const int* matrix, long long rows, const Result& out) {
  constexpr int length = Matrix::kLength, chunks = (length + kCodeChunk - 1) / kCodeChunk;
  const long long item = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= rows * chunks) return;
  const long long row = item / chunks;
  const int chunk = static_cast<int>(item % chunks);
  const int round = chunk / kCodeLanes, lane = chunk % kCodeLanes;
  constexpr int of_step = Matrix::layout().step_rounds();
  const int begin = round / of_step * of_step;  // of the step
  const int left = (length + kCodeRound - 1) / kCodeRound - begin;
  const int rounds = left < of_step ? left : of_step;
  const unsigned char* step = Matrix::at(matrix, row, begin * kCodeRound);
  float values[kCodeChunk];
  const auto group = Matrix::scale_of(matrix, row, step, lane, round - begin, rounds);
  Matrix::read(values, step, lane, round - begin, rounds, group.zero);
#pragma unroll
  for (int k = 0; k < kCodeChunk; ++k) values[k] = group.apply(values[k]);
  const long long at = row * length + chunk * kCodeChunk;
  if constexpr (length % kCodeChunk == 0) {
    out.set_chunk(at, values);
  } else {
#pragma unroll
    for (int k = 0; k < kCodeChunk; ++k)
      if (chunk * kCodeChunk + k < length) out.set(at + k, values[k]);
  }
}

}  // namespace sinter
