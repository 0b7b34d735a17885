// The compiled plan: plain data that an executor can run and a checker can prove. No pointers into
// the compiler, no device state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/numerics.h"
#include "ir/sym_expr.h"
#include "plan/step.h"
#include "plan/tensor_map.h"

namespace sinter {

/// Storage of one value. Its size is a polynomial of the symbols, valid for all their values.
struct Buffer {
  enum class Place : uint8_t {
    arena,   // slot `slot` of the entry's arena
    input,   // parameter `index` of the entry
    weight,  // Program::weights[index]
    state,   // Program::states[index]
    // Memory that other ranks read at any time: of one collective of the entry, in no slot.
    exchange,
  };
  std::string value;  // the IR value's name
  TensorType type;
  Place place = Place::arena;
  uint32_t index = 0;
  // State only: how many appends of this entry come before the value. Every version has a buffer of
  // its own; all are the same memory.
  uint32_t version = 0;
  // Arena only, less than the number of buffers. Buffers of one slot live at different times,
  // except a buffer that a step writes in the memory of another that it reads last.
  uint32_t slot = 0;
  SymExpr size_bytes;
  // Steps between which an arena buffer holds its value: written by step `first`, last read by step
  // `last` (the number of steps for an output of the entry).
  uint32_t first_step = 0, last_step = 0;
};
inline constexpr int64_t kArenaAlignment = 256;
/// The alignment that kernels need of the address of an input, an output or a weight, for a
/// thread's widest access and for bulk copies.
inline constexpr int64_t kPointerAlignment = 16;

/// `bytes` rounded up to a multiple of kArenaAlignment, so that another buffer can follow.
inline constexpr size_t aligned_bytes(size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// How a kernel is launched; `rows` in terms of the host symbols. There are rows * items_per_row
/// items, items_per_block of them for a block, or for a cluster of blocks that share them; blocks
/// are numbered in one dimension. Nothing is launched without items.
struct Launch {
  SymExpr rows;
  int64_t items_per_row = 1;  // 1: a row is the item (row kernels); else chunks of 8 (pointwise)
  SymExpr symbolic_items;     // not 0: replaces items_per_row where a width is a symbol
  int64_t items_per_block = 1;
  int64_t threads = 256;
  /// Dynamic shared memory, beside what the kernel's text declares: the most bytes, or
  /// `wanted_shared_bytes` if these are not 0 and fewer. The kernel asks the device how many it
  /// got.
  int64_t shared_bytes = 0;
  SymExpr wanted_shared_bytes;
  int64_t cluster = 1;  // blocks of a thread-block cluster; more than 1 from sm_90 on
  /// If not 0: calls with this many items or more have no clusters, since blocks alone fill the
  /// device.
  int64_t items_without_clusters = 0;
  /// No more clusters than this, where it is not 0: the kernel's text deals the items out.
  int64_t most_blocks = 0;
};
inline constexpr int64_t kMaxSharedBytes = 227 * 1024, kMaxCluster = 8;
inline constexpr uint32_t kFirstArchWithClusters = 90;

/// The blocks of a launch: whole clusters.
struct LaunchGrid {
  int64_t blocks = 0, cluster = 1;
};

/// Dynamic shared memory and blocks of a launch; nothing where a number exceeds 63 bits.
std::optional<int64_t> shared_bytes(const Launch& launch, llvm::ArrayRef<int64_t> symbol_values);
std::optional<LaunchGrid> grid_of(const Launch& launch, llvm::ArrayRef<int64_t> symbol_values);

/// How a kernel overlaps its neighbours in a stream; kernels/common/launch.cuh says why this is
/// ordered.
struct Overlap {
  /// The kernel begins before earlier kernels have ended, and has a wait of its own.
  bool waits = false;
  /// The kernel triggers the next one when its wait has returned; otherwise as soon as it runs.
  bool triggers_after_wait = false;
  /// Inputs that the kernel reads before its wait. They are complete when it begins, since a kernel
  /// between it and the step that writes them triggers after its wait.
  std::vector<uint32_t> early_inputs;
  /// Operands of role `cache` that the kernel reads before its wait: of a state, all rows except
  /// the rows of appends whose slots are the op's `last`. Other writers are ordered like an input's
  /// writers.
  std::vector<uint32_t> early_caches;

  bool reads_early() const { return !early_inputs.empty() || !early_caches.empty(); }
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// An output of a kernel that has the memory of an input, both by their index in the group.
struct InPlace {
  uint32_t output = 0, input = 0;
  friend bool operator==(const InPlace&, const InPlace&) = default;
};

/// A CUDA kernel and the IR it computes. Parameters of the CUDA function: one pointer per input of
/// `group`, one per output, then one `long long` per symbol in `symbols`, then the tensor maps.
struct Kernel {
  std::string name;  // a canonical role and a hash, e.g. add_rms_norm_3f2a...; a valid C identifier
  std::string
      source;  // CUDA C++ text, complete but for #include "kernels/..." of the kernel library
  // The hash of `source`, 32 hexadecimal digits; set where it was left in a file of its own.
  std::string source_hash;
  Graph group;  // inputs: roots of the reads; outputs: results in order; names are canonical
  std::vector<uint32_t> appends;  // outputs that write a state
  std::vector<SymbolId> symbols;
  std::vector<TensorMap> tensor_maps;
  Launch launch;
  Overlap overlap;
  // The pairs, in a kernel that does not overlap others, whose pointers are not __restrict__, so
  // that they may be equal. A kernel that overlaps has no such pointers.
  std::vector<InPlace> in_place;
  uint32_t minimum_arch = 70;  // of the oldest device that runs it, 90: compute capability 9.0
  /// Made for these values of a symbol alone; nothing: for all.
  std::optional<SymbolRange> range = {};
};

/// False where some op of the kernel has the device's own order (ir/device_order.h), so that the
/// host's bits differ.
bool follows_stated_order(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values);
/// CustomOp::tolerance of a kernel that computes one caller's op and nothing else.
std::optional<double> host_tolerance(const Kernel& kernel);

/// Row numbers that a call computes, or is given on a device, and that may name no row: after the
/// call they are looked at, and one outside 0 .. rows - 1 is an error; or such ends of runs of
/// rows.
struct RowCheck {
  uint32_t buffer = 0;  // of i32; keeps its value until the call ends
  SymExpr rows;
  std::string op;     // that uses them
  bool ends = false;  // ends of runs of the rows: ascending, and `rows` is one
};

/// An entry point, or one of its variants (ir/variants.h), which stand one after the other.
struct EntryPlan {
  std::string name;
  std::optional<SymbolRange> range = {};
  std::vector<Buffer> buffers;
  std::vector<uint32_t> inputs, outputs;  // buffers, in the entry's order
  std::vector<std::string> output_names;
  std::vector<RowCheck> row_checks;
  std::vector<Step> steps;
};

/// Names of the values that lie in an entry's arena, each once.
std::vector<std::string> arena_values(const EntryPlan& entry);

/// For each buffer of an entry: the step that reads it last writes another in its memory.
std::vector<bool> buffers_written_over(const EntryPlan& entry);

/// Where the buffers of an entry lie for one set of symbol values. Buffers of one slot whose lives
/// meet have one place. Every other buffer lies above all buffers of lower slots with which it
/// shares a step, as low as that allows, at a multiple of kArenaAlignment.
struct ArenaLayout {
  static constexpr int64_t kInArena = -1;
  std::vector<int64_t> offsets;  // bytes, one for each buffer; 0 for one outside of the arena
  // One for each buffer: the index of the output in whose memory it lies, or kInArena.
  std::vector<int64_t> outputs;
  int64_t bytes = 0;          // of the arena
  std::vector<int64_t> used;  // of each step: the arena's bytes from here on hold no value
};

/// Nothing where a size is negative or exceeds 63 bits, or where a slot's number is too large.
/// `outputs_apart`: the caller has other memory for all outputs. Buffers that are read for the last
/// time before an output is written may lie in its memory.
std::optional<ArenaLayout> arena_layout(const EntryPlan& entry,
                                        llvm::ArrayRef<int64_t> symbol_values,
                                        bool outputs_apart = false);

struct Program {
  std::string name;
  Numerics numerics = Numerics::strict;
  /// A token's results do not depend on its neighbours (docs/invariance.md). All products that are
  /// steps are ascending.
  bool invariant = false;
  std::string target;  // name of the device description
  std::vector<Symbol> symbols;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<EntryPlan> entries;

  /// The entry of that name; of variants, the first.
  const EntryPlan* find_entry(std::string_view name) const;
};

}  // namespace sinter
