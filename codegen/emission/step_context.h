// The input of a kernel family whose result is a step of the plan and not a kernel's text.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "ir/graph.h"
#include "plan/program.h"

namespace sinter {

struct StepContext {
  const Graph& graph;
  llvm::ArrayRef<ValueId> members;  // of the group, ascending
  llvm::ArrayRef<Symbol> symbols;
  llvm::function_ref<uint32_t(ValueId root)> read;    // the buffer of a value that the step reads
  llvm::function_ref<uint32_t(ValueId value)> write;  // the buffer of its result
  /// A new buffer for this step alone, which other ranks read; it holds the value.
  llvm::function_ref<uint32_t(ValueId value)> exchange;
};

}  // namespace sinter
