// The executor runs buffers where the plan puts them: results equal the evaluator's on the whole
// graph, and errors of a plan show.
#include <doctest/doctest.h>

#include <cstring>

#include "ir/tensor_source.h"
#include "plan/checker.h"
#include "plan/program_builder.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/host/executable.h"
#include "runtime/random_inputs.h"

namespace sinter::host_executor_test {
namespace {

using test::ProgramBuilder;
using test::sample_program;

// The one tensor "w" of the sample's files.
class SampleSource : public TensorSource {
 public:
  SampleSource() : w_(*random_tensor(DType::f32, {64, 64}, 1, {0.1, 0, 0})) {}
  std::optional<TensorType> find(std::string_view name) const override {
    if (name != "w") return std::nullopt;
    return TensorType{DType::f32, {64, 64}};
  }
  Status read(std::string_view, std::span<std::byte> out) const override {
    std::memcpy(out.data(), w_.bytes.data(), out.size());
    return {};
  }
  const HostTensor& w() const { return w_; }

 private:
  HostTensor w_;
};

HostTensor ids(std::vector<int32_t> values) {
  HostTensor tensor = *make_tensor(DType::i32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

struct Sample {
  explicit Sample(Program program = sample_program())
      : model(*HostExecutable::load(std::make_shared<Program>(std::move(program)), &source)),
        session(*HostSession::create(model, symbols)) {}

  Result<RunResult> run(const CallOptions& options = {}) {
    return session.run("forward", symbols, {&x, &slots}, options);
  }

  SampleSource source;
  std::vector<int64_t> symbols = {5, 16};
  HostTensor x = *random_tensor(DType::f32, {5, 64}, 2);
  HostTensor slots = ids({3, 0, 9, 15, 4});
  HostExecutable model;
  HostSession session;
};

// The sample as one graph: y and the state's next version.
std::vector<HostTensor> expected(const Sample& sample, const HostTensor& state) {
  const Program& program = sample.model.program();
  Graph graph;
  Builder b(graph, program.symbols);
  const EntryPlan& entry = program.entries[0];
  const ValueId x = b.leaf(OpKind::input, entry.buffers[0].type, "x");
  const ValueId slot = b.leaf(OpKind::input, entry.buffers[1].type, "slot");
  const ValueId w = b.leaf(OpKind::input, program.weights[0].type, "w");
  const ValueId k0 = b.leaf(OpKind::input, program.states[0].type, "k0");
  const ValueId product = b.op(OpKind::einsum, {b.exp(b.neg(x)), w},
                               Attributes().set(AttrName::spec, std::string("nk,kd->nd")));
  const ValueId c = b.add(product, b.constant(0.5, DType::f32));
  const ValueId k1 = b.op(OpKind::kv_append, {k0, c, slot});
  graph.outputs = {b.add(c, b.abs(b.op(OpKind::embedding, {k1, slot}))), k1};
  auto result = evaluate(graph, program.symbols, sample.symbols,
                         {&sample.x, &sample.slots, &sample.source.w(), &state});
  if (!result) FAIL(result.error().message());
  return std::move(*result);
}

void check_equal(const HostTensor& a, const HostTensor& b) {
  const auto difference = compare_bits(a, b);
  if (!difference) FAIL(difference.error().message());
  if (*difference) FAIL_CHECK(to_string(**difference));
}

std::string error_of(const Result<RunResult>& result) {
  REQUIRE_FALSE(result);
  return result.error().message();
}
#define CHECK_ERROR(result, part) CHECK(error_of(result).find(part) != std::string::npos)

TEST_CASE("the plan computes what its graph computes") {
  Sample sample;
  const auto want = expected(sample, sample.session.states()[0]);
  SUBCASE("as it is") {
    const auto got = sample.run();
    if (!got) FAIL(got.error().message());
    check_equal(got->outputs[0], want[0]);
  }
  SUBCASE("with freed buffers poisoned") {
    const auto got = sample.run({true, {}});
    if (!got) FAIL(got.error().message());
    check_equal(got->outputs[0], want[0]);
  }
  check_equal(sample.session.states()[0], want[1]);
}

TEST_CASE("states last from call to call and belong to the session") {
  Sample sample;
  REQUIRE(sample.run());
  const HostTensor first = sample.session.states()[0];
  sample.slots = ids({1, 2, 5, 6, 7});
  const auto want = expected(sample, first);
  REQUIRE(sample.run());
  check_equal(sample.session.states()[0], want[1]);
  const HostSession other = *HostSession::create(sample.model, sample.symbols);
  check_equal(other.states()[0], *make_tensor(DType::f32, {16, 64}));
}

TEST_CASE("kept values are those of their step") {
  Sample sample;
  const auto want = expected(sample, sample.session.states()[0]);
  const auto got = sample.run({true, {"k1", "a", "x", "y", "k0"}});
  if (!got) FAIL(got.error().message());
  REQUIRE(got->kept.size() == 5);
  CHECK(got->kept[0].first == "k1");
  check_equal(got->kept[0].second, want[1]);
  for (int64_t i = 0; i < sample.x.volume(); ++i)  // %a = -x; its space is %c's by the end
    REQUIRE(got->kept[1].second.data<float>()[i] == -sample.x.data<float>()[i]);
  check_equal(got->kept[2].second, sample.x);
  check_equal(got->kept[3].second, want[0]);
  check_equal(got->kept[4].second, *make_tensor(DType::f32, {16, 64}));
  CHECK_ERROR(sample.run({false, {"nowhere"}}), "%nowhere is no value in memory");
}

TEST_CASE("errors of a plan show") {
  Program program = sample_program();
  const auto buffer = [&](std::string_view name) -> Buffer& {
    for (Buffer& b : program.entries[0].buffers)
      if (b.value == name) return b;
    FAIL("no such buffer");
    return program.entries[0].buffers[0];
  };
  const Sample reference;
  const auto want = expected(reference, reference.session.states()[0]);
  CallOptions options;
  SUBCASE("two live values in one space") {
    buffer("d").slot = buffer("c").slot;
    CHECK_FALSE(check(program));
  }
  SUBCASE("a life that ends too soon, with poison") {
    buffer("c").last_step = 3;
    options.poison_freed = true;
    CHECK_FALSE(check(program));
  }
  SUBCASE("a value that is read before it is written, with poison") {
    std::swap(program.entries[0].steps[0], program.entries[0].steps[1]);
    options.poison_freed = true;
    CHECK_FALSE(check(program));
  }
  Sample sample(program);
  const auto got = sample.run(options);
  if (!got) FAIL(got.error().message());
  CHECK(compare_bits(got->outputs[0], want[0])->has_value());
}

TEST_CASE("bad calls") {
  Sample sample;
  SUBCASE("no such entry") {
    CHECK_ERROR(sample.session.run("backward", sample.symbols, {&sample.x, &sample.slots}),
                "no entry backward");
  }
  SUBCASE("symbol out of range") {
    sample.symbols[0] = 65;
    CHECK_ERROR(sample.run(), "N is 65, the plan is for 1 to 64");
  }
  SUBCASE("number of symbols") {
    sample.symbols.pop_back();
    CHECK_ERROR(sample.run(), "1 values for 2 symbols");
  }
  SUBCASE("state rows of another session") {
    sample.symbols[1] = 32;
    CHECK_ERROR(sample.run(), "R is 32, the session's states were made with 16");
  }
  SUBCASE("number of inputs") {
    CHECK_ERROR(sample.session.run("forward", sample.symbols, {&sample.x}),
                "1 tensors for entry forward with 2 inputs");
  }
  SUBCASE("shape") {
    sample.x = *random_tensor(DType::f32, {4, 64}, 2);
    CHECK_ERROR(sample.run(), "input %x is f32[4, 64], expected f32[5, 64], that is f32[N, 64]");
  }
  SUBCASE("element type") {
    sample.x = *random_tensor(DType::f16, {5, 64}, 2);
    CHECK_ERROR(sample.run(), "input %x is f16[5, 64], expected f32[5, 64]");
  }
  SUBCASE("slot beyond the state") {
    sample.slots = ids({3, 0, 9, 16, 4});
    CHECK_ERROR(sample.run(), "%slot[3] is 16, outside the 0 .. 15 that it points into");
  }
  SUBCASE("negative slot") {
    sample.slots = ids({3, 0, 9, -1, 4});
    CHECK_ERROR(sample.run(), "%slot[3] is -1, outside the 0 .. 15 that it points into");
  }
}

TEST_CASE("an id outside its table names the input") {
  ProgramBuilder p;
  const uint32_t table = p.input("table", {DType::f32, {4, 8}});
  const uint32_t id = p.input("id", {DType::i32, {2}});
  const uint32_t row = p.arena("row", {DType::f32, {2, 8}}, 0);
  p.kernel("lookup", {table, id}, {row}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.op(OpKind::embedding, {in[0], in[1]})};
  });
  p.output(row);
  const HostExecutable model =
      *HostExecutable::load(std::make_shared<Program>(p.finish()), nullptr);
  HostSession session = *HostSession::create(model, {});
  const HostTensor rows = *random_tensor(DType::f32, {4, 8}, 1);
  const HostTensor good = ids({3, 0}), bad = ids({3, 4});
  CHECK(session.run("forward", {}, {&rows, &good}));
  CHECK_ERROR(session.run("forward", {}, {&rows, &bad}),
              "entry forward: %id[1] is 4, outside the 0 .. 3 that it points into");
}

TEST_CASE("weights") {
  const auto program = std::make_shared<Program>(sample_program());
  const Result<HostExecutable> without = HostExecutable::load(program, nullptr);
  REQUIRE_FALSE(without);
  CHECK(without.error().message().find("\"w\"") != std::string::npos);
  const Sample sample;
  check_equal(sample.model.weight(0), sample.source.w());
  CHECK(sample.model.weight(1).data<float>()[63] == 0.5f);
}

// An append whose result a kernel reads stays in its graph; the state is written all the same.
TEST_CASE("a kernel that appends and reads the new version") {
  ProgramBuilder p;
  const uint32_t cache = p.state("cache", {DType::f16, {4, 8}});
  const uint32_t x = p.input("x", {DType::f16, {2, 8}}), slot = p.input("slot", {DType::i32, {2}});
  const uint32_t k0 = p.state_buffer(cache, 0, "k0"), k1 = p.state_buffer(cache, 1, "k1");
  const uint32_t y = p.arena("y", {DType::f16, {2, 8}}, 0);
  p.kernel("fused", {k0, x, slot}, {k1, y}, [](Builder& g, std::vector<ValueId> in) {
    const ValueId next = g.op(OpKind::kv_append, {in[0], g.neg(in[1]), in[2]});
    return std::vector{next, g.op(OpKind::embedding, {next, in[2]})};
  });
  p.output(y);
  const Program program = p.finish();
  if (const Status safe = check(program); !safe) FAIL(safe.error().message());
  HostSession session =
      *HostSession::create(*HostExecutable::load(std::make_shared<Program>(program), nullptr), {});
  const HostTensor rows = *random_tensor(DType::f16, {2, 8}, 1), slots = ids({2, 1});
  const auto got = session.run("forward", {}, {&rows, &slots}, {true, {}});
  if (!got) FAIL(got.error().message());
  for (int64_t i = 0; i < 16; ++i)
    CHECK(got->outputs[0].data<uint16_t>()[i] == (rows.data<uint16_t>()[i] ^ 0x8000));
  CHECK(std::memcmp(session.states()[0].data<uint16_t>() + 16, got->outputs[0].bytes.data(), 16) ==
        0);
}

TEST_CASE("a copy has the bytes of what it copies") {
  const auto program = std::make_shared<Program>(test::copying_program());
  HostSession session = *HostSession::create(*HostExecutable::load(program, nullptr), {{3}});
  const HostTensor x = *random_tensor(DType::f32, {3, 64}, 1);
  for (const bool poison : {false, true}) {
    const auto got = session.run("forward", {3}, {&x}, {poison, {"b", "a"}});
    if (!got) FAIL(got.error().message());
    check_equal(got->kept[0].second, got->kept[1].second);
    for (int64_t i = 0; i < x.volume(); ++i) {
      REQUIRE(got->kept[0].second.data<float>()[i] == -x.data<float>()[i]);
      REQUIRE(got->outputs[0].data<float>()[i] == -2 * x.data<float>()[i]);
    }
  }
}

TEST_CASE("gemm over heads that stand inside the rows") {
  ProgramBuilder p;
  const Dim tokens = p.symbol("N", 0, 64);
  const uint32_t a = p.input("a", {DType::f16, {tokens, 4, 8}});
  const uint32_t b = p.input("b", {DType::f16, {4, 8, 8}});
  const uint32_t c = p.arena("c", {DType::f16, {tokens, 4, 8}}, 0);
  GemmStep& step = p.gemm(a, b, c, SymExpr(tokens), 8, 8);
  step.a.row_stride = step.c.row_stride = 32;
  step.b.row_stride = 1;  // b stands transposed
  step.b.column_stride = 8;
  step.loops.push_back({4, 8, 64, 8});
  p.output(c);
  const Program program = p.finish();
  if (const Status safe = check(program); !safe) FAIL(safe.error().message());
  HostSession session = *HostSession::create(
      *HostExecutable::load(std::make_shared<Program>(program), nullptr), {{1}});
  Graph graph;
  Builder builder(graph, program.symbols);
  const ValueId x = builder.leaf(OpKind::input, program.entries[0].buffers[0].type, "a");
  const ValueId w = builder.leaf(OpKind::input, program.entries[0].buffers[1].type, "b");
  graph.outputs = {builder.op(OpKind::einsum, {x, w},
                              Attributes().set(AttrName::spec, std::string("nhk,hdk->nhd")))};
  const HostTensor weight = *random_tensor(DType::f16, {4, 8, 8}, 7);
  for (int64_t n : {0, 1, 5}) {
    const HostTensor rows = *random_tensor(DType::f16, {n, 4, 8}, 8);
    const auto got = session.run("forward", {n}, {&rows, &weight}, {true, {}});
    if (!got) FAIL(got.error().message());
    const auto want = evaluate(graph, program.symbols, {n}, {&rows, &weight});
    if (!want) FAIL(want.error().message());
    check_equal(got->outputs[0], (*want)[0]);
  }
}

}  // namespace
}  // namespace sinter::host_executor_test
