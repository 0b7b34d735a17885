// The roles of operands. Planner and checker read them from one table, so that a wrong role may
// deceive both: the table is compared with a page that a person reads when it changes, and wrong
// roles are planted.
#include "ir/op_roles.h"

#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/fault.h"
#include "ir/verifier.h"
#include "plan/expect_refused.h"
#include "plan/program_builder.h"
#include "support/algorithms.h"
#include "support/expected_text.h"

namespace sinter::op_roles_test {
namespace {

using test::expect_refused;
using test::overlapping_program;
using test::sample_program;

std::string role_text(OperandRole role) {
  constexpr std::string_view kNames[] = {"value", "row",    "matrix", "stream", "bias", "table",
                                         "state", "update", "base",   "cache",  "id",   "slot",
                                         "first", "last",   "target", "group"};
  const std::string name(kNames[role.kind]);
  if (role.kind < OperandRole::id) return name;
  if (role.rows_of == OperandRole::kResult) return name + "()";
  return role.is_address() ? fmt::format("{}({})", name, role.rows_of) : name + "()";
}

size_t most_operands(const test::Algorithm& algorithm) {
  return static_cast<size_t>(max_operands(algorithm.kind, algorithm.order));
}

/// " row matrix bias"; of many operands that are alike " 64 value".
std::string roles_text(const test::Algorithm& algorithm) {
  const size_t most = most_operands(algorithm);
  std::vector<std::string> roles;
  for (size_t i = 0; i < most; ++i)
    roles.push_back(" " + role_text(operand_role(algorithm.kind, algorithm.order, i)));
  if (most > 7 && llvm::all_equal(roles)) return fmt::format(" {}{}", most, roles[0]);
  return fmt::format("{}", fmt::join(roles, ""));
}

/// The roles of as many operands as each algorithm can have, a line each.
std::string table_text() {
  std::string text;
  for (const test::Algorithm& algorithm : test::all_algorithms())
    text += fmt::format("{}:{}\n", algorithm.name(), roles_text(algorithm));
  return text;
}

/// While it lives, the table has a wrong role.
struct Planted {
  Planted(test::Algorithm algorithm, size_t operand, OperandRole role) {
    planted_role = PlantedRole{algorithm.kind, algorithm.order, operand, role};
  }
  ~Planted() { planted_role.reset(); }
};

constexpr test::Algorithm kDecodeAttention = {OpKind::attention, Order::decode_attention};

TEST_CASE("the table has the roles of the page") {
  CHECK(test::compare_text_file(table_text(), SINTER_TESTS_DIR "/plan/op_roles.txt") == "");
}

TEST_CASE("the comparison finds every wrong role") {
  const std::string right = table_text();
  const std::vector<OperandRole> roles = [] {
    std::vector<OperandRole> all;
    for (int kind = OperandRole::value; kind <= OperandRole::last; ++kind)
      for (int rows_of : {OperandRole::kNoRows, 0, 1}) {
        if (kind < OperandRole::id && rows_of != OperandRole::kNoRows) continue;
        all.push_back({static_cast<OperandRole::Kind>(kind), rows_of});
      }
    all.push_back({OperandRole::target, OperandRole::kResult});
    all.push_back({OperandRole::group, 1});
    return all;
  }();
  for (const test::Algorithm& algorithm : test::all_algorithms()) {
    for (size_t operand = 0; operand < most_operands(algorithm); ++operand)
      for (OperandRole role : roles) {
        if (role == operand_role(algorithm.kind, algorithm.order, operand)) continue;
        const Planted wrong(algorithm, operand, role);
        CAPTURE(algorithm.name());
        CAPTURE(operand);
        CHECK(table_text() != right);
      }
  }
}

TEST_CASE("the checker refuses early reads of keys that are no cache") {
  for (size_t operand : {1, 2}) {
    const Planted wrong(kDecodeAttention, operand, OperandRole::value);
    expect_refused(overlapping_program(), {"kernel attend", "reads rows of",
                                           "before it waits, which is no attention's cache"});
  }
}

TEST_CASE("the checker refuses early reads of a cache whose rows no operand names") {
  for (size_t operand : {3, 4}) {
    const Planted wrong(kDecodeAttention, operand, OperandRole::value);
    expect_refused(overlapping_program(), {"kernel attend", "reads rows of %in1 before it waits",
                                           "but not the inputs that say which"});
  }
}

TEST_CASE("the checker refuses early reads where the rows of an append are not known") {
  const Planted wrong({OpKind::kv_append}, 2, OperandRole::value);
  expect_refused(overlapping_program(),
                 {"step 2 (%o)", "reads %k1 before it waits", "while step 1 may still write it"});
}

TEST_CASE("the checker refuses an append that writes no state") {
  const Planted wrong({OpKind::kv_append}, 0, OperandRole::value);
  expect_refused(sample_program(), {"kernel append", "outputs [0] are listed as appends, [] are"});
}

TEST_CASE("the checker refuses a state that an op writes without listing it") {
  const Planted wrong({OpKind::add}, 0, OperandRole::state);
  expect_refused(sample_program(), {"kernel add", "outputs [] are listed as appends, [0] are"});
}

TEST_CASE("the verifier refuses a computed matrix that is read as a stream") {
  Module module;
  module.name = "m";
  module.entries.push_back({"main", {}});
  Graph& graph = module.entries[0].graph;
  Builder b(graph, module.symbols);
  const ValueId x = b.leaf(OpKind::input, {DType::f32, {2, 8}}, "x");
  const ValueId w = b.leaf(OpKind::input, {DType::f32, {4, 8}}, "w");
  graph.outputs = {b.op(OpKind::linear, {x, b.neg(w)}, {}, "y")};
  CHECK(verify(module));
  const Planted wrong({OpKind::linear}, 1, OperandRole::stream);
  const Status status = verify(module);
  REQUIRE_FALSE(status);
  CHECK(status.error().message().find("V17: %y (linear) reads the matrix") != std::string::npos);
}

}  // namespace
}  // namespace sinter::op_roles_test
