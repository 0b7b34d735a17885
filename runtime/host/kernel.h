// A kernel's group in the form that the host evaluates.
#pragma once

#include "plan/program.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// Made once per kernel. Ops that write a state are taken out of the graph where nothing else in it
/// reads their result: the graph then gives the new value, or the new rows and their slots, and the
/// state is written in place instead of copied.
struct HostKernel {
  struct Append {
    uint32_t output = 0;   // of the kernel
    uint32_t rows = 0;     // graph output: the new rows
    uint32_t slots = 0;    // graph output: where they go
    bool checked = false;  // slots that name no row are passed over
  };
  Graph graph;  // primitives; outputs: the kernel's other than appends of rows, then theirs
  std::vector<uint32_t> results;  // kernel output of each leading graph output
  std::vector<Append> appends;
};

HostKernel make_host_kernel(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols);

/// state[slots[n], ...] = rows[n, ...]; a slot outside the state is an error, or `checked` and
/// passed over.
Status write_rows(const HostTensor& rows, const HostTensor& slots, bool checked, HostTensor& state);

}  // namespace sinter
