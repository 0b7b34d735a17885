// Appends ops to a graph with inferred types. For code whose ops are right by construction; a
// broken constraint here is a bug of the caller.
#pragma once

#include "ir/graph.h"

namespace sinter {

class Builder {
 public:
  /// Ops without a given name are called `prefix` + a number that is free in this builder.
  Builder(Graph& graph, llvm::ArrayRef<Symbol> symbols, std::string prefix = "t")
      : graph_(graph), symbols_(symbols), prefix_(std::move(prefix)) {}

  ValueId leaf(OpKind kind, TensorType type, std::string name);
  ValueId op(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs = {},
             std::string name = {});

  ValueId constant(double value, DType dtype, DimsRef dims = {});
  ValueId cast(ValueId x, DType dtype, std::string name = {});      // x itself if it has that type
  ValueId reshape(ValueId x, DimsRef dims, std::string name = {});  // x itself if it has those dims
  ValueId slice(ValueId x, int64_t axis, int64_t begin, Dim size, std::string name = {});
  ValueId transpose(ValueId x, std::vector<int64_t> axes, std::string name = {});
  ValueId broadcast(ValueId x, DimsRef dims,
                    std::string name = {});  // x itself if it has those dims
  ValueId iota(DimsRef dims, int64_t axis);
  ValueId reduce(OpKind kind, ValueId x, std::vector<int64_t> axes, std::string name = {});

#define SINTER_ELEMENTWISE(name, operands, ...)   \
  template <typename... Operands>                 \
  ValueId name(Operands... values) {              \
    static_assert(sizeof...(values) == operands); \
    return op(OpKind::name, {values...});         \
  }
#include "ir/ops.def"

  /// An op that is appended now may read `value`: no op has overwritten the state that it is.
  bool may_read(ValueId value) const;

  const TensorType& type(ValueId id) const { return graph_[id].type; }
  Graph& graph() { return graph_; }
  llvm::ArrayRef<Symbol> symbols() const { return symbols_; }

 private:
  std::string fresh_name();

  Graph& graph_;
  llvm::ArrayRef<Symbol> symbols_;
  std::string prefix_;
  uint32_t next_ = 0;
};

}  // namespace sinter
