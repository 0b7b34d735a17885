// The evaluator's loop: values by op, freed after their last use; the choice of an op's evaluation.
#include "runtime/evaluate/evaluate.h"

#include <new>

#include "ir/decompose.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

Result<HostView> evaluate_leaf(const OpCall& call) {
  return call.error("is not among the graph's inputs", "give it a tensor");
}

Result<HostView> evaluate_composite(const OpCall& call) {
  SINTER_CHECK(false, "{} is not a primitive", op_info(call.op.kind).name);
}

/// The evaluation of each op, by OpKind. A primitive without one does not link.
constexpr Evaluator* kEvaluators[] = {
#define SINTER_OP(name, op_class, ...)                          \
  [] {                                                          \
    if constexpr (OpClass::op_class == OpClass::leaf)           \
      return evaluate_leaf;                                     \
    else if constexpr (OpClass::op_class == OpClass::composite) \
      return evaluate_composite;                                \
    else                                                        \
      return evaluate_##name;                                   \
  }(),
#define SINTER_ELEMENTWISE(name, ...) evaluate_##name,
#include "ir/ops.def"
};

/// By Order.
constexpr Evaluator* kOrderEvaluators[] = {
#define SINTER_ORDER(name, ...) evaluate_##name,
#include "ir/orders.def"
};

Evaluator* evaluator_of(const Op& op) {
  const std::optional<Order> order = order_of(op);
  return order ? kOrderEvaluators[static_cast<size_t>(*order)]
               : kEvaluators[static_cast<size_t>(op.kind)];
}

class Evaluation {
 public:
  Evaluation(const Graph& graph, llvm::ArrayRef<int64_t> symbol_values, const EvalOptions& options)
      : graph_(graph),
        symbol_values_(symbol_values),
        options_(options),
        values_(graph.size()),
        last_use_(graph.size(), 0) {}

  Result<std::vector<HostTensor>> run(llvm::ArrayRef<const HostTensor*> inputs) {
    SINTER_TRY(bind_inputs(inputs));
    for (uint32_t i = 0; i < graph_.size(); ++i)
      for (ValueId operand : graph_.ops()[i].operands) last_use_[operand.index] = i;
    for (ValueId output : graph_.outputs) last_use_[output.index] = UINT32_MAX;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Op& op = graph_.ops()[i];
      if (values_[i].data == nullptr) {
        SINTER_LET(value, evaluate_op(op));
        values_[i] = std::move(value);
      }
      for (ValueId operand : op.operands)
        if (last_use_[operand.index] == i) values_[operand.index].owner.reset();
    }
    std::vector<HostTensor> outputs;
    for (ValueId id : graph_.outputs) {
      SINTER_LET(tensor, output(id));
      outputs.push_back(std::move(tensor));
    }
    return outputs;
  }

 private:
  Extents extents(DimsRef dims) const {
    Extents result;
    for (Dim dim : dims)
      result.push_back(dim.is_constant() ? dim.constant() : symbol_values_[dim.symbol().index]);
    return result;
  }

  Storage storage(DType dtype) const {
    return options_.precise && is_float(dtype) ? Storage::f64 : storage_of(dtype);
  }

  /// A type at the symbols' values.
  std::string show(DType dtype, llvm::ArrayRef<int64_t> dims) const {
    return to_string(TensorType{dtype, Dims(dims.begin(), dims.end())}, {});
  }

  Status bind_inputs(llvm::ArrayRef<const HostTensor*> inputs) {
    if (inputs.size() != graph_.inputs.size())
      return fail(fmt::format("{} tensors for {} inputs", inputs.size(), graph_.inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Op& op = graph_[graph_.inputs[i]];
      const HostTensor& tensor = *inputs[i];
      const Extents dims = extents(op.type.dims);
      const bool fits = tensor.dtype == op.type.dtype ||
                        (options_.precise && is_float(tensor.dtype) && is_float(op.type.dtype));
      if (!fits || llvm::ArrayRef<int64_t>(tensor.dims) != llvm::ArrayRef<int64_t>(dims))
        return fail(fmt::format("input {} is {}, expected {}", i, show(tensor.dtype, tensor.dims),
                                show(op.type.dtype, dims)),
                    "%" + op.name);
      SINTER_CHECK(
          tensor.bytes.size() == static_cast<size_t>(storage_bytes(tensor.dtype, tensor.volume())),
          "{} bytes for {}", tensor.bytes.size(), show(tensor.dtype, tensor.dims));
      // An empty tensor may have no memory; no element of it is ever read.
      static constexpr std::byte kNothing[1] = {};
      values_[graph_.inputs[i].index] =
          HostView{storage_of(tensor.dtype), tensor.bytes.empty() ? kNothing : tensor.bytes.data(),
                   dims, dense_strides(dims), nullptr};
    }
    return {};
  }

  Result<HostView> evaluate_op(const Op& op) const {
    OpCall call{graph_, op, {}, extents(op.type.dims), storage(op.type.dtype), options_};
    for (ValueId operand : op.operands) call.operands.push_back(values_[operand.index]);
    return evaluator_of(op)(call);
  }

  Result<HostTensor> output(ValueId id) const {
    const HostView& view = values_[id.index];
    const DType dtype = graph_[id].type.dtype;
    const DType given = options_.precise && is_float(dtype) ? DType::f32 : dtype;
    SINTER_LET(tensor,
               make_tensor(given, std::vector<int64_t>(view.dims.begin(), view.dims.end())));
    HostReader(view).copy_next(view.volume(), storage_of(given), tensor.bytes.data());
    return std::move(tensor);
  }

  const Graph& graph_;
  llvm::ArrayRef<int64_t> symbol_values_;
  const EvalOptions& options_;
  std::vector<HostView> values_;    // without data: not computed yet
  std::vector<uint32_t> last_use_;  // op that reads the value last
};

}  // namespace

Result<std::vector<HostTensor>> evaluate(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                                         llvm::ArrayRef<int64_t> symbol_values,
                                         llvm::ArrayRef<const HostTensor*> inputs,
                                         const EvalOptions& options) {
  SINTER_TRY(check_symbol_values(symbols, symbol_values));
  const auto is_composite = [](const Op& op) { return op_class(op) == OpClass::composite; };
  try {
    if (llvm::any_of(graph.ops(), is_composite))
      return Evaluation(decompose_all(graph, symbols), symbol_values, options).run(inputs);
    return Evaluation(graph, symbol_values, options).run(inputs);
  } catch (const std::bad_alloc& error) {
    return fail(fmt::format("no memory to evaluate the graph: {}", error.what()), {},
                "use smaller sizes", ExitCode::out_of_memory);
  }
}

}  // namespace sinter
