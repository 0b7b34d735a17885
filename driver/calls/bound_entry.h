// What a caller has bound to an entry: tensors, and when the call is prepared, the values of its
// symbols.
#pragma once

#include <optional>

#include "driver/calls/tensor_view.h"
#include "plan/program.h"

namespace sinter {

/// An address of the caller's memory, on the host or on a GPU.
using TensorAddress = uint64_t;

/// An input, an output or a state of an entry, and the caller's memory for it.
struct BoundTensor {
  std::string name;
  std::string place;    // of errors: "entry main, input x"
  uint32_t buffer = 0;  // of the first variant
  size_t index = 0;     // among the entry's inputs or outputs, or the program's states
  std::optional<TensorView> view;
  size_t bytes = 0;  // of the view

  TensorAddress address() const { return reinterpret_cast<TensorAddress>(view->data); }
};

struct BoundEntry {
  const Program& program;
  llvm::ArrayRef<EntryPlan> variants;  // of the entry; all have the same interface
  std::vector<BoundTensor> inputs = {},
                           outputs = {};  // in the entry's order; an output named twice, once
  std::vector<BoundTensor> states = {};   // of the entry; without a view: the session's
  // When the call is prepared:
  const EntryPlan* prepared = nullptr;  // the variant whose range has the symbol's value
  std::vector<int64_t> symbol_values = {};
  std::vector<bool> shared = {};  // by output: no other value lies in its memory
  // Of the last run:
  bool has_run = false, is_rebound = false;  // it is complete; tensors have moved since

  const EntryPlan& first() const { return variants[0]; }
  std::string place() const { return "entry " + printable(first().name); }
  const TensorType& type_of(const BoundTensor& tensor) const {
    return first().buffers[tensor.buffer].type;
  }
};

}  // namespace sinter
