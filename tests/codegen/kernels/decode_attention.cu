// n0 in [0, 4096]
// n1 in [0, 65536]
// graph(%x0: bf16[n0, 3072], %x1: bf16[n1, 512], %x2: bf16[n1, 512], %x3: i32[n0], %x4: i32[n0]) -> (%v1) {
//   %v0 = slice %x0 {axis = 1, begin = 0, size = 2048} : bf16[n0, 2048]
//   %v1 = attention %v0, %x1, %x2, %x3, %x4 {order = decode_attention, heads = 32, kv_heads = 8, scale = 0x1p-3, splits = 8} : bf16[n0, 2048]
// }
// launch: rows n0, items_per_row 16, symbolic_items 0, items_per_block 1, threads 512,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 8, items_without_clusters 34, most_blocks 0
// overlap: waits true, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 90
#include "kernels/common/launch.cuh"
#include "kernels/decode_attention/attention.cuh"
#include "kernels/common/element_ports.cuh"
using namespace sinter;

struct PortMemory {
  const bf16* x0;
  const bf16* x1;
  const bf16* x2;
  const int* x3;
  const int* x4;
  bf16* y0;
  long long n0;
  long long n1;
};
struct PortOperand3 : PortMemory {
  SINTER_DEVICE int operator()(long long at) const {
    const int i = static_cast<int>(at);
    constexpr int e = 0;
    const int v0 = load(x3 + i + e);
    return v0;
  }
  SINTER_DEVICE void chunk(int (&out)[8], long long at) const {
    const int i = static_cast<int>(at);
    int v0[8];
    load_chunk(v0, x3 + i);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = v0[e];
    }
  }
};
struct PortOperand4 : PortMemory {
  SINTER_DEVICE int operator()(long long at) const {
    const int i = static_cast<int>(at);
    constexpr int e = 0;
    const int v0 = load(x4 + i + e);
    return v0;
  }
  SINTER_DEVICE void chunk(int (&out)[8], long long at) const {
    const int i = static_cast<int>(at);
    int v0[8];
    load_chunk(v0, x4 + i);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = v0[e];
    }
  }
};
struct Config {
  using First = PortOperand3;
  using Last = PortOperand4;
  using Mask = NoMask;
  static constexpr int kHeads = 32;
  static constexpr int kKvHeads = 8;
  static constexpr int kWidth = 64;
  static constexpr int kValueWidth = 64;
  static constexpr int kTile = 2;
  static constexpr int kSplits = 8;
  static constexpr int kStreams = 64;
  static constexpr bool kAligned = true;
  static constexpr bool kSequences = false;
  static constexpr bool kEmptyZero = false;
  static constexpr float kScale = 0x1p-3f;
  static constexpr float kSoftcap = 0x0p+0f;
  static constexpr long long kWindow = 0;
};

__device__ __noinline__ void attend_alone(AttentionShared<Config>& shared, const bf16* x0, const bf16* x1, const bf16* x2, const int* x3, const int* x4, bf16* y0, long long n0, long long n1) {
  const PortMemory memory{x0, x1, x2, x3, x4, y0, n0, n1};
  DecodeAttention<Config, bf16, WithoutClusters> attention({x0, 3072, {x1, 0, 512, 64}, {x2, 0, 512, 64}, PortOperand3{memory}, PortOperand4{memory}, {}, n0}, shared);
  attention.start();
  attention.run(y0);
}
extern "C" __global__ void __launch_bounds__(512)
decode_attention_2157f628(const bf16* x0, const bf16* x1, const bf16* x2, const int* x3, const int* x4, bf16* y0, long long n0, long long n1) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  __shared__ AttentionShared<Config> shared;
  if (cluster_nctaid_x() == 1) {
    attend_alone(shared, x0, x1, x2, x3, x4, y0, n0, n1);
  } else {
    const PortMemory memory{x0, x1, x2, x3, x4, y0, n0, n1};
    DecodeAttention<Config, bf16, InClusters> attention({x0, 3072, {x1, 0, 512, 64}, {x2, 0, 512, 64}, PortOperand3{memory}, PortOperand4{memory}, {}, n0}, shared);
    attention.start();
    attention.run(y0);
  }
}
