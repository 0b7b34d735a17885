#include "ir/traffic.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>

#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "ir/region.h"
#include "ir/type_sizes.h"

namespace sinter {
namespace {

/// Tells what one op reads.
class Reader {
 public:
  Reader(const Graph& graph, const Op& op, llvm::ArrayRef<int64_t> values)
      : graph_(graph), op_(op), values_(values) {}

  llvm::SmallVector<Reached, 2> of_operands();
  llvm::SmallVector<Reached, 2> of_facts(const OpFacts& facts);

 private:
  int64_t elements(DimsRef dims) const {
    return static_cast<int64_t>(TypeSizes(values_).elements({DType::f32, Dims(dims)}));
  }
  void add(ValueId root, const IndexSet& set) {
    const auto same = llvm::find_if(reads_, [&](const Reached& r) { return r.root == root; });
    if (same != reads_.end())
      same->elements.unite(set);
    else if (op_class(graph_[root]) != OpClass::generator)
      reads_.push_back({root, set});
  }
  /// Places that are known only at run time: as many as the op has elements.
  void add_gathered(ValueId root, DimsRef walked) {
    add(root, IndexSet::at_most(elements(graph_[root].type.dims), elements(walked)));
  }

  const Graph& graph_;
  const Op& op_;
  llvm::ArrayRef<int64_t> values_;
  llvm::SmallVector<Reached, 2> reads_;
};

/// Contractions and anchors read their operands in an order of their own, as a whole.
llvm::SmallVector<Reached, 2> Reader::of_operands() {
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    const ValueId operand = op_.operands[i];
    switch (operand_role(op_, i).kind) {
      case OperandRole::state:
        break;
      case OperandRole::table: {
        // A row, of whatever axes, for each number.
        Dims read = graph_[operand_with(op_, OperandRole::id)].type.dims;
        llvm::append_range(read, DimsRef(graph_[operand].type.dims).drop_front());
        add_gathered(root_of(graph_, operand), read);
        break;
      }
      default:
        add(root_of(graph_, operand), region(graph_, operand, values_));
    }
  }
  return std::move(reads_);
}

llvm::SmallVector<Reached, 2> Reader::of_facts(const OpFacts& facts) {
  const ValueId memory =
      operand_with(op_, places_part(op_) ? OperandRole::base : OperandRole::state);
  const ValueId written = memory.valid() ? root_of(graph_, memory) : ValueId();
  for (const Read& read : facts.reads)
    if (!read.loaded)
      add(read.root, region(read, graph_[read.root].type.dims, values_));
    else if (read.root != written)
      add_gathered(read.root, facts.walked());
  return std::move(reads_);
}

llvm::SmallVector<Reached, 2> reads_of(const Graph& graph, ValueId id, const OpFacts& facts,
                                       llvm::ArrayRef<int64_t> values) {
  const Op& op = graph[id];
  Reader reader(graph, op, values);
  const bool whole = op_class(op) == OpClass::contraction || op_class(op) == OpClass::anchor;
  return whole ? reader.of_operands() : reader.of_facts(facts);
}

}  // namespace

void Traffic::add(const Graph& graph, ValueId op, const OpFacts& facts,
                  llvm::ArrayRef<int64_t> symbol_values) {
  OpTraffic& own = ops_[op.index];
  own.element_bytes = average_bytes(graph[op].type.dtype);
  own.written = TypeSizes(symbol_values).bytes(written_type(graph, graph[op]));
  if (computes(graph[op])) own.reads = reads_of(graph, op, facts, symbol_values);
}

Traffic::Traffic(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                 llvm::ArrayRef<int64_t> symbol_values)
    : ops_(graph.size()) {
  for (uint32_t i = 0; i < graph.size(); ++i)
    add(graph, {i}, computes(graph.ops()[i]) ? op_facts(graph, {i}, symbols) : OpFacts(),
        symbol_values);
}

Traffic::Traffic(const Graph& graph, llvm::ArrayRef<OpFacts> facts,
                 llvm::ArrayRef<int64_t> symbol_values)
    : ops_(graph.size()) {
  for (uint32_t i = 0; i < graph.size(); ++i) add(graph, {i}, facts[i], symbol_values);
}

llvm::SmallVector<std::pair<ValueId, double>, 4> Traffic::reads(llvm::ArrayRef<ValueId> ops) const {
  llvm::SmallVector<Reached, 8> all;
  llvm::SmallDenseMap<uint32_t, size_t, 8> place;  // in `all`, by root
  for (ValueId op : ops)
    for (const Reached& own : ops_[op.index].reads) {
      if (std::binary_search(ops.begin(), ops.end(), own.root)) continue;
      const auto [at, is_new] = place.try_emplace(own.root.index, all.size());
      if (is_new)
        all.push_back(own);
      else
        all[at->second].elements.unite(own.elements);
    }
  llvm::SmallVector<std::pair<ValueId, double>, 4> bytes;
  for (const Reached& reached : all)
    bytes.push_back({reached.root, ops_[reached.root.index].element_bytes *
                                       static_cast<double>(reached.elements.size())});
  return bytes;
}

double Traffic::read(llvm::ArrayRef<ValueId> ops) const {
  double sum = 0;
  for (const auto& [root, bytes] : reads(ops)) sum += bytes;
  return sum;
}

}  // namespace sinter
