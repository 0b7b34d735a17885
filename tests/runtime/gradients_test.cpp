// Gradients of all ops, evaluated in float64, against central differences of the ops, and as the
// ops round, against float64. SINTER_TRIES=N draws N uses of each op (20) and prints the largest
// errors.
#include "ir/gradients.h"

#include <doctest/doctest.h>
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <cstdlib>

#include "ir/decompose.h"
#include "ir/graph_copier.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "runtime/eval_case.h"
#include "runtime/gradient_uses.h"
#include "support/result.h"

namespace sinter::gradients_test {
namespace {

using V = std::vector<double>;

Module parsed(const OpUse& use) {
  const std::string source = fmt::format(
      "module @m {{\n  symbol N in [4, 16]\n  symbol M in [1, 16] at_most N\n"
      "  entry @e({}) -> (%y) {{\n{}\n  }}\n}}\n",
      use.parameters, use.ops);
  return value(parse_module(source, "test.sir"));
}

/// A graph that compares, for random directions d of its inputs and a random gradient r of the
/// result, the sum of gradient times d with the sum of r (y(x + hd) - y(x - hd)) / 2h. Outputs: the
/// difference, the sums of the absolute values of r y and of gradient times d, and the gradients.
class Comparison {
 public:
  static constexpr double kStep = 0x1p-17;  // about cbrt(2^-52): both errors are about h^2

  explicit Comparison(const Module& module)
      : symbols_(module.symbols), forward_(decompose_all(module.entries[0].graph, symbols_)) {
    for (ValueId input : forward_.inputs) {
      const Op& op = forward_[input];
      point_.push_back(b_.leaf(OpKind::input, op.type, op.name));
      if (!is_float(op.type.dtype)) continue;
      wanted_.push_back(point_.back());
      directions_.push_back(b_.leaf(OpKind::input, op.type, op.name + ".direction"));
    }
    const ValueId y = at(point_);
    const ValueId r = b_.leaf(OpKind::input, b_.type(y), "gradient");
    const std::vector<ValueId> gradients = value(add_gradients(b_, y, r, wanted_));
    ValueId along = b_.constant(0, DType::f32), size = along;
    for (size_t i = 0; i < gradients.size(); ++i) {
      REQUIRE(b_.type(gradients[i]) == b_.type(wanted_[i]));
      const ValueId product = b_.mul(gradients[i], directions_[i]);
      along = b_.add(along, total(product));
      size = b_.add(size, total(b_.abs(product)));
    }
    const ValueId above = at(moved(kStep)), below = at(moved(-kStep));
    const ValueId steps = total(b_.mul(r, b_.sub(above, below)));
    const ValueId slope = b_.mul(steps, b_.constant(0.5 / kStep, DType::f32));
    graph_.outputs = {b_.sub(along, slope), total(b_.abs(b_.mul(r, y))), size};
    llvm::append_range(graph_.outputs, gradients);
    make_names_unique(graph_);
    const auto violation = find_violation(graph_, symbols_);
    REQUIRE_MESSAGE(!violation, (violation ? violation->error.message() : ""));
  }

  /// Draws a call and evaluates it in float64, and as the ops round.
  void run(const OpUse& use, Random& random) {
    const std::vector<int64_t> symbols = {random.between(4, 6), random.between(1, 4)};
    const std::vector<HostTensor> inputs = draw(use, symbols, random);
    const auto evaluated = [&](const EvalOptions& options) {
      return value(evaluate(graph_, symbols_, symbols, addresses_of(inputs), options));
    };
    precise_ = evaluated({.precise = true});
    rounded_ = evaluated({});
  }

  /// |difference| over its bound: rounding in float64 adds about 2^-52 / h of the results, and
  /// third derivatives add h^2 / 6; both are about h^2.
  double error() const {
    const double difference = values_of(precise_[0])[0];
    const double bound = kStep * kStep * (values_of(precise_[1])[0] + values_of(precise_[2])[0]);
    return difference == 0 ? 0 : std::abs(difference) / (kFactor * bound);
  }

  /// The largest error of a gradient of the rounding ops, in unit roundoffs of the coarsest type
  /// among inputs and result and of the largest gradient, at least of 1.
  double rounding_error() const {
    double unit = 0, largest = 1, error = 0;
    for (ValueId input : graph_.inputs)
      if (const DTypeInfo& info = dtype_info(b_.type(input).dtype); is_float(info.dtype))
        unit = std::max(unit, std::ldexp(1, -info.digits));
    for (size_t i = kChecks; i < precise_.size(); ++i) {
      const V exact = values_of(precise_[i]), rounded = values_of(rounded_[i]);
      for (size_t k = 0; k < exact.size(); ++k) {
        largest = std::max(largest, std::abs(exact[k]));
        error = std::max(error, std::abs(rounded[k] - exact[k]));
      }
    }
    return error == 0 ? 0 : error / (unit * largest);
  }

 private:
  static constexpr size_t kChecks = 3;  // outputs before the gradients
  static constexpr double kFactor = 4;  // third derivatives over values and first ones

  std::vector<HostTensor> draw(const OpUse& use, const std::vector<int64_t>& symbols,
                               Random& random) const {
    std::vector<HostTensor> inputs;
    size_t below = 0, packed = 0;
    for (ValueId id : graph_.inputs) {
      const Op& op = graph_[id];
      if (op.type.dtype == DType::i32 && packed < use.packed.size()) {
        inputs.push_back(use.packed[packed++]);
        continue;
      }
      std::vector<int64_t> dims;
      for (Dim dim : op.type.dims)
        dims.push_back(dim.is_constant() ? dim.constant() : symbols[dim.symbol().index]);
      const bool is_point = llvm::is_contained(point_, id);
      double low = is_point ? use.low : -1, high = is_point ? use.high : 1;
      if (op.type.dtype == DType::i32) {
        const std::string& extent = use.below.size() == 1 ? use.below[0] : use.below[below++];
        low = 0;
        high = extent == "N"   ? static_cast<double>(symbols[0])
               : extent == "M" ? static_cast<double>(symbols[1])
                               : std::stod(extent);
      } else if (op.type.dtype == DType::i1) {
        low = 0, high = 2;
      }
      inputs.push_back(random_tensor(op.type.dtype, dims, low, high, random.next()));
    }
    return inputs;
  }

  /// The result at other inputs.
  ValueId at(llvm::ArrayRef<ValueId> inputs) {
    GraphCopier copy(forward_, graph_, [](ValueId) { return false; });
    for (size_t i = 0; i < inputs.size(); ++i) copy.define(forward_.inputs[i], inputs[i]);
    return copy(forward_.outputs[0]);
  }
  std::vector<ValueId> moved(double step) {
    std::vector<ValueId> inputs = point_;
    for (size_t i = 0, k = 0; i < inputs.size(); ++i) {
      const DType dtype = b_.type(inputs[i]).dtype;
      if (!is_float(dtype)) continue;
      const ValueId way = b_.mul(directions_[k++], b_.constant(step, dtype));
      inputs[i] = b_.add(inputs[i], way);
    }
    return inputs;
  }
  ValueId total(ValueId x) {
    const ValueId wide = b_.cast(x, DType::f32);
    std::vector<int64_t> axes;
    for (size_t i = 0; i < b_.type(x).rank(); ++i) axes.push_back(static_cast<int64_t>(i));
    return axes.empty() ? wide : b_.reshape(b_.reduce(OpKind::reduce_sum, wide, axes), {});
  }

  std::vector<Symbol> symbols_;
  Graph forward_, graph_;
  Builder b_{graph_, symbols_, "value"};
  std::vector<ValueId> point_, wanted_, directions_;
  std::vector<HostTensor> precise_, rounded_;
};

constexpr double kMaxRounding = 24;  // sums of up to 216 elements

TEST_CASE("gradients agree with central differences in float64") {
  const char* wanted = std::getenv("SINTER_TRIES");
  const int tries = wanted ? std::atoi(wanted) : 20;
  std::string table = "op, largest error over its bound, error of rounding in unit roundoffs:\n";
  for (std::string_view op : differentiable_ops()) {
    Random random(17);
    double largest = 0, rounding = 0;
    for (int i = 0; i < tries; ++i) {
      const OpUse use = random_use(op, random);
      INFO(use.parameters, "\n", use.ops);
      Comparison comparison(parsed(use));
      comparison.run(use, random);
      CHECK(comparison.error() < 1);
      CHECK(comparison.rounding_error() < kMaxRounding);
      largest = std::max(largest, comparison.error());
      rounding = std::max(rounding, comparison.rounding_error());
    }
    table += fmt::format("  {:<20}{:<12.2g}{:.2g}\n", op, largest, rounding);
  }
  if (wanted) MESSAGE(table);
}

}  // namespace
}  // namespace sinter::gradients_test
