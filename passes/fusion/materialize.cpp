// Copies where a value must stand in memory in another form than it has.
//
//   return %input                        =>   %input.out = copy %input; return %input.out
//   einsum %a, %b, no unit stride in a   =>   einsum of transpose (copy (transpose %a)), %b
//   einsum %a, %b, many library calls    =>   einsum of copies whose leading axes are one loop
//
// A call of the library repeats a product along one loop. Heads that lie side by side in rows make
// a second one, and a call for each head may take longer than copies.
//
// Requires that no op of constants is left to fold: a copy is made for a constant, not for an op.
// Afterwards every output is the result of a computing op, every linear and einsum has a
// ContractionForm, and every other kernel around an op can address its operands. Equal copies are
// one. Later passes keep this: the pass finds nothing to do in their module.
#include <llvm/ADT/DenseMap.h>

#include <limits>

#include "ir/common_subexpressions.h"
#include "ir/contraction.h"
#include "ir/grouping.h"
#include "ir/index_map.h"
#include "ir/infer.h"
#include "ir/op_roles.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

class Materializer {
 public:
  Materializer(Builder& builder, GraphRewriter& rewriter)
      : builder_(builder), rewriter_(rewriter), result_(builder.graph()) {}

  /// True if the graph gets a copy.
  bool run() {
    rewriter_.rewrite([&](ValueId, Op op) {
      if (is_without_order(op, OpKind::linear) || op.kind == OpKind::einsum) return contraction(op);
      if (const KernelFamily* family = anchored_by(op)) return anchor(*family, std::move(op));
      return rewriter_.add(std::move(op));
    });
    for (ValueId& id : result_.outputs) id = output(id);
    merge_common_subexpressions(result_, [](std::string_view) { return false; });
    return changed_;
  }

 private:
  /// The op, with copies where it has no form or is many calls of the library.
  ValueId contraction(const Op& op) {
    if (has_form(op) && is_few_calls(op)) return result_.add(op);
    if (!has_form(op))
      if (const auto fixed = with_form(op); fixed.valid()) return fixed;
    return with_least_time(op);
  }

  /// Copies of as few operands as a form needs, then the op. Invalid: it would be many calls.
  ValueId with_form(const Op& op) {
    changed_ = true;
    const auto added = [&](const Op& fixed) {
      return is_few_calls(fixed) ? result_.add(fixed) : ValueId();
    };
    const std::vector<uint32_t> choices[] = {{2}, {0}, {1}, {0, 1}, {0, 1, 2}};
    for (const auto& operands : choices)
      if (const Op fixed = with_copies(op, operands); has_form(fixed)) return added(fixed);
    // The result's own order leaves no unit stride: compute in the products' order, view as asked.
    SINTER_CHECK(op.kind == OpKind::einsum, "{} has no form", op.name);
    std::vector<int64_t> axes;
    Op product = reordered(op, axes);
    for (const auto& operands : {std::vector<uint32_t>{}, {0}, {1}, {0, 1}})
      if (const Op fixed = with_copies(product, operands); has_form(fixed)) {
        const ValueId id = added(fixed);
        return id.valid() ? builder_.transpose(id, axes, op.name) : id;
      }
    SINTER_CHECK(false, "{} has no form", op.name);
  }

  // Calls of the library that a product may be without copies, and the bytes that a kernel moves in
  // the time of one call. (One H200: 12 calls of [16, 128, 64] by [16, 64, 128] take 37 us; one of
  // 192 products 9 us, and a copy of 3 MB 3.6 us.)
  static constexpr double kFewCalls = 4, kBytesOfCall = 10e6;

  /// Calls of the library that compute a product: its loops but the longest one repeat them.
  double calls_of(const Op& op) const {
    const auto form = contraction_form(result_, op, builder_.symbols());
    double rounds = 1, longest = 1;
    for (const ContractionForm::Loop& loop : form->loops) {
      const auto count = static_cast<double>(loop.count.upper_bound(builder_.symbols()));
      rounds *= count;
      longest = std::max(longest, count);
    }
    return rounds / longest;
  }
  /// The time of a copy, in calls.
  double copy_cost(const TensorType& type) const {
    const auto elements = static_cast<double>(volume(type.dims).upper_bound(builder_.symbols()));
    return 1 + 2 * elements * static_cast<double>(whole_bytes(type.dtype)) / kBytesOfCall;
  }

  bool is_few_calls(const Op& op) const {
    return op.kind != OpKind::einsum || calls_of(op) <= kFewCalls;
  }

  /// The einsum with those copies with which copies and calls take the least time, perhaps none.
  ValueId with_least_time(const Op& op) {
    std::vector<int64_t> axes;
    const Op product = reordered(op, axes);
    double least = has_form(op) ? calls_of(op) : std::numeric_limits<double>::infinity();
    Op best = op;
    bool is_reordered = false;
    for (const Op* form : {&op, &product})
      for (const auto& operands : {std::vector<uint32_t>{}, {0}, {1}, {0, 1}}) {
        double cost = form == &product && !llvm::is_sorted(axes) ? copy_cost(op.type) : 0;
        for (uint32_t operand : operands) cost += copy_cost(result_[op.operands[operand]].type);
        if (cost + 1 >= least) continue;
        const Op fixed = with_copies(*form, operands);
        if (!has_form(fixed) || cost + calls_of(fixed) >= least) continue;
        least = cost + calls_of(fixed);
        best = fixed;
        is_reordered = form == &product;
      }
    changed_ |= best.operands != op.operands || is_reordered;
    return is_reordered ? builder_.transpose(result_.add(best), axes, op.name) : result_.add(best);
  }

  /// The op with copies of the operands that its kernel could not address.
  ValueId anchor(const KernelFamily& family, Op op) {
    for (size_t k = 0; k < op.operands.size(); ++k)
      if (!addresses(family, op, k)) op.operands[k] = copy_for(op, op.operands[k]);
    return result_.add(std::move(op));
  }

  /// The kernel can read operand k where it is. By default a matrix needs rows of neighbouring
  /// elements, and any other value is dense from its first element on.
  bool addresses(const KernelFamily& family, const Op& op, size_t k) const {
    if (family.addresses) return family.addresses(result_, op, k, builder_.symbols());
    const ValueId operand = op.operands[k];
    return result_[operand].type.rank() == 2 ? strided_rows(result_, operand).has_value()
                                             : is_dense(result_, operand);
  }

  ValueId copy_for(const Op& op, ValueId operand) {
    changed_ = true;
    return builder_.op(OpKind::copy, {operand}, {}, op.name + "." + result_[operand].name);
  }

  bool has_form(const Op& op) const {
    return contraction_form(result_, op, builder_.symbols()).has_value();
  }

  ValueId in_order(ValueId x, const std::vector<int64_t>& axes) {
    return llvm::is_sorted(axes) ? x : builder_.transpose(x, axes);
  }

  /// The op with dense copies of these operands, in the order of a product; of the bias as it is.
  Op with_copies(const Op& op, llvm::ArrayRef<uint32_t> operands) {
    Op fixed = op;
    constexpr std::string_view kSuffixes[] = {".a", ".b", ".bias"};
    for (uint32_t operand : operands) {
      if (operand >= op.operands.size()) continue;
      const auto order = operand < 2 ? gemm_order(op, operand) : std::vector<int64_t>{0};
      const ValueId ordered = in_order(op.operands[operand], order);
      const ValueId copy =
          builder_.op(OpKind::copy, {ordered}, {}, op.name + std::string(kSuffixes[operand]));
      fixed.operands[operand] = in_order(copy, inverse_order(order));
    }
    return fixed;
  }

  /// The einsum with its result's axes in the order batch, free in a, free in b, each in the order
  /// of gemm_order, so that they join as the axes of copied operands do; `axes` leads back.
  Op reordered(const Op& op, std::vector<int64_t>& axes) const {
    const std::string spec = op.attrs.get<std::string>(AttrName::spec);
    const size_t arrow = spec.find("->");
    const EinsumSpec parsed = *parse_einsum(spec);
    Op product = op;
    product.name += ".product";
    product.type.dims.clear();
    axes.resize(op.type.rank());
    std::string ordered;
    for (const std::pair<bool, bool>& wanted :
         {std::pair(true, true), {true, false}, {false, true}})
      for (const EinsumAxis& axis : parsed.axes) {
        if (axis.result < 0 || (axis.a >= 0) != wanted.first || (axis.b >= 0) != wanted.second)
          continue;
        axes[static_cast<size_t>(axis.result)] = static_cast<int64_t>(ordered.size());
        ordered += axis.letter;
        product.type.dims.push_back(op.type.dims[static_cast<size_t>(axis.result)]);
      }
    product.attrs.set(AttrName::spec, spec.substr(0, arrow) + "->" + ordered);
    return product;
  }

  /// A reshape of a `linear` that keeps its rows: the linear with the reshape's axes, whose operand
  /// is reshaped. Invalid: it is none.
  ValueId linear_of_axes(ValueId id) {
    const Op view = result_[id];
    if (view.kind != OpKind::reshape) return {};
    Op product = result_[view.operands[0]];
    if (!is_without_order(product, OpKind::linear) || view.type.dims.empty() ||
        view.type.dims.back() != product.type.dims.back() || product.type.dims.back().is(0) ||
        !llvm::all_of(product.operands, [&](ValueId id) { return builder_.may_read(id); }))
      return {};
    Dims dims = view.type.dims;
    dims.back() = result_[product.operands[0]].type.dims.back();
    product.operands[0] = builder_.reshape(product.operands[0], dims);
    product.type.dims = view.type.dims;
    product.name = view.name;
    result_[id].name += ".view";
    if (!has_form(product)) return {};
    changed_ = true;
    return result_.add(std::move(product));
  }

  /// An output that a step of its own has written.
  ValueId output(ValueId id) {
    const Op& op = result_[id];
    if (computes(op) && !writes_state(op)) return id;
    if (const auto known = outputs_.find(id.index); known == outputs_.end())
      if (const ValueId product = linear_of_axes(id); product.valid())
        return outputs_[id.index] = product;
    ValueId& copy = outputs_[id.index];
    if (copy.valid()) return copy;
    changed_ = true;
    // A view gives its name to the copy; leaves and states keep theirs.
    std::string name = op.name + ".out";
    if (op_class(op) == OpClass::view || op_class(op) == OpClass::generator) {
      name = op.name;
      result_[id].name += ".view";
    }
    return copy = builder_.op(OpKind::copy, {id}, {}, name);
  }

  Builder& builder_;
  GraphRewriter& rewriter_;
  Graph& result_;
  llvm::DenseMap<uint32_t, ValueId> outputs_;  // copies, by value
  bool changed_ = false;
};

}  // namespace

bool materialize(Module& module) {
  const auto any = [](const Op&) { return true; };
  return rewrite_graphs(module, any,
                        [](const Graph&, auto&... made) { return Materializer(made...).run(); });
}

}  // namespace sinter
