// The input of the fusion engine and of the kernel families: a graph, a device, the numerics, and
// the facts that follow from them. Nothing here changes while groups merge.
#pragma once

#include "device/device.h"
#include "ir/numerics.h"
#include "ir/op_facts.h"
#include "ir/traffic.h"
#include "ir/verdict.h"

namespace sinter {

/// Ops of one kernel or of one side of it, ascending.
using Members = llvm::ArrayRef<ValueId>;

struct KernelFamily;
struct Ports;
using Families = llvm::ArrayRef<const KernelFamily*>;

class FusionProblem {
 public:
  /// Costs have every symbol at its upper bound.
  FusionProblem(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
                Numerics numerics, Families families);
  /// The same problem with costs at these values of the symbols.
  FusionProblem at(llvm::ArrayRef<int64_t> sizes) const;

  const Graph& graph() const { return graph_; }
  llvm::ArrayRef<Symbol> symbols() const { return symbols_; }
  const DeviceDescription& device() const { return device_; }
  Numerics numerics() const { return numerics_; }
  /// The value of each symbol at which costs are counted.
  llvm::ArrayRef<int64_t> sizes() const { return sizes_; }
  Families families() const { return families_; }
  /// The family whose anchor the op is; null: the op has none.
  const KernelFamily* family(ValueId id) const;
  /// The ports of an op that is an anchor.
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
  /// At sizes().
  double extent(Dim dim) const;
  double count(const SymExpr& expression) const;
  /// The bytes of a value, or of the rows that the op writes into a state; at sizes().
  double bytes(ValueId id) const;
  /// The bytes that a kernel of these ops reads and writes, at sizes().
  Bytes traffic(Members members) const;
  /// The bytes that such a kernel reads of each value in memory.
  llvm::SmallVector<std::pair<ValueId, double>, 4> reads(Members members) const {
    return traffic_->reads(members);
  }
  /// Dims as the text form writes them: "[N, 64]".
  std::string show(DimsRef dims) const;

 private:
  Graph graph_;  // a copy: verdicts are asked for after the caller's graph is gone
  std::vector<Symbol> symbols_;
  DeviceDescription device_;
  Numerics numerics_;
  Families families_;
  std::vector<int64_t> sizes_;
  std::vector<OpFacts> facts_;
  std::vector<llvm::SmallVector<ValueId, 2>> users_;
  std::vector<bool> is_output_;
  std::optional<Traffic> traffic_;
};

}  // namespace sinter
