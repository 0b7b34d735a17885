// What the fusion engine and the kernel families are asked about: a graph, a device, the numerics,
// and the facts that follow from them. Nothing here changes while groups merge.
#pragma once

#include "device/device.h"
#include "ir/numerics.h"
#include "ir/op_facts.h"
#include "ir/verdict.h"

namespace sinter {

/// Ops of one kernel or of one side of it, ascending.
using Members = llvm::ArrayRef<ValueId>;

struct KernelFamily;
struct Ports;
using Families = llvm::ArrayRef<const KernelFamily*>;

class FusionProblem {
 public:
  FusionProblem(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
                Numerics numerics, Families families);

  const Graph& graph() const { return graph_; }
  llvm::ArrayRef<Symbol> symbols() const { return symbols_; }
  const DeviceDescription& device() const { return device_; }
  Numerics numerics() const { return numerics_; }
  Families families() const { return families_; }
  /// The family whose anchor the op is; null: the op has none.
  const KernelFamily* family(ValueId id) const;
  /// Of an op that is an anchor.
  Ports ports(ValueId id) const;

  const std::string& name(ValueId id) const { return graph_[id].name; }
  const OpFacts& facts(ValueId id) const { return facts_[id.index]; }
  /// The computing ops that read a value, through views; ascending.
  Members users(ValueId id) const { return users_[id.index]; }
  bool is_output(ValueId id) const { return is_output_[id.index]; }
  /// True if the value is an output or an op beside `members` reads it.
  bool read_outside(ValueId id, Members members) const;
  /// The members that `last` depends on, and `last`; ascending.
  llvm::SmallVector<ValueId, 8> up_to(ValueId last, Members members) const;
  /// Symbols at their upper bound.
  double extent(Dim dim) const;
  /// Of a value, or of the rows that the op writes into a state; symbols at their upper bound.
  double bytes(ValueId id) const;
  /// Dims as the text form writes them: "[N, 64]".
  std::string show(DimsRef dims) const;

 private:
  Graph graph_;  // a copy: verdicts are asked for after the caller's graph is gone
  std::vector<Symbol> symbols_;
  DeviceDescription device_;
  Numerics numerics_;
  Families families_;
  std::vector<OpFacts> facts_;
  std::vector<llvm::SmallVector<ValueId, 2>> users_;
  std::vector<bool> is_output_;
};

}  // namespace sinter
