// A packed matrix as float32: a thread computes 8 neighbouring elements of a row.
#pragma once

#include "kernels/common/packed_matrix.cuh"

namespace sinter {

template <typename Matrix>
SINTER_DEVICE void dequantize(const int* matrix, float* out, long long rows) {
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
  float codes[kCodeChunk];
  const auto scale = Matrix::scale_of(matrix, row, step, lane, round - begin, rounds);
  Matrix::read(codes, step, lane, round - begin, rounds, scale.zero);
  float* to = out + row * length + chunk * kCodeChunk;
  if constexpr (length % 4 == 0) {
#pragma unroll
    for (int k = 0; k < kCodeChunk; k += 4)
      if (chunk * kCodeChunk + k < length)
        *reinterpret_cast<float4*>(to + k) =
            make_float4(scale.apply(codes[k]), scale.apply(codes[k + 1]),
                        scale.apply(codes[k + 2]), scale.apply(codes[k + 3]));
  } else {
#pragma unroll
    for (int k = 0; k < kCodeChunk; ++k)
      if (chunk * kCodeChunk + k < length) to[k] = scale.apply(codes[k]);
  }
}

}  // namespace sinter
