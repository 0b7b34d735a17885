// print and parse are inverse; what may be written otherwise reads as the canonical form.
#include "ir/text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ir/builder.h"
#include "ir/every_op.h"
#include "ir/symbols.h"
#include "support/algorithms.h"
#include "support/result.h"

namespace sinter::text_test {
namespace {

Module parsed(std::string_view text) { return value(parse_module(text, "test.sir")); }

}  // namespace

TEST_CASE("the module with every op prints as it is written") {
  const std::string text = every_op_text();
  CHECK(print_module(parsed(text)) == text);
}

TEST_CASE("the module with every op has every op but those of callers") {
  const Module module = parsed(every_op_text());
  std::set<test::Algorithm> seen = {{OpKind::custom}};  // custom_op_test.cpp
  for (const Weight& weight : module.weights)
    for (const Op& op : weight.init.ops()) seen.insert(test::algorithm_of(op));
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops()) seen.insert(test::algorithm_of(op));
  for (const test::Algorithm& algorithm : test::all_algorithms())
    CHECK_MESSAGE(seen.contains(algorithm), algorithm.name());
}

TEST_CASE("a module keeps all that the text says") {
  const Module module = parsed(R"(
module @m {
  symbol N in [0, 64] step 8
  symbol M in [1, 4] at_most N
  weight %w : f16[4] = file {tensor = "t"}
  state %s : f16[N, 4]
  entry @go(%x: f16[M, 4], %i: i32[M]) -> (%y, %x, %y) {
    %t = add %x, %w : f16[M, 4]
    %s1 = kv_append %s, %t, %i : f16[N, 4]
    %y = mul %t, %w : f16[M, 4]
  }
})");
  CHECK(module.name == "m");
  REQUIRE(module.symbols.size() == 2);
  CHECK(module.symbols[0].high == 64);
  CHECK(module.symbols[0].low == 0);
  CHECK(module.symbols[0].multiple == 8);
  CHECK_FALSE(module.symbols[0].at_most.has_value());
  CHECK((module.symbols[1].at_most == SymbolId{0}));
  const Weight& weight = module.weights.at(0);
  CHECK(weight.init.ops()[0].name == "w");
  CHECK(weight.init.ops()[0].attrs.get<std::string>(AttrName::tensor) == "t");
  CHECK((weight.init.ops()[0].attrs.get<DType>(AttrName::dtype) == DType::f16));
  CHECK((weight.init.ops()[0].attrs.get<Dims>(AttrName::dims) == Dims{4}));

  const Graph& graph = module.entries.at(0).graph;
  // Inputs first, leaves at their first use.
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{"x", "i", "w", "t", "s", "s1", "y"});
  CHECK((graph.ops()[2].kind == OpKind::weight));
  CHECK((graph.ops()[4].kind == OpKind::state));
  CHECK((graph.ops()[5].operands[0] == ValueId{4}));
  CHECK((graph.inputs.size() == 2 && graph.inputs[1] == ValueId{1}));
  REQUIRE(graph.outputs.size() == 3);
  CHECK((graph.outputs[0] == ValueId{6} && graph.outputs[1] == ValueId{0} &&
         graph.outputs[2] == ValueId{6}));
  CHECK((graph.ops()[0].type == TensorType{DType::f16, {SymbolId{1}, 4}}));
}

TEST_CASE("line ends mean nothing, comments are skipped, attributes may be spelled out") {
  const Module loose = parsed(
      "// head\r\nmodule @m{entry @e()->(%a){%a=constant{dims=[2],dtype=f16,value=1.5}:f16[2]"
      "%b=cast%a{dtype=f32}:f32[2]// tail\n}}// end");
  CHECK(print_module(loose) ==
        "module @m {\n"
        "  entry @e() -> (%a) {\n"
        "    %a = constant {value = 0x1.8p+0} : f16[2]\n"
        "    %b = cast %a : f32[2]\n"
        "  }\n"
        "}\n");
}

TEST_CASE("an op without a type has the inferred one") {
  const std::string loose = every_op_without_types();
  CHECK(loose.size() + 500 < every_op_text().size());
  CHECK(print_module(parsed(loose)) == every_op_text());
}

TEST_CASE("attributes give the type of an op without operands, a view or a cast") {
  const Module loose = parsed(R"(
module @m {
  symbol N in [1, 8]
  weight %w : f32[4] = {
    %one = constant {dims = [4], dtype = f32, value = 1}
    %two = add %one, %one
    return %two
  }
  entry @e(%x: f32[N, 4]) -> (%y) {
    %a = reshape %x {dims = [N, 2, 2]}
    %i = iota {dims = [N], axis = 0}
    %y = cast %a {dtype = f16}
  }
})");
  CHECK(print_module(loose) ==
        "module @m {\n"
        "  symbol N in [1, 8]\n"
        "  weight %w : f32[4] = {\n"
        "    %one = constant {value = 0x1p+0} : f32[4]\n"
        "    %two = add %one, %one : f32[4]\n"
        "    return %two\n"
        "  }\n"
        "  entry @e(%x: f32[N, 4]) -> (%y) {\n"
        "    %a = reshape %x : f32[N, 2, 2]\n"
        "    %i = iota {axis = 0} : i32[N]\n"
        "    %y = cast %a : f16[N, 2, 2]\n"
        "  }\n"
        "}\n");
}

TEST_CASE("a graph alone infers types with its symbols") {
  const std::vector<Symbol> symbols = {{.name = "N", .low = 1, .high = 8}};
  const Graph graph = value(
      parse_graph("graph(%x: f32[N, 4]) -> (%y) { %h = slice %x {axis = 1, begin = 0, size = 2} "
                  "%y = neg %h }",
                  "g", symbols));
  CHECK((graph.ops().back().type == TensorType{DType::f32, {SymbolId{0}, 2}}));
}

TEST_CASE("an optional dtype is kept apart from an absent one") {
  const std::string text =
      "module @m {\n"
      "  entry @e(%a: f16[2, 3]) -> (%b, %c) {\n"
      "    %b = einsum %a, %a {spec = \"ij,kj->ik\"} : f16[2, 2]\n"
      "    %c = einsum %a, %a {dtype = f16, spec = \"ij,kj->ik\"} : f16[2, 2]\n"
      "  }\n"
      "}\n";
  const Module module = parsed(text);
  CHECK_FALSE(module.entries[0].graph.ops()[1].attrs.has(AttrName::dtype));
  CHECK(module.entries[0].graph.ops()[2].attrs.has(AttrName::dtype));
  CHECK(print_module(module) == text);
}

TEST_CASE("doubles round-trip bit for bit") {
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.5,
                                      1e-5,
                                      3.0e300,
                                      5e-324,
                                      -5e-324,
                                      2.2250738585072014e-308,
                                      1.7976931348623157e308,
                                      0.1,
                                      1.0 / 3,
                                      65504,
                                      -INFINITY,
                                      INFINITY};
  Module module;
  module.name = "m";
  module.entries.push_back({"e", {}});
  Graph& graph = module.entries[0].graph;
  Builder builder(graph, module.symbols);
  graph.outputs = {builder.op(OpKind::literal, {},
                              Attributes()
                                  .set(AttrName::dims, Dims{static_cast<int64_t>(values.size())})
                                  .set(AttrName::dtype, DType::f32)
                                  .set(AttrName::values, values))};
  const Module again = parsed(print_module(module));
  const auto& read =
      again.entries[0].graph.ops()[0].attrs.get<std::vector<Number>>(AttrName::values);
  REQUIRE(read.size() == values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(read[i].to_double() == values[i]);
    CHECK(std::signbit(read[i].to_double()) == std::signbit(values[i]));
  }
}

TEST_CASE("decimal and hexadecimal floats read alike") {
  const auto value_of = [](std::string_view number) {
    const Module module = parsed(fmt::format(
        "module @m {{ entry @e() -> (%a) {{ %a = constant {{value = {}}} : f32[] }} }}", number));
    return module.entries[0].graph.ops()[0].attrs.get<Number>(AttrName::value).to_double();
  };
  CHECK(value_of("0.5") == 0.5);
  CHECK(value_of("-2") == -2.0);
  CHECK(value_of("1e-5") == 1e-5);
  CHECK(value_of("2.5E+3") == 2500.0);
  CHECK(value_of("0x1.8p-3") == 0.1875);
  CHECK(value_of("-0x1p+4") == -16.0);
  CHECK(value_of("-inf") == -INFINITY);
  CHECK(std::isnan(value_of("nan")));
}

TEST_CASE("any name that is UTF-8 round-trips") {
  const std::vector<std::string> names = {"plain.0_x",
                                          "int",
                                          "__global__",
                                          "a b",
                                          "line\nend",
                                          "#include",
                                          "*/",
                                          "\"quoted\"",
                                          "tail\\",
                                          "%@{}",
                                          "\xC3\xA9t\xC3\xA9",
                                          std::string("nul\0x", 5),
                                          "//",
                                          "\x7F\x1b[31m"};
  Module module;
  module.name = names[4];
  for (const std::string& name : names) {
    module.states.push_back({name, TensorType{DType::f16, {2, 2}}});
    module.entries.push_back({name, {}});
    Graph& graph = module.entries.back().graph;
    graph.outputs = {graph.add(Op{OpKind::state, module.states.back().type, {}, {}, name})};
  }
  const std::string text = print_module(module);
  for (char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  const Module again = parsed(text);
  CHECK(again.name == module.name);
  REQUIRE(again.entries.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(again.states[i].name == names[i]);
    CHECK(again.entries[i].name == names[i]);
    CHECK(again.entries[i].graph.ops()[0].name == names[i]);
  }
  CHECK(print_module(again) == text);
}

TEST_CASE("names that differ only in special characters stay apart") {
  const Module module = parsed(
      "module @m { entry @e(%a.b: f32[2], %a_b: f32[2], %\"a-b\": f32[2]) -> (%y) {"
      "  %y = sub %a_b, %\"a-b\" : f32[2] } }");
  const Graph& graph = module.entries[0].graph;
  CHECK((graph.ops()[3].operands[0] == ValueId{1}));
  CHECK((graph.ops()[3].operands[1] == ValueId{2}));
}

TEST_CASE("leaves move to their first use, unused ones go") {
  Module module;
  module.name = "m";
  module.states = {{"s", {DType::f32, {2}}}, {"unused", {DType::f32, {2}}}};
  module.entries.push_back({"e", {}});
  Graph& graph = module.entries[0].graph;
  Builder builder(graph, module.symbols);
  builder.leaf(OpKind::state, {DType::f32, {2}}, "unused");
  const ValueId s = builder.leaf(OpKind::state, {DType::f32, {2}}, "s");
  const ValueId x = builder.leaf(OpKind::input, {DType::f32, {2}}, "x");
  graph.outputs = {builder.op(OpKind::add, {builder.op(OpKind::neg, {x}, {}, "n"), s}, {}, "y")};
  const std::string text = print_module(module);
  const Module again = parsed(text);
  CHECK(print_module(again) == text);
  std::vector<std::string> names;
  for (const Op& op : again.entries[0].graph.ops()) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{"x", "n", "s", "y"});
}

TEST_CASE("a graph alone round-trips, leaves and all") {
  const std::vector<Symbol> symbols = {host_symbol("N", 1, 64), host_symbol("R", 8, 64, 8)};
  const std::string text =
      "graph(%cache: f16[R, 4], %x: f16[N, 4], %slot: i32[N]) -> (%next, %y) {\n"
      "  %w = weight : f16[4]\n"
      "  %y = add %x, %w : f16[N, 4]\n"
      "  %next = kv_append %cache, %y, %slot : f16[R, 4]\n"
      "}\n";
  auto graph = parse_graph(text, "group", symbols);
  REQUIRE_MESSAGE(graph.has_value(), (graph ? std::string() : graph.error().message()));
  CHECK(print_graph(*graph, symbols) == text);
  CHECK(graph->inputs.size() == 3);
  CHECK((graph->ops()[3].kind == OpKind::weight));
}

}  // namespace sinter::text_test
