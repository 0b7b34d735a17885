// Which rows of a matrix have to stand together, for what reads their sums.
#include "ir/colocation.h"

#include <doctest/doctest.h>

#include <map>

#include "ir/grouping.h"
#include "ir/symbols.h"
#include "ir/text.h"

namespace sinter::colocation_test {
namespace {

const std::vector<Symbol> kSymbols = {host_symbol("N", 1, 8), host_symbol("R", 8, 64)};

/// "stride x units: first+width names | ...", or "reader of value" where no deal serves.
std::string deal_of(const Graph& graph, llvm::ArrayRef<std::string_view> names,
                    uint32_t row_axes = 1) {
  std::map<ValueId, OpFacts> facts;
  llvm::SmallVector<ValueId, 8> members;
  for (std::string_view name : names) {
    members.push_back(graph.find(name));
    facts.emplace(members.back(), op_facts(graph, members.back(), kSymbols));
  }
  const auto found = colocated_rows(
      graph, graph.find("p"), members, [&](ValueId id) -> const OpFacts& { return facts.at(id); },
      row_axes);
  if (const auto* stranger = std::get_if<NotColocated>(&found))
    return graph[stranger->reader].name + " of " + graph[stranger->root].name;
  const auto& rows = std::get<ColocatedRows>(found);
  std::string text = fmt::format("{} x {}:", rows.stride, rows.units);
  for (const ColocatedRows::Section& section : rows.sections) {
    text += fmt::format("{} {}+{}", &section == rows.sections.data() ? "" : " |", section.first,
                        section.width);
    for (ValueId member : section.members) text += " " + graph[member].name;
  }
  return text;
}

/// deal_of() for all ops that are computed after a product %p of 120 rows.
std::string deal(const std::string& parameters, const std::string& ops) {
  const auto graph = parse_graph(
      "graph(%x: f16[N, 64], %w: f16[120, 64]" + parameters +
          ") -> (%p) {\n  %p = linear %x, %w {order = gemv, splits = 1} : f16[N, 120]\n" + ops +
          "}\n",
      "test", kSymbols);
  REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().message()));
  llvm::SmallVector<std::string_view, 8> names;
  for (uint32_t i = graph->find("p").index + 1; i < graph->size(); ++i)
    if (computes(graph->ops()[i])) names.push_back(graph->ops()[i].name);
  return deal_of(*graph, names);
}

TEST_CASE("elements of the row itself, and of a part of it") {
  CHECK(deal("", "  %y = exp %p : f16[N, 120]\n") == "1 x 1: 0+120 y");
  CHECK(deal("",
             "  %s = slice %p {axis = 1, begin = 7, size = 30} : f16[N, 30]\n"
             "  %y = exp %s : f16[N, 30]\n") == "1 x 1: 7+30 y");
}

TEST_CASE("parts side by side") {
  const std::string parts =
      "  %a = slice %p {axis = 1, begin = 0, size = 40} : f16[N, 40]\n"
      "  %b = slice %p {axis = 1, begin = 40, size = 40} : f16[N, 40]\n"
      "  %c = slice %p {axis = 1, begin = 80, size = 40} : f16[N, 40]\n";
  CHECK(deal("", parts + "  %y = mul %a, %c : f16[N, 40]\n") == "40 x 3: 0+40 y");
  CHECK(deal("", parts + "  %s = silu %c : f16[N, 40]\n  %y = mul %s, %b : f16[N, 40]\n") ==
        "40 x 3: 40+40 s y");
  CHECK(deal("", parts + "  %y = exp %a : f16[N, 40]\n  %z = exp %b : f16[N, 40]\n") ==
        "1 x 1: 0+40 y | 40+40 z");
}

TEST_CASE("rotation pairs rows, beside those that only pass through") {
  const std::string tables = ", %c: f16[N, 5], %s: f16[N, 5]";
  const std::string heads = "  %h = reshape %p : f16[N, 4, 30]\n";
  CHECK(
      deal(tables,
           heads + "  %y = rope %h, %c, %s {rotary = 10, pairing = \"half\"} : f16[N, 4, 30]\n") ==
      "5 x 2: 0+120 y");
  CHECK(deal(tables, heads + "  %y = rope %h, %c, %s {rotary = 10, pairing = \"interleaved\"} : "
                             "f16[N, 4, 30]\n") == "1 x 2: 0+120 y");
  // Heads of 20 elements whose pairs are 4 apart: no period of 8 rows fits, one of 5 x 4 does.
  CHECK(deal(", %c: f16[N, 4], %s: f16[N, 4]",
             "  %h = reshape %p : f16[N, 6, 20]\n"
             "  %y = rope %h, %c, %s {rotary = 8, pairing = \"half\"} : f16[N, 6, 20]\n") ==
        "4 x 5: 0+120 y");
}

TEST_CASE("what pairs every row with the next one's partner has no classes") {
  const std::string shifted =
      "  %a = slice %p {axis = 1, begin = 0, size = 100} : f16[N, 100]\n"
      "  %b = slice %p {axis = 1, begin = 10, size = 100} : f16[N, 100]\n";
  CHECK(deal("", shifted + "  %y = sub %b, %a : f16[N, 100]\n") == "y of p");
  CHECK(deal("", "  %y = softmax %p : f16[N, 120]\n") == "y of p");
}

TEST_CASE("the rows of several matrices, for a sum over them") {
  const auto sum_of = [](int chosen, int rows = 120) {
    const auto graph = parse_graph(
        fmt::format("graph(%x: f16[N, 64], %w: f16[16, {1}, 64], %e: i32[N, {0}], %s: f16[N, {0}], "
                    "%r: f16[N, {1}]) -> (%p) {{\n"
                    "  %p = expert_linear %x, %w, %e : f16[N, {0}, {1}]\n"
                    "  %t = expert_sum %p, %s : f16[N, {1}]\n  %y = add %t, %r : f16[N, {1}]\n}}",
                    chosen, rows),
        "test", kSymbols);
    REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().message()));
    return std::pair(deal_of(*graph, {"t", "y"}), deal_of(*graph, {"t", "y"}, 2));
  };
  CHECK(sum_of(2) == std::pair<std::string, std::string>("t of p", "120 x 2: 0+120 t y"));
  CHECK(sum_of(8) == std::pair<std::string, std::string>("t of p", "120 x 8: 0+120 t y"));
  CHECK(sum_of(8, 8) == std::pair<std::string, std::string>("t of p", "8 x 8: 0+8 t y"));
  CHECK(sum_of(9) == std::pair<std::string, std::string>("t of p", "t of p"));  // more than 8 units
}

TEST_CASE("a value that reads no sum stands where its reader does, or first") {
  CHECK(deal(", %z: f16[N, 30]",
             "  %e = exp %z : f16[N, 30]\n"
             "  %s = slice %p {axis = 1, begin = 60, size = 30} : f16[N, 30]\n"
             "  %y = mul %e, %s : f16[N, 30]\n") == "1 x 1: 60+30 e y");
  CHECK(deal(", %z: f16[N, 30]", "  %e = exp %z : f16[N, 30]\n") == "1 x 1: 0+30 e");
}

TEST_CASE("sizes of any number take no longer") {
  const auto graph = parse_graph(
      "graph(%x: f16[N, 8], %w: f16[1099511627776, 8], %c: f16[N, 137438953472], %s: f16[N, "
      "137438953472]) -> (%p) {\n"
      "  %p = linear %x, %w {order = gemv, splits = 1} : f16[N, 1099511627776]\n"
      "  %a = slice %p {axis = 1, begin = 0, size = 549755813888} : f16[N, 549755813888]\n"
      "  %b = slice %p {axis = 1, begin = 549755813888, size = 549755813888} : f16[N, "
      "549755813888]\n"
      "  %y = mul %a, %b : f16[N, 549755813888]\n"
      "  %h = reshape %p : f16[N, 4, 274877906944]\n"
      "  %z = rope %h, %c, %s {rotary = 274877906944, pairing = \"half\"} : f16[N, 4, "
      "274877906944]\n}\n",
      "test", kSymbols);
  REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().message()));
  CHECK(deal_of(*graph, {"y"}) == "549755813888 x 2: 0+549755813888 y");
  CHECK(deal_of(*graph, {"z"}) == "z of p");
}

TEST_CASE("rows of a cache are written where the sums are") {
  CHECK(deal(", %k: f16[R, 40], %slot: i32[N]",
             "  %s = slice %p {axis = 1, begin = 80, size = 40} : f16[N, 40]\n"
             "  %y = kv_append %k, %s, %slot : f16[R, 40]\n") == "1 x 1: 80+40 y");
}

}  // namespace
}  // namespace sinter::colocation_test
