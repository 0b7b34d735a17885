// The roles of operands. Planner and checker read them from one table, so that a wrong role may
// deceive both: the table is compared with a copy written by hand, and wrong roles are planted.
#include "ir/op_roles.h"

#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/fault.h"
#include "ir/verifier.h"
#include "plan/expect_refused.h"
#include "plan/program_builder.h"
#include "support/algorithms.h"

namespace sinter::op_roles_test {
namespace {

using test::expect_refused;
using test::overlapping_program;
using test::sample_program;

/// An algorithm and the roles of as many operands as it can have.
constexpr std::pair<std::string_view, std::string_view> kRoles[] = {
    // clang-format off
    {"input", ""},
    {"weight", ""},
    {"state", ""},
    {"constant", ""},
    {"iota", ""},
    {"literal", ""},
    {"file", ""},
    {"reshape", "value"},
    {"transpose", "value"},
    {"slice", "value"},
    {"broadcast", "value"},
    {"copy", "value"},
    {"concat", "64 value"},
    {"embedding", "table id(0)"},
    {"gather", "table id(0)"},
    {"cast", "value"},
    {"kv_append", "state update slot(0)"},
    {"store", "state update"},
    {"place", "update base"},
    {"neg", "value"},
    {"abs", "value"},
    {"floor", "value"},
    {"round", "value"},
    {"exp", "value"},
    {"exp_neg_abs", "value"},
    {"expm1", "value"},
    {"log", "value"},
    {"log1p", "value"},
    {"sqrt", "value"},
    {"rsqrt", "value"},
    {"sigmoid", "value"},
    {"tanh", "value"},
    {"erf", "value"},
    {"sin", "value"},
    {"cos", "value"},
    {"add", "value value"},
    {"sub", "value value"},
    {"mul", "value value"},
    {"div", "value value"},
    {"pow", "value value"},
    {"div_floor", "value value"},
    {"mod_floor", "value value"},
    {"maximum", "value value"},
    {"minimum", "value value"},
    {"less", "value value"},
    {"less_equal", "value value"},
    {"equal", "value value"},
    {"logical_and", "value value"},
    {"logical_or", "value value"},
    {"logical_not", "value"},
    {"where", "value value value"},
    {"reduce_sum", "row"},
    {"reduce_max", "row"},
    {"run_sums", "8 row"},
    {"silu", "value"},
    {"gelu", "value"},
    {"gelu_tanh", "value"},
    {"quick_gelu", "value"},
    {"relu", "value"},
    {"layer_norm", "row value value"},
    {"rms_norm", "row value"},
    {"softmax", "row"},
    {"attention_softmax", "row first() last() value"},
    {"rope", "row value value"},
    {"expert_sum", "value value"},
    {"linear", "row matrix bias"},
    {"einsum", "matrix matrix"},
    {"attention", "row cache cache first(1) last(1) value"},
    {"mask_tiles", "value"},
    {"attention_log_sum", "row cache cache first(1) last(1) value"},
    {"attention_query_gradient", "row cache cache first(1) last(1) row value value value"},
    {"attention_key_gradient", "row cache cache first(1) last(1) row value value value"},
    {"attention_value_gradient", "row cache cache first(1) last(1) row value value value"},
    {"sample", "row value value value value value"},
    {"cumulative_sum", "row"},
    {"scatter_add", "target() row"},
    {"pack_codes", "value value value value"},
    {"dequantize", "value"},
    {"quantized_linear", "row stream bias"},
    {"grouped_linear", "row matrix group(0)"},
    {"grouped_outer", "row row group(0)"},
    {"top_k", "row"},
    {"expert_linear", "row table id(1)"},
    {"sorted_positions", "row"},
    {"sorted_places", "row"},
    {"run_ends", "row"},
    {"custom", "8 value"},
    {"gemv", "row stream bias"},
    {"tiled_linear", "row matrix bias"},
    {"tiled_codes", "row stream bias"},
    {"decode_attention", "row cache cache first(1) last(1) value"},
    {"tiled_attention", "row cache cache first(1) last(1) value value"},
    {"float_attention", "row cache cache first(1) last(1) value"},
    // clang-format on
};

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

/// "row matrix bias"; of many operands that are alike "64 value".
std::string roles_text(const test::Algorithm& algorithm) {
  const size_t most = most_operands(algorithm);
  std::vector<std::string> roles;
  for (size_t i = 0; i < most; ++i)
    roles.push_back(role_text(operand_role(algorithm.kind, algorithm.order, i)));
  if (most > 7 && llvm::all_equal(roles)) return fmt::format("{} {}", most, roles[0]);
  return fmt::format("{}", fmt::join(roles, " "));
}

/// The differences between the table and the copy, one line for each algorithm.
std::vector<std::string> differences() {
  std::vector<std::string> found;
  size_t next = 0;
  for (const test::Algorithm& algorithm : test::all_algorithms()) {
    const std::string line = fmt::format("{}: {}", algorithm.name(), roles_text(algorithm));
    const auto expected = next < std::size(kRoles) ? kRoles[next] : kRoles[0];
    if (line != fmt::format("{}: {}", expected.first, expected.second)) found.push_back(line);
    ++next;
  }
  if (next != std::size(kRoles)) found.push_back(fmt::format("{} algorithms", next));
  return found;
}

/// While it lives, the table has a wrong role.
struct Planted {
  Planted(test::Algorithm algorithm, size_t operand, OperandRole role) {
    planted_role = PlantedRole{algorithm.kind, algorithm.order, operand, role};
  }
  ~Planted() { planted_role.reset(); }
};

constexpr test::Algorithm kDecodeAttention = {OpKind::attention, Order::decode_attention};

TEST_CASE("the table has the roles of the copy") {
  CHECK(differences() == std::vector<std::string>{});
}

TEST_CASE("the comparison finds every wrong role") {
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
        CHECK(differences().size() == 1);
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
