// The interface of compiled kernel text and the block runner: the only border between the two.
// Plain types, so that the kernel side includes nothing else.
#pragma once

namespace sinter_shim {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// The most blocks of a cluster.
constexpr int kMaxCluster = 8;

/// Who runs now; the runner rewrites what is of a thread and its block at every switch.
struct Context {
  Index3 thread, block, block_dim, grid_dim;
  int cluster = 1, rank = 0;            // blocks of a cluster, and this one's place in it
  long long shared_bytes = 0;           // dynamic ones, of a block
  unsigned long long block_number = 0;  // of all blocks that the process has run
};

/// A tensor map (plan/tensor_map.h), as kernel text gets it: extents and strides in elements.
struct TensorMap {
  const void* base;
  int rank, element_bytes, swizzle;
  long long dims[5], strides[5];
  int box[5];
};

/// A lane's part of mma.m16n8k16: the fragments a0 .. a3, b0 and b1.
struct WarpProduct {
  float* sums;
  unsigned words[6];
  bool is_bf16;
};

/// A lane's part of ldmatrix.x4.
struct MatrixLoad {
  const void* row;
  unsigned* words;
  bool is_transposed;
};

/// A matrix in swizzled shared memory (kernels/isa/wgmma.cuh).
struct MatrixDescriptor {
  const char* p;
  int step, panel, row_bytes;

  MatrixDescriptor advanced(int bytes) const { return {p + bytes, step, panel, row_bytes}; }
};

/// A thread's part of a product of a warpgroup.
struct WarpgroupProduct {
  float* sums;
  int columns;
  MatrixDescriptor first;
  const unsigned* words;  // the fragment of a first operand in registers; null: `first` is it
  MatrixDescriptor second;
  bool is_k_major;  // the second operand
  bool is_bf16, adds;
  bool is_first_mn_major = false;  // the first operand in shared memory; else it is K-major
};

/// The kind of a value that lanes exchange. `product`, `load` and `warpgroup_product`: the value is
/// the address of the lane's WarpProduct, MatrixLoad, or WarpgroupProduct with `words`, which is
/// computed.
enum class ExchangeKind : unsigned { sync, shuffle, ballot, product, load, warpgroup_product };

/// A place in kernel text, for messages and to tell apart barriers that are not the same.
struct Site {
  const char* file;
  int line;
};

/// The calls that a CUDA thread makes to its block.
struct Calls {
  Context* context;
  /// Returns when all threads of the block have come.
  void (*barrier)(Site site);
  /// Returns when all threads of the warp in `mask` that still run have come with the same kind and
  /// mask: the value of lane `source` (shuffle), or a bit for every lane with a value (ballot).
  unsigned long long (*exchange)(ExchangeKind kind, unsigned mask, unsigned long long value,
                                 unsigned source, Site site);
  /// The block's storage of one __shared__ variable, told apart by address; null: the dynamic one.
  void* (*shared_storage)(const void* variable, unsigned long long bytes, Site site);
  /// Returns when the last phase of that parity of a barrier (kernels/isa/mbarrier.cuh) has
  /// ended: when bit 63 differs from `parity`.
  void (*wait_for_phase)(const unsigned long long* barrier, unsigned parity, Site site);
  /// Returns when `threads` threads have come to the barrier of this number.
  void (*named_barrier)(int number, int threads, Site site);
  /// The barrier of all threads of a cluster in two halves, and writes to shared memory of its
  /// blocks: kernels/isa/cluster.cuh. An arrival that does not show what the thread gave is a
  /// relaxed one.
  void (*arrive_in_cluster)(bool shows, Site site);
  void (*wait_for_cluster)(Site site);
  void (*give)(float* own, int rank, float value, Site site);
  /// Where `own`, `bytes` bytes of the block's shared memory, lies in the block of that rank.
  void* (*in_block)(const void* own, unsigned long long bytes, int rank, Site site);
  /// Computes a thread's part of a product of two operands in shared memory.
  void (*multiply)(const WarpgroupProduct& product, Site site);
  /// Copies the box of a tensor that begins at these coordinates to swizzled shared memory, zeros
  /// outside the tensor.
  void (*copy_box)(const TensorMap& map, const int* coordinates, void* to, Site site);
};

/// Runs the kernel for one thread; `arguments[i]` points to parameter i.
using KernelEntry = void (*)(void** arguments);

}  // namespace sinter_shim
