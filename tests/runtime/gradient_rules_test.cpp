// Rules of gradients where an op has no derivative, sums over a value's readers, errors, and that
// every op has a rule.
#include <doctest/doctest.h>
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <set>

#include "ir/decompose.h"
#include "ir/every_op.h"
#include "ir/gradients.h"
#include "ir/text.h"
#include "runtime/eval_case.h"
#include "runtime/gradient_uses.h"
#include "support/custom_ops.h"
#include "support/result.h"

namespace sinter::gradient_rules_test {
namespace {

using V = std::vector<double>;

/// The gradients of `wanted` of a module's result %y, whose gradient is the last parameter.
Result<std::vector<ValueId>> try_gradients(Module& module,
                                           const std::vector<std::string_view>& wanted) {
  Graph& graph = module.entries[0].graph;
  Builder b(graph, module.symbols, "gradient");
  std::vector<ValueId> values;
  for (std::string_view name : wanted) values.push_back(graph.find(name));
  return add_gradients(b, graph.outputs[0], graph.inputs.back(), values);
}

std::string gradient_error(Module module, const std::vector<std::string_view>& wanted) {
  const auto result = try_gradients(module, wanted);
  REQUIRE_FALSE(result.has_value());
  return result.error().message();
}

/// Their values, with composites decomposed.
std::vector<V> gradients(Module module, const std::vector<std::string_view>& wanted,
                         const std::vector<HostTensor>& inputs) {
  Entry& entry = module.entries[0];
  entry.graph = decompose_all(entry.graph, module.symbols);
  const auto found = value(try_gradients(module, wanted));
  entry.graph.outputs.assign(found.begin(), found.end());
  std::vector<V> values;
  for (const HostTensor& tensor : value(try_evaluate(module, inputs))) {
    CHECK(tensor.dtype == DType::f32);
    values.push_back(values_of(tensor));
  }
  return values;
}

HostTensor floats(const V& values) {
  return tensor(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

TEST_CASE("operands of maximum and minimum that are equal have half of the gradient each") {
  for (std::string_view op : {"maximum", "minimum"}) {
    const Module module =
        module_of("%a: f32[3], %b: f32[3], %g: f32[3]", fmt::format("%y = {} %a, %b : f32[3]", op));
    const auto found =
        gradients(module, {"a", "b"}, {floats({1, 2, 3}), floats({1, 3, 2}), floats({4, 5, 6})});
    const bool is_maximum = op == "maximum";
    CHECK(found[0] == (is_maximum ? V{2, 0, 6} : V{2, 5, 0}));
    CHECK(found[1] == (is_maximum ? V{2, 5, 0} : V{2, 0, 6}));
  }
}

TEST_CASE("elements that equal the maximum share the gradient evenly") {
  const Module module =
      module_of("%x: f32[5], %g: f32[1]", "%y = reduce_max %x {axes = [0]} : f32[1]");
  CHECK(gradients(module, {"x"}, {floats({2, 1, 2, 2, -3}), floats({6})})[0] == V{2, 0, 2, 2, 0});
}

TEST_CASE("slopes where an op has no derivative") {
  const auto slopes = [](std::string_view op, V x) {
    const std::string type = fmt::format("f32[{}]", x.size());
    const Module module =
        module_of(fmt::format("%x: {0}, %g: {0}", type), fmt::format("%y = {} %x : {}", op, type));
    return gradients(module, {"x"}, {floats(x), floats(V(x.size(), 1))})[0];
  };
  CHECK(slopes("abs", {-2, -0.0, 0, 3}) == V{-1, 0, 0, 1});
  CHECK(slopes("exp_neg_abs", {-0.0, 0}) == V{1, 1});
  CHECK(slopes("relu", {-1, 0, 1}) == V{0, 0.5, 1});
  CHECK(slopes("floor", {-1.5, 0, 1}) == V{0, 0, 0});
  CHECK(slopes("round", {-1.5, 0, 1}) == V{0, 0, 0});
}

TEST_CASE("pow has a gradient where a factor of its formula is infinite") {
  const Module module = module_of("%a: f32[4], %b: f32[4], %g: f32[4]", "%y = pow %a, %b : f32[4]");
  const auto found = gradients(module, {"a", "b"},
                               {floats({0, 0, 3, 2}), floats({0, 2, 0, 3}), floats({1, 1, 1, 1})});
  CHECK(found[0] == V{0, 0, 0, 12});
  CHECK(found[1][0] == 0);
  CHECK(found[1][1] == 0);
  CHECK(found[1][3] == doctest::Approx(8 * std::log(2)).epsilon(1e-6));
}

TEST_CASE("the gradient of softmax is its formula at ties too") {
  const Module module = module_of("%x: f32[4], %g: f32[4]", "%y = softmax %x : f32[4]");
  const V x = {1, 1, 0, -1}, g = {3, -1, 2, 5};
  V p;
  double sum = 0, mean = 0;
  for (double value : x) sum += p.emplace_back(std::exp(value));
  for (size_t i = 0; i < x.size(); ++i) mean += (p[i] /= sum) * g[i];
  const V found = gradients(module, {"x"}, {floats(x), floats(g)})[0];
  for (size_t i = 0; i < x.size(); ++i) CHECK(std::abs(found[i] - p[i] * (g[i] - mean)) < 1e-6);
}

TEST_CASE("readers of a value are added in float32 and rounded once") {
  Module module = module_of("%x: f16[1], %g: f16[1]",
                            "%small = constant {value = 0x1p-11} : f16[]\n"
                            "%a = mul %x, %small : f16[1]\n%b = mul %x, %small : f16[1]\n"
                            "%ab = add %a, %b : f16[1]\n%y = add %x, %ab : f16[1]");
  const auto found = value(try_gradients(module, {"x"}));
  Graph& graph = module.entries[0].graph;
  CHECK(graph[found[0]].type == graph[graph.inputs[0]].type);
  graph.outputs = {found[0]};
  const HostTensor one = tensor(DType::f16, {1}, {1});
  CHECK(values_of(evaluated(module, {one, one})) == V{1 + 0x1p-10});  // in f16 each sum is 1
}

TEST_CASE("values within the graph can be wanted, and values without influence have zeros") {
  const Module module = module_of("%x: f32[2], %z: f32[3], %g: f32[2]",
                                  "%a = mul %x, %x : f32[2]\n%y = mul %a, %a : f32[2]");
  const auto found =
      gradients(module, {"a", "x", "z", "y"}, {floats({1, 2}), floats({0, 0, 0}), floats({1, 10})});
  CHECK(found == std::vector<V>{{2, 80}, {4, 320}, {0, 0, 0}, {1, 10}});
}

TEST_CASE("errors name the op and the type") {
  const auto at = [](std::string_view parameters, std::string_view ops) {
    return module_of(parameters, ops);
  };
  const Module composite = at("%x: f32[2], %g: f32[2]", "%y = silu %x : f32[2]");
  CHECK(gradient_error(composite, {"x"}) ==
        "%y: op silu is a composite; decompose the graph first");
  const Module integers = at("%x: f32[2], %i: i32[2], %g: f32[2]", "%y = neg %x : f32[2]");
  CHECK(gradient_error(integers, {"i"}) == "i32[2] has no gradient, only values of float types do");
  const Module other = at("%x: f32[2], %g: f16[2]", "%y = neg %x : f32[2]");
  CHECK(gradient_error(other, {"x"}) ==
        "output f32[2] and its gradient f16[2]: must have one type, a float type");
  const Module ids =
      at("%t: f32[4, 2], %i: i32[N, M], %g: f32[N, M, 2]", "%y = embedding %t, %i : f32[N, M, 2]");
  CHECK(gradient_error(ids, {"t"}) ==
        "%y: op embedding has no gradient: the number of ids or of rows is no constant or symbol");
  const Module attention =
      at("%q: f32[N, 8], %k: f32[M, 8], %f: i32[N], %s: i32[N], %g: f32[N, 8]",
         "%y = attention %q, %k, %k, %f, %s {heads = 1, kv_heads = 1, scale = 0x1p+0} : f32[N, 8]");
  CHECK(gradient_error(attention, {"q"}).starts_with("%y: op attention has no gradient: "));
  const Module sink = at("%q: f16[N, 8], %k: f16[M, 8], %f: i32[N], %s: i32[N], %g: f16[N, 8]",
                         "%y = attention %q, %k, %k, %f, %s {heads = 1, kv_heads = 1, scale = "
                         "0x1p+0, sink = 1} : f16[N, 8]");
  CHECK(gradient_error(sink, {"k"}) == "%y: op attention has no gradient: sink is set");
  const Module rows = at("%x: f16[N, 8], %w: f16[1, 4, 8], %e: i32[1], %g: f16[N, 4]",
                         "%y = grouped_linear %x, %w, %e : f16[N, 4]");
  CHECK(gradient_error(rows, {"x"}).find("op grouped_linear has no gradient: ") !=
        std::string::npos);
}

TEST_CASE("an op without a gradient is no error where nothing wanted is behind it") {
  Module module = module_of("%x: f32[2, 2], %z: f32[2, 2], %g: f32[2, 2]",
                            "%p = place %z {axis = 0, begin = 0, size = 2} : f32[2, 2]\n"
                            "%y = mul %x, %p : f32[2, 2]");
  CHECK(try_gradients(module, {"x"}).has_value());
  CHECK(gradient_error(module, {"z"}) == "%p: op place has no gradient");
}

/// Ops with float operands and a float result that have no gradient.
const std::set<std::string_view> kWithoutGradient = {"kv_append",
                                                     "store",
                                                     "place",
                                                     "run_sums",
                                                     "attention_log_sum",
                                                     "attention_query_gradient",
                                                     "attention_key_gradient",
                                                     "attention_value_gradient",
                                                     "expert_linear",
                                                     "all_reduce",
                                                     "custom"};

/// The error of the gradients of one op; empty: there is none.
std::string error_of_op(OpKind kind, llvm::ArrayRef<TensorType> types, const Attributes& attrs,
                        llvm::ArrayRef<Symbol> symbols) {
  Graph graph;
  Builder b(graph, symbols);
  std::vector<ValueId> operands, wanted;
  for (const TensorType& type : types) {
    operands.push_back(b.leaf(OpKind::input, type, fmt::format("x{}", operands.size())));
    if (is_float(type.dtype)) wanted.push_back(operands.back());
  }
  const ValueId y = b.op(kind, operands, attrs, "y");
  if (!is_float(b.type(y).dtype)) return {};
  const auto found = add_gradients(b, y, b.leaf(OpKind::input, b.type(y), "gradient"), wanted);
  return found ? "" : found.error().message();
}

TEST_CASE("every op has a gradient, is decomposed or says that it has none") {
  Module module = value(parse_module(every_op_text(), "every_op.sir"));
  test::register_custom_ops();
  const Module custom =
      module_of("%x: f16[N, 512], %w: f16[512]",
                "%y = custom %x, %w {op = \"test.rms_norm\", numbers = [0x1p-20]} : f16[N, 512]");
  const std::vector<std::string_view> tested = differentiable_ops();
  std::set<std::string_view> seen;
  const auto check = [&](const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
    for (const Op& op : graph.ops()) {
      const OpInfo& info = op_info(op.kind);
      seen.insert(info.name);
      if (op.operands.empty()) continue;
      std::vector<TensorType> types;
      for (ValueId operand : op.operands) types.push_back(graph[operand].type);
      const auto has_float = [](const TensorType& type) { return is_float(type.dtype); };
      const std::string error = error_of_op(op.kind, types, op.attrs, symbols);
      INFO(info.name);
      if (!is_float(op.type.dtype) || llvm::none_of(types, has_float))
        CHECK(error == "");
      else if (info.op_class == OpClass::composite)
        CHECK(error.find("is a composite") != std::string::npos);
      else if (kWithoutGradient.contains(info.name))
        CHECK(error == fmt::format("%y: op {} has no gradient", info.name));
      else  // of operands such as these it may have none
        CHECK((llvm::is_contained(tested, info.name) &&
               (error == "" ||
                error.starts_with(fmt::format("%y: op {} has no gradient: ", info.name)))));
    }
  };
  for (const Weight& weight : module.weights) check(weight.init, module.symbols);
  for (const Entry& entry : module.entries) check(entry.graph, module.symbols);
  check(custom.entries[0].graph, custom.symbols);
#define SINTER_OP(name, ...) CHECK_MESSAGE(seen.contains(#name), #name);
#define SINTER_ELEMENTWISE(name, ...) CHECK_MESSAGE(seen.contains(#name), #name);
#include "ir/ops.def"
}

}  // namespace
}  // namespace sinter::gradient_rules_test
