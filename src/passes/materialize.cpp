#include "passes/materialize.h"

#include "ir/builder.h"
#include "ir/contraction.h"
#include "ir/grouping.h"

namespace sinter {
namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& axes) {
  std::vector<int64_t> result(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = static_cast<int64_t>(i);
  return result;
}

class Materializer {
 public:
  Materializer(const Graph& from, llvm::ArrayRef<Symbol> symbols)
      : from_(from), builder_(result_, symbols), copies_(from.size()) {}

  Graph run() {
    for (uint32_t i = 0; i < from_.size(); ++i) {
      Op op = from_.ops()[i];
      for (ValueId& operand : op.operands) operand = copies_[operand.index];
      copies_[i] = op.kind == OpKind::linear || op.kind == OpKind::einsum ? contraction(op)
                                                                           : result_.add(std::move(op));
    }
    for (ValueId id : from_.inputs) result_.inputs.push_back(copies_[id.index]);
    for (ValueId id : from_.outputs) result_.outputs.push_back(output(copies_[id.index]));
    return std::move(result_);
  }

  bool changed() const { return changed_; }

 private:
  /// Copies of the operands that stand in the way of a form, then the op.
  ValueId contraction(const Op& op) {
    if (has_form(op)) return result_.add(op);
    changed_ = true;
    Op fixed = op;
    for (const auto& operands : {std::vector<uint32_t>{0}, {1}, {0, 1}}) {
      fixed = with_copies(op, operands);
      if (has_form(fixed)) return result_.add(fixed);
    }
    if (fixed.operands.size() == 3) {
      fixed.operands[2] = builder_.op(OpKind::copy, {fixed.operands[2]}, {}, op.name + ".bias");
      if (has_form(fixed)) return result_.add(fixed);
    }
    // The result's own order leaves no unit stride: compute in the products' order, view as asked.
    SINTER_CHECK(op.kind == OpKind::einsum, "{} has no form", op.name);
    return reordered(fixed);
  }

  bool has_form(const Op& op) {
    return contraction_form(result_, op, builder_.symbols()).has_value();
  }

  Op with_copies(const Op& op, llvm::ArrayRef<uint32_t> operands) {
    Op fixed = op;
    for (uint32_t operand : operands) {
      const std::vector<int64_t> order = gemm_order(op, operand);
      const ValueId ordered = builder_.transpose(op.operands[operand], order);
      const ValueId copy =
          builder_.op(OpKind::copy, {ordered}, {}, op.name + (operand == 0 ? ".a" : ".b"));
      fixed.operands[operand] = builder_.transpose(copy, inverse(order));
    }
    return fixed;
  }

  ValueId reordered(const Op& op) {
    const std::string spec = op.attrs.get<std::string>(AttrName::spec);
    const size_t arrow = spec.find("->");
    const std::string terms = spec.substr(0, arrow), letters = spec.substr(arrow + 2);
    const size_t comma = terms.find(',');
    const std::string a = terms.substr(0, comma), b = terms.substr(comma + 1);
    std::string ordered;
    for (const std::pair<bool, bool>& wanted : {std::pair(true, true), {true, false}, {false, true}})
      for (char c : letters)
        if ((a.find(c) != std::string::npos) == wanted.first && (b.find(c) != std::string::npos) == wanted.second)
          ordered += c;
    Attributes attrs = op.attrs;
    attrs.set(AttrName::spec, terms + "->" + ordered);
    const ValueId product = builder_.op(OpKind::einsum, op.operands, attrs, op.name + ".product");
    SINTER_CHECK(contraction_form(result_, result_[product], builder_.symbols()), "{} has no form", op.name);
    std::vector<int64_t> axes;
    for (char c : letters) axes.push_back(static_cast<int64_t>(ordered.find(c)));
    return builder_.transpose(product, axes, op.name);
  }

  /// An output that a step of its own has written.
  ValueId output(ValueId id) {
    const Op& op = result_[id];
    if (computes(op) && op_class(op) != OpClass::append) return id;
    for (const auto& [value, copy] : outputs_)
      if (value == id) return copy;
    changed_ = true;
    // A view gives its name to the copy; leaves and states keep theirs.
    std::string name = op.name + ".out";
    if (op_class(op) == OpClass::view || op_class(op) == OpClass::generator) {
      name = op.name;
      result_[id].name += ".view";
    }
    const ValueId copy = builder_.op(OpKind::copy, {id}, {}, name);
    outputs_.push_back({id, copy});
    return copy;
  }

  const Graph& from_;
  Graph result_;
  Builder builder_;
  std::vector<ValueId> copies_;
  llvm::SmallVector<std::pair<ValueId, ValueId>, 4> outputs_;
  bool changed_ = false;
};

}  // namespace

bool materialize(Module& module) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    Materializer materializer(entry.graph, module.symbols);
    Graph graph = materializer.run();
    remove_dead_ops(graph);
    make_names_unique(graph);
    changed |= materializer.changed();
    entry.graph = std::move(graph);
  }
  return changed;
}

}  // namespace sinter
