// The input of a kernel family's emitter.
#pragma once

#include "device/device.h"
#include "device/tuned_form.h"
#include "plan/program.h"

namespace sinter {

/// The properties of the blocks that run a body.
struct BlockForm {
  std::string_view number = "blockIdx.x";  // as code
  bool alone = true;                       // no others in the launch: clusters are possible
  int64_t min_threads = 1;                 // a power of two that the device has
  std::string_view side_guard = "";        // when results but the first are written; empty: always
  std::string_view when_read = "";         // statements after the first loop over the rows
  /// The text stands in a loop over rows that sets `row`, whether it is `live`, and the row's own
  /// `thread`.
  bool in_loop = false;
};

/// The op that a kernel is built around.
struct Anchor {
  ValueId id;
  /// Its operands that other ops of the group may compute element by element, ascending.
  llvm::SmallVector<uint32_t, 4> element_operands;
  llvm::SmallVector<ValueId, 1> companions;  // other results of the same computation
};

struct EmitContext {
  const Graph& group;    // inputs: roots of the reads; outputs: the results; names canonical
  uint32_t prefix_rank;  // leading axes that make a row, which all ops share
  llvm::ArrayRef<Symbol> symbols;
  llvm::ArrayRef<SymbolId> parameters;  // symbols in the order of the kernel's parameters
  const DeviceDescription& device;
  const Overlap& overlap;   // with its neighbours in a stream
  const TunedForms& forms;  // measured on the device; other kernels have their schedule's own
  BlockForm block = {};
  std::optional<Anchor> anchor = {};  // absent: a group of rows

  /// For a group with an anchor.
  const Op& anchor_op() const { return group[anchor->id]; }
};

}  // namespace sinter
