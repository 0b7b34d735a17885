// Modules that are built op by op: the text form that they have, and the errors of bad ones.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "sinter.h"

using namespace sinter;

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The error of a module that `build` makes.
template <typename Build>
Error error_of(Build build) {
  ModuleBuilder module("m");
  Graph graph = module.entry("main");
  build(module, graph);
  const auto model = module.build();
  REQUIRE_FALSE(model);
  return model.error();
}

}  // namespace

TEST_CASE("the facts name the limits and each op with its class and operands") {
  const auto facts = sinter::facts();
  REQUIRE(facts);
  for (const char* part :
       {R"("axes": 8)", R"("gradient_width": 128)",
        R"("add": {"class": "elementwise", "operands": [2, 2]})",
        R"("reshape": {"class": "view", "operands": [1, 1]})", R"("lanes": 32)", R"("int4": 4)"})
    CHECK_MESSAGE(facts->find(part) != std::string::npos, part);
  CHECK(std::string(sinter_error_what(sinter_facts(nullptr))) == "the last parameter is null");
}

TEST_CASE("a module that is built is the one that its text says") {
  ModuleBuilder module("norm");
  const Symbol rows = module.symbol("N", 1, 64);
  module.weight("w", DType::f16, {8});
  module.state("cache", DType::f16, {16, 8});
  Graph graph = module.entry("main");
  const Value x = graph.input("x", DType::f16, {rows, 8});
  const Value slot = graph.input("slot", DType::i32, {rows});
  const Value y = graph.rms_norm(x, graph.use("w"), 0.125, "y");
  graph.output(graph.kv_append(graph.use("cache"), y, slot, "next"));
  graph.output(graph.slice(graph.concat({x, y}, 1), 1, 4, 8, "part"));
  CHECK(graph.type(y) == "f16[N, 8]");
  const auto model = module.build();
  REQUIRE(model);
  const auto text = model->text();
  REQUIRE(text);
  CHECK(*text == R"(module @norm {
  symbol N in [1, 64]
  weight %w : f16[8] = file {tensor = "w"}
  state %cache : f16[16, 8]
  entry @main(%x: f16[N, 8], %slot: i32[N]) -> (%next, %part) {
    %y = rms_norm %x, %w {eps = 0x1p-3} : f16[N, 8]
    %next = kv_append %cache, %y, %slot : f16[16, 8]
    %t0 = concat %x, %y {axis = 1} : f16[N, 16]
    %part = slice %t0 {axis = 1, begin = 4, size = 8} : f16[N, 8]
  }
}
)");
  const auto parsed = Model::parse(*text);
  REQUIRE(parsed);
  const auto again = parsed->text();
  REQUIRE(again);
  CHECK(*again == *text);
  REQUIRE(model->tensors().size() == 1);
  CHECK(model->tensors()[0].name == "w");
  CHECK(model->tensors()[0].type == "f16[8]");
}

TEST_CASE("attention of several sequences with a mask") {
  ModuleBuilder module("m");
  const Symbol tokens = module.symbol("N", 1, 64);
  Graph graph = module.entry("main");
  const Value q = graph.input("q", DType::f16, {2, tokens, 32});
  const Value keys = graph.input("keys", DType::f16, {2, 40, 16});
  const Value rows = graph.input("rows", DType::i32, {2, tokens});
  const Value scores = graph.input("scores", DType::f32, {2, 4, tokens, 40});
  AttentionOptions options;
  options.window = 7;
  options.sink = 4;
  graph.output(graph.attention(q, keys, keys, rows, rows, 4, 2, 0.25, options, "windowed"));
  options.window = options.sink = 0;
  options.softcap = 2;
  options.mask = graph.input("mask", DType::i1, {2, 1, 1, 40});
  options.any_range = options.empty_zero = true;
  graph.output(graph.attention(q, keys, keys, rows, rows, 4, 2, 0.25, options, "masked"));
  const Value row = graph.input("row", DType::i32, {tokens});
  graph.output(graph.attention_softmax(scores, row, row, 1, DType::f16, options, "softmax"));
  const auto model = module.build();
  REQUIRE(model);
  const auto text = model->text();
  REQUIRE(text);
  for (const char* line :
       {"%windowed = attention %q, %keys, %keys, %rows, %rows "
        "{heads = 4, kv_heads = 2, scale = 0x1p-2, window = 7, sink = 4} : f16[2, N, 32]",
        "%masked = attention %q, %keys, %keys, %rows, %rows, %mask {heads = 4, kv_heads = 2, "
        "scale = 0x1p-2, softcap = 0x1p+1, any_range = 1, empty_zero = 1} : f16[2, N, 32]",
        "%softmax = attention_softmax %scores, %row, %row, %mask {scale = 0x1p+0, softcap = "
        "0x1p+1, any_range = 1, empty_zero = 1} : f16[2, 4, N, 40]"}) {
    CAPTURE(*text);
    CAPTURE(line);
    CHECK(text->find(line) != std::string::npos);
  }
}

TEST_CASE("the first error of a module is the one that build returns") {
  const Error shape = error_of([](ModuleBuilder&, Graph& graph) {
    const Value x = graph.input("x", DType::f16, {4, 8});
    const Value w = graph.input("w", DType::f16, {6});
    graph.output(graph.add(graph.rms_norm(x, w, 1e-5, "norm"), x));
    graph.output(graph.input("x", DType::f16, {4, 8}));
  });
  CHECK(shape.code == Code::bad_input);
  CHECK(shape.where.find("norm") != std::string::npos);
  CHECK(shape.what.find("C14") != std::string::npos);

  const Error second = error_of([](ModuleBuilder&, Graph& graph) {
    graph.input("x", DType::f16, {4});
    graph.input("x", DType::f16, {4});
  });
  CHECK(second.what.find("\"x\"") != std::string::npos);

  const Error unknown = error_of([](ModuleBuilder&, Graph& graph) { graph.op("conv", {}); });
  CHECK(unknown.what.find("conv") != std::string::npos);
  const Error leaf = error_of([](ModuleBuilder&, Graph& graph) { graph.op("input", {}); });
  CHECK(leaf.hint.find("sinter_graph_input") != std::string::npos);
  const Error absent = error_of([](ModuleBuilder&, Graph& graph) { graph.use("nothing"); });
  CHECK(absent.what.find("nothing") != std::string::npos);
  const Error attributes = error_of([](ModuleBuilder&, Graph& graph) {
    graph.op("softmax", {graph.input("x", DType::f32, {4})}, "axis = 0");
  });
  CHECK(attributes.what.find("axis") != std::string::npos);
  const Error text = error_of([](ModuleBuilder&, Graph& graph) {
    graph.op("softmax", {graph.input("x", DType::f32, {4})}, "} : f32[4] %y = add");
  });
  CHECK_FALSE(text.message.empty());
  const Error operand = error_of([](ModuleBuilder&, Graph& graph) { graph.neg(Value{7}); });
  CHECK(operand.what.find("7") != std::string::npos);
  const Error symbol = error_of([](ModuleBuilder& module, Graph&) { module.symbol("N", 9, 3); });
  CHECK(symbol.what.find("N") != std::string::npos);
  const Error type =
      error_of([](ModuleBuilder&, Graph& graph) { graph.input("x", DType::f32, {Symbol{"M"}}); });
  CHECK(type.message.find("M") != std::string::npos);
  const Error size = error_of([](ModuleBuilder&, Graph& graph) {
    graph.input("x", DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40});
  });
  CHECK_FALSE(size.message.empty());
  const Error no_output = error_of([](ModuleBuilder& module, Graph&) { module.entry("main"); });
  CHECK(no_output.message.find("main") != std::string::npos);
}

/// Adds the function of an elementwise op to the class Graph of the header.
void add_function(std::string& header, const std::string& name, bool has_two_operands) {
  const std::string function =
      has_two_operands
          ? "(Value a, Value b, Name name = {}) { return op(\"" + name +
                "\", {a, b}, {}, name); }\n"
          : "(Value a, Name name = {}) { return op(\"" + name + "\", {a}, {}, name); }\n";
  header.insert(header.find("  /// condition ? a : b"), "  Value " + name + function);
}

/// With SINTER_BLESS=1 the functions of elementwise ops that the header lacks are written.
TEST_CASE("every op of the table is a function of Graph") {
  const std::string written = file_text(SINTER_API_DIR "/sinter.h");
  std::string header = written;
  const char* bless = std::getenv("SINTER_BLESS");
  const std::string table = file_text(SINTER_OPS);
  // Leaves have functions of other names; passes and importers add the others by Graph::op.
  const std::set<std::string> others = {"name",
                                        "input",
                                        "weight",
                                        "state",
                                        "file",
                                        "pack_codes",
                                        "dequantize",
                                        "quantized_linear",
                                        "grouped_linear",
                                        "grouped_outer",
                                        "sorted_positions",
                                        "sorted_places",
                                        "run_ends",
                                        "mask_tiles",
                                        "place",
                                        "attention_log_sum",
                                        "attention_query_gradient",
                                        "attention_key_gradient",
                                        "attention_value_gradient",
                                        "run_sums"};
  const std::regex row("SINTER_(OP|ELEMENTWISE)\\(([a-z_0-9]+), ([a-z_0-9]+)");
  size_t ops = 0;
  for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (others.contains(name)) continue;
    CAPTURE(name);
    const auto is_there = [&] { return header.find("op(\"" + name + "\"") != std::string::npos; };
    if (bless && !is_there() && (*at)[1] == "ELEMENTWISE")
      add_function(header, name, (*at)[3] == "2");
    CHECK(is_there());
    ++ops;
  }
  if (header != written) std::ofstream(SINTER_API_DIR "/sinter.h") << header;
  CHECK(ops > 50);
}
