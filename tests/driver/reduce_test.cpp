// reduce: what it finds is as small as the failure allows, valid, and the same in every run.
#include "driver/reduce/reduce.h"

#include <doctest/doctest.h>

#include <set>

#include "differential/generate.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter::reduce_test {
namespace {

bool has_op(const Module& module, OpKind kind) {
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (op.kind == kind) return true;
  return false;
}

/// Some op of the one kind reads, through other ops or not, one of the other kind.
bool reads(const Module& module, OpKind reader, OpKind read) {
  for (const Entry& entry : module.entries) {
    std::vector<bool> depends(entry.graph.size(), false);
    for (uint32_t i = 0; i < entry.graph.size(); ++i) {
      const Op& op = entry.graph.ops()[i];
      bool after = false;
      for (const ValueId operand : op.operands) after = after || depends[operand.index];
      if (after && op.kind == reader) return true;
      depends[i] = after || op.kind == read;
    }
  }
  return false;
}

Module parsed(std::string_view text) {
  auto module = parse_module(text, "m.sir");
  REQUIRE_MESSAGE(module.has_value(), module.error().message());
  return std::move(*module);
}

std::string reduced(const Module& module, const std::function<bool(const Module&)>& fails) {
  const auto smallest = reduce({module, {}}, [&](const Reducible& candidate) {
    REQUIRE(verify(candidate.module).has_value());
    return fails(candidate.module);
  });
  REQUIRE(smallest.has_value());
  CHECK(fails(smallest->module));
  return print_module(smallest->module);
}

constexpr std::string_view kModule = R"(module @m {
  symbol N in [1, 64]
  symbol M in [1, 32] at_most N
  weight %w : bf16[128, 128] = file {tensor = "w"}
  state %cache : bf16[N, 128]
  entry @first(%x: bf16[N, 128], %slot: i32[M], %row: bf16[M, 128]) -> (%b, %c, %e) {
    %a = exp %x : bf16[N, 128]
    %b = linear %a, %w : bf16[N, 128]
    %c = tanh %b : bf16[N, 128]
    %d = kv_append %cache, %row, %slot : bf16[N, 128]
    %e = softmax %d : bf16[N, 128]
  }
  entry @second(%x: bf16[N, 128]) -> (%y) {
    %y = exp %x : bf16[N, 128]
  }
}
)";

}  // namespace

TEST_CASE("entries, ops, weights, states, symbols and types that the failure does not need go") {
  const Module module = parsed(kModule);
  CHECK(reduced(module, [](const Module& m) { return has_op(m, OpKind::tanh); }) ==
        R"(module @m {
  entry @first() -> (%c) {
    %x = constant {value = 0x0p+0} : f32[1, 1]
    %c = tanh %x : f32[1, 1]
  }
}
)");
  CHECK(reduced(module, [](const Module& m) { return reads(m, OpKind::tanh, OpKind::exp); }) ==
        R"(module @m {
  entry @first() -> (%c) {
    %x = constant {value = 0x0p+0} : f32[1, 1]
    %a = exp %x : f32[1, 1]
    %c = tanh %a : f32[1, 1]
  }
}
)");
}

TEST_CASE("what the failure needs stays") {
  const Module module = parsed(kModule);
  const std::string text = reduced(module, [](const Module& m) {
    return has_op(m, OpKind::kv_append) && m.entries.size() == 2 &&
           m.states[0].type.dtype == DType::bf16;
  });
  CHECK(text.find("@second") != text.npos);
  CHECK(text.find("state %cache : bf16[1, 1]") != text.npos);
  CHECK(text.find("tanh") == text.npos);
}

TEST_CASE("two runs ask the same questions; a limit ends the search with the best so far") {
  const Module module = parsed(kModule);
  std::vector<std::string> asked[2];
  for (auto& questions : asked)
    REQUIRE(reduce({module, {}}, [&](const Reducible& candidate) {
              questions.push_back(print_module(candidate.module));
              return has_op(candidate.module, OpKind::tanh);
            }).has_value());
  CHECK(asked[0] == asked[1]);
  CHECK(std::set<std::string>(asked[0].begin(), asked[0].end()).size() == asked[0].size());

  ReduceOptions few;
  few.tries = 3;
  int64_t questions = 0;
  const auto limited = reduce(
      {module, {}},
      [&](const Reducible& candidate) {
        ++questions;
        return has_op(candidate.module, OpKind::tanh);
      },
      few);
  REQUIRE(limited.has_value());
  CHECK(questions == 3);
  CHECK(has_op(limited->module, OpKind::tanh));
}

TEST_CASE("random modules: an op that reads another is all that remains") {
  int found = 0;
  for (uint64_t seed = 0; found < 20 && seed < 2000; ++seed) {
    const Case test = generate(seed);
    if (size_of(test.module).ops < 30 || !reads(test.module, OpKind::mul, OpKind::add)) continue;
    ++found;
    const auto fails = [](const Reducible& candidate) {
      return reads(candidate.module, OpKind::mul, OpKind::add);
    };
    const auto smallest = reduce({test.module, test.symbol_values}, fails);
    REQUIRE(smallest.has_value());
    CHECK(fails(*smallest));
    CHECK(verify(smallest->module).has_value());
    CHECK_MESSAGE(size_of(smallest->module).ops <= 8, print_module(smallest->module));
  }
  CHECK(found == 20);
}

}  // namespace sinter::reduce_test
