#include "driver/reduce/reduce.h"

#include <algorithm>
#include <set>

#include "driver/reduce/steps.h"
#include "ir/op_roles.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

using namespace reduction;

// The weights of a module's parts: an entry counts more than its ops, an op more than a value from
// outside, a value more than the elements and attributes that it has.
constexpr double kEntry = 1e9, kOp = 1e6, kResult = 1e5, kWeight = 4e5, kState = 4e5, kInput = 2e5,
                 kSymbol = 1e4, kAttribute = 100, kNarrowType = 50;

/// The place of a simplification in a comparison: fewer parts, then smaller ones. A logarithm of
/// extents, so that ten elements less are no reason for an op more.
double cost(const Reducible& test) {
  double total = 0;
  const auto add_type = [&](const TensorType& type) {
    for (const Dim dim : type.dims)
      total += dim.is_constant() ? std::min<double>(static_cast<double>(dim.constant()), 1e3) * 1e-2
                                 : 20;
    if (type.dtype != DType::f32 && type.dtype != DType::i32 && type.dtype != DType::i1)
      total += kNarrowType;
  };
  for (const Entry& entry : test.module.entries) {
    total += kEntry + kResult * static_cast<double>(entry.graph.outputs.size());
    for (const Op& op : entry.graph.ops()) {
      total += op_class(op) != OpClass::leaf ? kOp
               : op.kind == OpKind::weight   ? kWeight
               : op.kind == OpKind::state    ? kState
                                             : kInput;
      // A constant of zeros needs nothing from outside, and is no work.
      if (op.kind == OpKind::constant) total -= kOp - kInput / 2;
      total += kAttribute * static_cast<double>(op.attrs.end() - op.attrs.begin());
      add_type(op.type);
    }
  }
  for (const Weight& weight : test.module.weights)
    total += kWeight + static_cast<double>(weight.init.size());
  for (const State& state : test.module.states) {
    total += kState;
    add_type(state.type);
  }
  std::set<Dim> used;
  for (const Entry& entry : test.module.entries)
    for (const Op& op : entry.graph.ops()) used.insert(op.type.dims.begin(), op.type.dims.end());
  for (const Dim dim : used)
    if (!dim.is_constant()) total += kSymbol;
  for (const Symbol& symbol : test.module.symbols)
    total += 1 + std::min<double>(static_cast<double>(symbol.high), 1e6) * 1e-3;
  for (const int64_t value : test.symbol_values)
    total += std::min<double>(static_cast<double>(value), 1e6) * 1e-3;
  return total;
}

class Reduction {
 public:
  Reduction(Reducible start, const std::function<bool(const Reducible&)>& fails,
            const ReduceOptions& options)
      : best_(std::move(start)), cost_(cost(best_)), fails_(fails), options_(options) {}

  Result<Reducible> run() {
    sweep_first();
    for (double before = INFINITY; cost_ < before && !over();) {
      before = cost_;
      entries();
      for (size_t entry = 0; entry < best_.module.entries.size(); ++entry) {
        outputs(entry);
        first_failing_op(entry);
        ops(entry);
        operands(entry);
        attributes(entry);
      }
      weights();
      extents();
      types();
    }
    SINTER_TRY(status_);
    return std::move(best_);
  }

 private:
  const Graph& graph(size_t entry) const { return best_.module.entries[entry].graph; }
  bool over() const { return !status_ || asked_ == options_.tries; }

  /// Whether the candidate is smaller and fails; it is the best module then.
  bool accept(std::optional<Reducible> candidate) {
    if (!candidate || over()) return false;
    const double smaller = cost(*candidate);
    if (smaller >= cost_ || !verify(candidate->module)) return false;
    if (!candidate->symbol_values.empty() &&
        !check_symbol_values(candidate->module.symbols, candidate->symbol_values))
      return false;
    std::string key = print_module(candidate->module);
    for (const int64_t value : candidate->symbol_values) key += fmt::format(" {}", value);
    if (!known_.insert(std::move(key)).second) return false;  // its answer was no
    ++asked_;
    if (!fails_(*candidate)) return false;
    best_ = std::move(*candidate);
    cost_ = smaller;
    if (options_.smaller) status_ = options_.smaller(best_, asked_);
    return true;
  }

  /// Most likely nothing fails in what nothing needs.
  void sweep_first() {
    Reducible swept = best_;
    sweep(swept.module);
    accept(std::move(swept));
  }

  void entries() {
    for (size_t i = best_.module.entries.size(); i-- > 0;)
      if (i < best_.module.entries.size())
        accept(without_entry(best_, best_.module.entries[i].name));
    for (size_t i = 0; i < best_.module.entries.size(); ++i) accept(with_one_variant(best_, i));
  }

  void outputs(size_t entry) {
    for (const ValueId output : graph(entry).outputs)
      if (graph(entry).outputs.size() > 1 && accept(with_outputs(best_, entry, {output}))) return;
    for (size_t i = graph(entry).outputs.size(); i-- > 0 && graph(entry).outputs.size() > 1;) {
      llvm::SmallVector<ValueId, 4> fewer(graph(entry).outputs);
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      accept(with_outputs(best_, entry, fewer));
    }
  }

  /// The results of the ops before `end` that none of them reads.
  llvm::SmallVector<ValueId, 4> ends_before(size_t entry, uint32_t end) const {
    std::vector<bool> read(end, false);
    for (uint32_t i = 0; i < end; ++i)
      for (const ValueId operand : graph(entry).ops()[i].operands) read[operand.index] = true;
    llvm::SmallVector<ValueId, 4> ends;
    for (uint32_t i = 0; i < end; ++i)
      if (const Op& op = graph(entry).ops()[i];
          !read[i] && op_class(op) != OpClass::leaf && !writes_state(op))
        ends.push_back(ValueId{i});
    return ends;
  }

  /// Halves for the fewest leading ops that fail, and then asks for each of their ends alone.
  void first_failing_op(size_t entry) {
    uint32_t low = 1, high = static_cast<uint32_t>(graph(entry).size());
    while (low < high && !over()) {
      const uint32_t middle = low + (high - low) / 2;
      const auto ends = ends_before(entry, middle);
      Reducible shorter = with_outputs(best_, entry, ends);
      // It may have more results than the module: they are reduced again below.
      if (!ends.empty() && accept(std::move(shorter)))
        low = 1, high = std::min(middle, static_cast<uint32_t>(graph(entry).size()));
      else
        low = middle + 1;
    }
    outputs(entry);
    // Step back from a result to what it reads.
    for (bool changed = true; changed && !over();) {
      changed = false;
      const llvm::SmallVector<ValueId, 4> now = graph(entry).outputs;
      for (size_t i = 0; i < now.size() && !changed; ++i) {
        const Op& op = graph(entry)[now[i]];
        for (const ValueId operand : op.operands) {
          if (op_class(graph(entry)[operand]) == OpClass::leaf ||
              is_state_version(graph(entry)[operand]))
            continue;
          llvm::SmallVector<ValueId, 4> other = now;
          other[i] = operand;
          changed = accept(with_outputs(best_, entry, other));
          if (changed) break;
        }
      }
    }
  }

  void ops(size_t entry) {
    for (size_t chunk = graph(entry).size() / 2; chunk > 1 && !over(); chunk /= 2)
      for (size_t end = graph(entry).size(); end > 0;) {
        end = std::min(end, graph(entry).size());
        const size_t begin = end > chunk ? end - chunk : 0;
        accept(without_ops(best_, entry, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)));
        end = begin;
      }
    // A success renumbers the ops: the number is only a place from which to go on.
    for (size_t i = graph(entry).size(); i-- > 0 && !over();) {
      if (i >= graph(entry).size()) continue;
      const auto id = static_cast<uint32_t>(i);
      bool done = false;
      for (size_t operand = 0; operand < graph(entry).ops()[i].operands.size() && !done; ++operand)
        done = accept(bypassed(best_, entry, ValueId{id}, operand));
      if (!done) accept(without_ops(best_, entry, id, id + 1));
    }
  }

  void operands(size_t entry) {
    for (size_t i = graph(entry).size(); i-- > 0 && !over();)
      while (i < graph(entry).size() &&
             accept(without_last_operand(best_, entry, ValueId{static_cast<uint32_t>(i)}))) {
      }
    for (size_t i = graph(entry).size(); i-- > 0 && !over();)
      for (const double value : {0.0, 1.0})
        if (i < graph(entry).size() &&
            accept(with_constant(best_, entry, ValueId{static_cast<uint32_t>(i)}, value)))
          break;
  }

  void attributes(size_t entry) {
    for (size_t i = graph(entry).size(); i-- > 0 && !over();) {
      const ValueId id{static_cast<uint32_t>(i)};
      for (const AttrName name : op_info(graph(entry)[id].kind).optional)
        if (graph(entry)[id].attrs.has(name) && name != AttrName::order)
          accept(without_attribute(best_, entry, id, name));
    }
  }

  void weights() {
    for (size_t i = 0; i < best_.module.weights.size(); ++i) accept(with_constant_weight(best_, i));
  }

  void extents() {
    std::set<Dim> extents;
    for (const Entry& entry : best_.module.entries)
      for (const Op& op : entry.graph.ops())
        extents.insert(op.type.dims.begin(), op.type.dims.end());
    for (const Dim dim : extents) {
      if (over()) return;
      if (dim.is_constant()) {
        smaller_extent(dim.constant());
        continue;
      }
      const uint32_t symbol = dim.symbol().index;
      if (!best_.symbol_values.empty())
        accept(with_extent(best_, dim, Dim(best_.symbol_values[symbol])));
      else
        for (const int64_t value :
             {int64_t{1}, best_.module.symbols[symbol].low, best_.module.symbols[symbol].high})
          if (accept(with_extent(best_, dim, Dim(value)))) break;
    }
    for (size_t i = 0; i < best_.module.symbols.size(); ++i) {
      smaller_value(i);
      smaller_range(i);
    }
    // Known values are the caller's, who numbers them.
    if (best_.symbol_values.empty())
      for (size_t i = best_.module.symbols.size(); i-- > 0;)
        accept(without_symbol(best_, static_cast<uint32_t>(i)));
  }

  void smaller_extent(int64_t extent) {
    if (extent > 1 && accept(with_extent(best_, Dim(extent), Dim(1)))) return;
    while (extent > 1 && accept(with_extent(best_, Dim(extent), Dim(extent / 2)))) extent /= 2;
    if (extent > 2) accept(with_extent(best_, Dim(extent), Dim(extent - 1)));
  }

  void smaller_value(size_t symbol) {
    if (best_.symbol_values.empty()) return;
    for (bool changed = true; changed && best_.symbol_values[symbol] > 1;) {
      Reducible halved = best_;
      const int64_t multiple = best_.module.symbols[symbol].multiple;
      halved.symbol_values[symbol] = best_.symbol_values[symbol] / 2 / multiple * multiple;
      changed = accept(std::move(halved));
    }
  }

  void smaller_range(size_t symbol) {
    for (bool changed = true; changed;) {
      const Symbol& now = best_.module.symbols[symbol];
      const int64_t middle = now.low + (now.high - now.low) / 2;
      changed = accept(with_high(best_, symbol, middle / now.multiple * now.multiple));
    }
  }

  void types() {
    for (const DType narrow : {DType::bf16, DType::f16})
      accept(with_dtype(best_, narrow, DType::f32));
    accept(with_dtype(best_, DType::i64, DType::i32));
  }

  Reducible best_;
  double cost_;
  const std::function<bool(const Reducible&)>& fails_;
  const ReduceOptions& options_;
  int64_t asked_ = 0;
  Status status_;
  std::set<std::string> known_;  // texts of modules that were asked about
};

}  // namespace

ModuleSize size_of(const Module& module) {
  ModuleSize size{module.entries.size(), 0, 0};
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      ++(op_class(op) == OpClass::leaf ? size.leaves : size.ops);
  return size;
}

Result<Reducible> reduce(Reducible start, const std::function<bool(const Reducible&)>& fails,
                         const ReduceOptions& options) {
  return Reduction(std::move(start), fails, options).run();
}

}  // namespace sinter
