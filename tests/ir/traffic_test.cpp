// Bytes of sets of ops whose reads overlap, adjoin, are strided, repeat and are gathered.
#include "ir/traffic.h"

#include <doctest/doctest.h>

#include "ir/grouping.h"
#include "ir/text.h"

namespace sinter::traffic_test {
namespace {

constexpr int64_t kRows = 5;

/// The bytes that all ops of the body read together; %x is f32[N, 16], 64 bytes a row.
double read_bytes(const std::string& body, const std::string& output = "%b") {
  const std::string text =
      "module @m {\n  symbol N in [1, 64]\n  symbol R in [1, 64]\n"
      "  state %cache : f32[R, 16]\n"
      "  entry @e(%x: f32[N, 16], %y: f32[16], %ids: i32[N]) -> (" +
      output + ") {\n" + body + "\n  }\n}\n";
  const auto module = parse_module(text, "test");
  REQUIRE_MESSAGE(module, (module ? "" : module.error().message()));
  const Graph& graph = module->entries[0].graph;
  const Traffic traffic(graph, module->symbols, {kRows, 8});
  std::vector<ValueId> ops;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (computes(graph.ops()[i])) ops.push_back({i});
  return traffic.read(ops);
}

constexpr double kRow = 16 * 4;

TEST_CASE("two halves of a value are the value") {
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 0, size = 8} : f32[N, 8]
    %r = slice %x {axis = 1, begin = 8, size = 8} : f32[N, 8]
    %a = exp %l : f32[N, 8]
    %b = log %r : f32[N, 8])",
                   "%a, %b") == kRows * kRow);
}

TEST_CASE("parts that overlap are read once") {
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 0, size = 10} : f32[N, 10]
    %r = slice %x {axis = 1, begin = 4, size = 10} : f32[N, 10]
    %b = mul %l, %r : f32[N, 10])") == kRows * 14 * 4);
}

TEST_CASE("parts that leave a gap") {
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 0, size = 3} : f32[N, 3]
    %r = slice %x {axis = 1, begin = 13, size = 3} : f32[N, 3]
    %b = mul %l, %r : f32[N, 3])") == kRows * 6 * 4);
}

TEST_CASE("every second element, and the others") {
  const std::string even = R"(%p = reshape %x : f32[N, 8, 2]
    %e = slice %p {axis = 2, begin = 0, size = 1} : f32[N, 8, 1]
    %a = exp %e : f32[N, 8, 1]
)";
  CHECK(read_bytes(even, "%a") == kRows * kRow / 2);
  CHECK(read_bytes(even + R"(%o = slice %p {axis = 2, begin = 1, size = 1} : f32[N, 8, 1]
    %b = mul %a, %o : f32[N, 8, 1])") == kRows * kRow);
}

TEST_CASE("a transposed half meets its own half") {
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 0, size = 8} : f32[N, 8]
    %t = transpose %x {axes = [1, 0]} : f32[16, N]
    %top = slice %t {axis = 0, begin = 4, size = 8} : f32[8, N]
    %a = exp %l : f32[N, 8]
    %b = log %top : f32[8, N])",
                   "%a, %b") == kRows * 12 * 4);
}

TEST_CASE("what a broadcast repeats is read once") {
  CHECK(read_bytes("%b = add %x, %y : f32[N, 16]") == kRows * kRow + kRow);
}

TEST_CASE("the value of another op of the set is not read") {
  CHECK(read_bytes("%a = exp %x : f32[N, 16]\n %b = mul %a, %x : f32[N, 16]") == kRows * kRow);
}

TEST_CASE("of a table the rows that are named") {
  CHECK(read_bytes("%b = embedding %x, %ids : f32[N, 16]") == kRows * kRow + kRows * 4);
}

TEST_CASE("of the matrices of experts those that tokens choose, at most all of them") {
  const auto read = [](int64_t experts) {
    const std::string of_w = fmt::format("{}, {}", experts, 8 / experts);
    return read_bytes(
        fmt::format("%l = slice %x {{axis = 1, begin = 0, size = 2}} : f32[N, 2]\n"
                    "%w = reshape %y : f32[{}, 2]\n"
                    "%e = reshape %ids : i32[N, 1]\n"
                    "%b = expert_linear %l, %w, %e : f32[N, 1, {}]",
                    of_w, 8 / experts));
  };
  const double others = kRows * 2 * 4 + kRows * 4;
  CHECK(read(8) == kRows * 2 * 4 + others);
  CHECK(read(1) == 16 * 4 + others);
}

TEST_CASE("an append reads its rows and their numbers, and nothing of the state") {
  CHECK(read_bytes("%c = kv_append %cache, %x, %ids : f32[R, 16]\n %b = exp %x : f32[N, 16]") ==
        kRows * kRow + kRows * 4);
}

TEST_CASE("a product reads the columns of its operand") {
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 8, size = 8} : f32[N, 8]
    %w = reshape %y : f32[2, 8]
    %b = linear %l, %w : f32[N, 2])") == kRows * 8 * 4 + 16 * 4);
}

TEST_CASE("both parts of a rotation") {
  // concat(-right, left): each part reads the other half.
  CHECK(read_bytes(R"(%l = slice %x {axis = 1, begin = 0, size = 8} : f32[N, 8]
    %r = slice %x {axis = 1, begin = 8, size = 8} : f32[N, 8]
    %n = neg %r : f32[N, 8]
    %b = concat %n, %l {axis = 1} : f32[N, 16])") == kRows * kRow);
}

}  // namespace
}  // namespace sinter::traffic_test
