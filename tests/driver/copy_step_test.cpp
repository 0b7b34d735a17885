// A copy among the steps of a plan: what a device does, without one, and what the tools call it.
#include <doctest/doctest.h>

#include "driver/compile/plan_summary.h"
#include "driver/explain/ledger.h"
#include "driver/host_kernels.h"
#include "driver/profile/costs.h"
#include "plan/program_builder.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter::copy_step_test {
namespace {

constexpr int64_t kTokens = 5;
constexpr size_t kBytes = kTokens * 64 * sizeof(float);

const FakeDriver& driver() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  return fake;
}

/// y = b + a = -2x, where b is a copy of a = -x.
std::shared_ptr<const Program> program() {
  static const auto made = std::make_shared<const Program>(test::copying_program());
  return made;
}

std::unique_ptr<Session> on_gpu() {
  driver();
  return value(value(load_on_fake(program(), nullptr))->new_session({kTokens}));
}

HostTensor tokens() { return value(random_tensor(DType::f32, {kTokens, 64}, 1)); }

void check_factor(const HostTensor& y, const HostTensor& x, float factor) {
  for (int64_t i = 0; i < x.volume(); ++i)
    REQUIRE(y.data<float>()[i] == factor * x.data<float>()[i]);
}

TEST_CASE("a copy runs between the kernels, of the bytes of its value") {
  const auto session = on_gpu();
  const HostTensor x = tokens();
  for (const CallOptions& options :
       {CallOptions{}, CallOptions{.poison_freed = true, .keep = {"b"}, .check_kernels = true}}) {
    driver().take_launches();
    driver().take_copies();
    const RunResult got = value(session->run("forward", {kTokens}, {&x}, options));
    check_factor(got.outputs[0], x, -2);
    for (const auto& [name, tensor] : got.kept) check_factor(tensor, x, -1);
    const std::vector<FakeCopy> copies = driver().take_copies();
    REQUIRE(copies.size() == 1);
    CHECK(copies[0].bytes == kBytes);
    CHECK(copies[0].launches == 1);
    CHECK(driver().take_launches().size() == 2);
  }
}

TEST_CASE("a copy is recorded in a graph and replayed with it") {
  const auto made = on_gpu();
  const auto& session = *made->on_cuda();
  const CudaDevicePtr device = session.executable().cuda_device();
  const CudaMemory in = value(CudaMemory::allocate(device, kBytes, "x"));
  const CudaMemory out = value(CudaMemory::allocate(device, kBytes, "y"));
  const CudaMemory arena = value(
      CudaMemory::allocate(device, value(session.arena_bytes("forward", {kTokens})), "the arena"));
  const CudaCall call =
      value(session.place("forward", {kTokens}, {in.address()}, arena.address(), {out.address()}));
  REQUIRE(session.prepare(call));
  driver().take_copies();
  driver().take_launches();
  const CudaGraph graph = value(
      CudaGraph::record(session.stream(), [&] { return session.enqueue(call, session.stream()); }));
  CHECK(driver().take_copies().empty());
  for (int64_t seed : {1, 2}) {
    const HostTensor x = value(random_tensor(DType::f32, {kTokens, 64}, seed));
    HostTensor y = x;
    REQUIRE(session.stream().copy_to_device(in.address(), x.bytes));
    REQUIRE(graph.launch(session.stream()));
    REQUIRE(session.stream().copy_to_host(y.bytes, out.address()));
    REQUIRE(session.stream().synchronize("a test"));
    check_factor(y, x, -2);
  }
  const std::vector<FakeCopy> copies = driver().take_copies();
  REQUIRE(copies.size() == 2);
  CHECK(copies[0].from == arena.address());
  CHECK(copies[0].to == arena.address() + kBytes);
  CHECK(copies[0].launches == 1);
  CHECK(copies[1].launches == 3);
}

TEST_CASE("a copy straight to an output writes no more than the value") {
  test::ProgramBuilder b;
  const uint32_t x = b.input("x", {DType::f16, {7}}), y = b.arena("y", {DType::f16, {7}}, 0);
  b.entry().buffers[y].size_bytes = 256;  // an arena may give a value more room
  b.copy(x, y);
  b.output(y);
  driver();
  const auto model = value(load_on_fake(std::make_shared<const Program>(b.finish()), nullptr));
  const auto session = value(model->new_session({}));
  const HostTensor tensor = value(random_tensor(DType::f16, {7}, 3));
  driver().take_copies();
  CHECK(value(session->run("forward", {}, {&tensor})).outputs[0].bytes == tensor.bytes);
  CHECK(driver().take_copies().at(0).bytes == 14);
}

TEST_CASE("a copy that fails says which step it was") {
  const auto session = on_gpu();
  const HostTensor x = tokens();
  driver().fail("cuMemcpyDtoDAsync_v2", 0, 1);
  const auto failed = session->run("forward", {kTokens}, {&x});
  driver().fail("", 0, 0);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message() ==
        "entry forward, step 1 (%b): device 0 (Fake GPU 0): cuMemcpyDtoDAsync: FAKE_ERROR (1): "
        "made up");
}

TEST_CASE("profile and bench call it a copy and count its bytes") {
  const EntryPlan& entry = program()->entries[0];
  CHECK(step_title(*program(), entry, entry.steps[1], {kTokens}) == "copy 320 f32");
  const StepCost cost = StepCosts(*program(), {kTokens}, {}).of(entry, entry.steps[1]);
  CHECK(cost.read_bytes == kBytes);
  CHECK(cost.written_bytes == kBytes);
  CHECK(cost.flops == 0);
  const PlanCosts costs = plan_costs(*program(), entry, {kTokens});
  CHECK(costs.launches == 3);
  CHECK(costs.kernels == 2);
  CHECK(costs.gemms == 0);
  CHECK(costs.copies == 1);
}

TEST_CASE("the summary of a plan has a column of copies where there are some") {
  Compiled copying;
  copying.program = program();
  copying.sizes = {kTokens};
  const std::string with = summary_table(copying, copying);
  CHECK(with.find("of them GEMM  copy  bytes moved") != std::string::npos);
  Compiled plain;
  plain.program = std::make_shared<const Program>(test::sample_program());
  plain.sizes = usual_sizes(plain.program->symbols);
  const std::string without = summary_table(plain, plain);
  CHECK(without.find("of them GEMM  bytes moved") != std::string::npos);
}

TEST_CASE("the ledger calls it a copy") {
  Compiled compiled;
  compiled.program = program();
  compiled.sizes = {kTokens};
  compiled.module.entries.resize(1);
  compiled.fusions.resize(1);
  const std::vector<EntryLedger> entries = ledger(compiled);
  REQUIRE(entries.at(0).steps.size() == 3);
  CHECK(entries[0].steps[1].name == "copy");
  CHECK(entries[0].steps[1].kind == "copy");
  CHECK(ledger_text(entries[0], false)
            .starts_with("forward, N=5: 2 kernel launches, 0 GEMM calls, 1 copy; 0 fusions"));
  CHECK(ledger_json(compiled).find(
            R"("name":"copy","kind":"copy","class":"copies","values":["b"])") != std::string::npos);
}

}  // namespace
}  // namespace sinter::copy_step_test
