// Steps of each kind: what they read, write and move, and what the checker says of copies.
#include <doctest/doctest.h>

#include "plan/expect_refused.h"
#include "plan/program_builder.h"
#include "plan/step.h"
#include "plan/step_traffic.h"

namespace sinter::steps_test {
namespace {

using test::copy_step;
using test::copying_program;
using test::expect_refused;
using Ids = llvm::SmallVector<uint32_t, 8>;

struct OfKernels {
  int operator()(const KernelStep&) const { return 0; }
};
struct OfGemms {
  int operator()(const GemmStep&) const { return 1; }
};
struct OfCopies {
  int operator()(const CopyStep&) const { return 2; }
};
struct OfCollectives {
  int operator()(const CollectiveStep&) const { return 4; }
};
struct OfAll {
  int operator()(const auto&) const { return 3; }
};
template <typename... F>
concept is_accepted_by_visit = requires(const Step& step, F... handlers) {
  visit(step, handlers...);
};

TEST_CASE("a visit that leaves a kind out, or takes any kind, does not compile") {
  static_assert(is_accepted_by_visit<OfKernels, OfGemms, OfCopies, OfCollectives>);
  static_assert(!is_accepted_by_visit<OfKernels, OfGemms, OfCopies>);
  static_assert(!is_accepted_by_visit<OfKernels, OfGemms, OfCollectives>);
  static_assert(!is_accepted_by_visit<OfKernels, OfCopies, OfCollectives>);
  static_assert(!is_accepted_by_visit<OfGemms, OfCopies, OfCollectives>);
  static_assert(!is_accepted_by_visit<OfKernels, OfGemms, OfCopies, OfAll>);
  static_assert(!is_accepted_by_visit<OfKernels, OfGemms, OfCopies, OfCollectives, OfAll>);
  static_assert(!is_accepted_by_visit<OfAll>);
  CHECK(visit(Step{CopyStep{}, {}}, OfGemms{}, OfCopies{}, OfKernels{}, OfCollectives{}) == 2);
}

TEST_CASE("facts of each kind of step") {
  Program program = test::sample_program();
  EntryPlan& entry = program.entries[0];
  const StepFacts append = step_facts(program, entry.steps[3]);
  CHECK(append.kind == "kernel");
  CHECK(append.kernel == &program.kernels[2]);
  CHECK(append.name() == "append");
  const KernelStep& run = test::kernel_step(entry, 3);
  CHECK(append.reads == Ids(run.inputs.begin(), run.inputs.end()));
  CHECK(append.writes == Ids(run.outputs.begin(), run.outputs.end()));

  GemmStep& gemm = test::gemm_step(entry, 2);
  gemm.residual = 1;
  const StepFacts product = step_facts(program, entry.steps[2]);
  CHECK(product.name() == "gemm");
  CHECK(product.kernel == nullptr);
  CHECK(product.reads == Ids{gemm.a.buffer, gemm.b.buffer, static_cast<uint32_t>(gemm.bias), 1});
  CHECK(product.writes == Ids{gemm.c.buffer});

  Program other = copying_program();
  const StepFacts copy = step_facts(other, other.entries[0].steps[1]);
  CHECK(copy.name() == "copy");
  CHECK(copy.kind == "copy");
  CHECK(copy.kernel == nullptr);
  CHECK(copy.reads == Ids{copy_step(other.entries[0], 1).from});
  CHECK(copy.writes == Ids{copy_step(other.entries[0], 1).to});
}

TEST_CASE("a copy reads and writes its value once") {
  const Program program = copying_program();
  const std::vector<int64_t> sizes(program.symbols.size(), 3);
  const Bytes bytes =
      StepTraffic(program, sizes).of(program.entries[0], program.entries[0].steps[1]);
  CHECK(bytes.read == 256 * 3);
  CHECK(bytes.written == 256 * 3);
}

TEST_CASE("copies: what is safe") {
  CHECK(check(copying_program()));
  SUBCASE("of an input") {
    Program p = copying_program();
    copy_step(p.entries[0], 1).from = p.entries[0].inputs[0];
    CHECK(check(p));
  }
  SUBCASE("to an output") {
    test::ProgramBuilder b;
    const uint32_t x = b.input("x", {DType::f16, {4}}), y = b.arena("y", {DType::f16, {4}}, 0);
    b.copy(x, y);
    b.output(y);
    CHECK(check(b.finish()));
  }
}

TEST_CASE("copies: what the checker refuses") {
  Program p = copying_program();
  EntryPlan& entry = p.entries[0];
  CopyStep& copy = copy_step(entry, 1);
  const uint32_t from = copy.from, to = copy.to;
  const std::string where = "entry forward, step 1 (%b)";
  SUBCASE("types that are not equal") {
    const TensorType type = entry.buffers[to].type;
    for (const TensorType& other :
         {TensorType{DType::i32, type.dims}, {DType::f32, {type.dims[0], 8, 8}}}) {
      entry.buffers[to].type = other;
      expect_refused(p, {where, "copies %a, f32[N, 64], to %b, " + to_string(other, p.symbols),
                         "not one type"});
    }
  }
  SUBCASE("a buffer that is not written yet") {
    std::swap(entry.steps[0], entry.steps[1]);
    expect_refused(p, {"step 0 (%b)", "%a is read before any step writes it"});
  }
  SUBCASE("buffers that are not there") {
    copy.from = 99;
    expect_refused(p, {where, "buffer 99 of 4"});
    copy = {from, 99};
    expect_refused(p, {where, "buffer 99 of 4"});
  }
  SUBCASE("to itself") {
    copy.to = from;
    expect_refused(p, {where, "writes %a, which it reads"});
  }
  SUBCASE("to what an earlier step has written") {
    entry.steps.push_back(entry.steps[1]);
    expect_refused(p, {"step 3 (%b)", "writes %b, which step 1 has written"});
  }
  SUBCASE("to an input") {
    copy.to = entry.inputs[0];
    expect_refused(p, {where, "writes %x, which is no buffer of the arena"});
  }
  SUBCASE("over what it reads") {
    entry.buffers[to].slot = entry.buffers[from].slot;
    expect_refused(
        p, {where, "%a, live from step 0 to 2, and %b, live from step 1 to 2, share slot 0"});
  }
  SUBCASE("over what a later step reads") {
    entry.buffers[entry.outputs[0]].slot = entry.buffers[to].slot;
    expect_refused(p, {"step 2 (%y)",
                       "%b, live from step 1 to 2, and %y, live from step 2 to 3, share slot 1"});
  }
  SUBCASE("what it reads is planned for too short a life") {
    test::kernel_step(entry, 2).inputs[1] = to;
    entry.buffers[from].last_step = 0;
    expect_refused(p, {"%a is planned for steps 0 to 0 but used from 0 to 1"});
  }
  SUBCASE("of a state in a version that is gone, or to one") {
    Program states = test::sample_program();
    EntryPlan& forward = states.entries[0];
    const KernelStep append = test::kernel_step(forward, 3);
    const uint32_t before = append.inputs[0], after = append.outputs[0];
    forward.buffers.push_back(forward.buffers[before]);
    Buffer& taken = forward.buffers.back();
    taken.value = "taken";
    taken.place = Buffer::Place::arena;
    taken.slot = 3;
    const auto id = static_cast<uint32_t>(forward.buffers.size() - 1);
    forward.steps.insert(forward.steps.begin() + 4, Step{CopyStep{before, id}, {"taken"}});
    expect_refused(states, {"step 4 (%taken)", "%k0 is read in version 0 of state cache"});
    copy_step(forward, 4) = {after, before};
    expect_refused(states, {"step 4 (%taken)", "writes %k0, which is no buffer of the arena"});
  }
}

TEST_CASE(
    "a collective reads its operand, writes its result, and goes through the exchange buffer") {
  Program p = test::reducing_program();
  EntryPlan& entry = p.entries[0];
  REQUIRE(check(p));
  const CollectiveStep& run = test::collective_step(entry, 1);
  const StepFacts facts = step_facts(p, entry.steps[1]);
  CHECK(facts.name() == "all_reduce");
  CHECK((facts.reads == Ids{run.from} && facts.writes == Ids{run.to}));
  const Bytes bytes = StepTraffic(p, {3}).of(entry, entry.steps[1]);
  CHECK((bytes.read == 2 * 3 * 64 * 4 && bytes.written == bytes.read));
}

TEST_CASE("collectives: what the checker refuses") {
  Program p = test::reducing_program();
  EntryPlan& entry = p.entries[0];
  CollectiveStep& run = test::collective_step(entry, 1);
  const std::string where = "entry forward, step 1 (%b)";
  SUBCASE("an exchange buffer in the arena") {
    Buffer& exchange = entry.buffers[run.exchange];
    exchange.place = Buffer::Place::arena;
    exchange.slot = 3;
    exchange.first_step = exchange.last_step = 1;
    expect_refused(p, {where, "exchanges values in %b, which other ranks read at any time"});
  }
  SUBCASE("an exchange buffer of two collectives") {
    entry.steps.push_back(entry.steps[1]);
    expect_refused(p, {"step 3 (%b)", "exchanges values in %b, as another collective does"});
  }
  SUBCASE("an exchange buffer that another step reads or writes") {
    test::kernel_step(entry, 2).inputs[0] = run.exchange;
    expect_refused(p, {"step 2 (%y)", "%b is read, which other ranks share"});
    test::kernel_step(entry, 2).inputs[0] = run.to;
    test::kernel_step(entry, 2).outputs[0] = run.exchange;
    expect_refused(p, {"step 2 (%y)", "writes %b, which is no buffer of the arena"});
  }
  SUBCASE("unequal sizes") {
    for (const uint32_t buffer : {run.exchange, run.to}) {
      Program other = p;
      Buffer& unequal = other.entries[0].buffers[buffer];
      unequal.type.dims[1] = 32;
      unequal.size_bytes = storage_bytes(unequal.type);
      expect_refused(other, {where, "adds %a, f32[N, 64], by way of %b, f32[N, 32]: not one type"});
    }
  }
  SUBCASE("a group without a name, buffers that are not there") {
    run.group.clear();
    expect_refused(p, {where, "a collective of a group without a name"});
    run.exchange = 99;
    expect_refused(p, {where, "buffer 99 of 5"});
  }
  SUBCASE("some sizes skip it") {
    entry.range = SymbolRange{SymbolId{0}, 1, 8};
    EntryPlan rest = entry;
    rest.range = SymbolRange{SymbolId{0}, 9, 64};
    rest.steps[1].run = CopyStep{run.from, run.to};
    p.entries.push_back(rest);
    expect_refused(
        p, {"entry forward", "has a variant with the collectives", "all_reduce f32[N, 64] of tp"});
  }
  SUBCASE("inside of a kernel") {
    Kernel& kernel = p.kernels[0];
    Op& op = kernel.group[kernel.group.outputs[0]];
    op.kind = OpKind::all_reduce;
    op.attrs.set(AttrName::group, std::string("tp"));
    expect_refused(p, {"of kind all_reduce is no input of the kernel"});
  }
}

/// overlapping_program() with a copy of %a after step `after`, which the attention reads early.
Program early_read_of_copy(size_t after) {
  Program p = test::overlapping_program();
  EntryPlan& entry = p.entries[0];
  const uint32_t a = test::kernel_step(entry, 0).outputs[0];
  entry.buffers.push_back(entry.buffers[a]);
  const auto copied = static_cast<uint32_t>(entry.buffers.size() - 1);
  entry.steps.insert(entry.steps.begin() + static_cast<std::ptrdiff_t>(after) + 1,
                     Step{CopyStep{a, copied}, {"copied"}});
  test::kernel_step(entry, 3).inputs[0] = copied;
  for (Buffer& buffer : entry.buffers)
    if (buffer.place == Buffer::Place::arena) {
      buffer.first_step += buffer.first_step > after;
      ++buffer.last_step;
    }
  Buffer& buffer = entry.buffers.back();
  buffer.value = "copied";
  buffer.slot = static_cast<uint32_t>(copied);
  buffer.first_step = static_cast<uint32_t>(after + 1);
  buffer.last_step = 3;
  return p;
}

TEST_CASE("what a copy writes is read early only after a kernel that triggers after its wait") {
  const Status held =
      check(early_read_of_copy(0));  // after %a, ahead of the append, which triggers after its wait
  if (!held) FAIL(held.error().message());
  expect_refused(early_read_of_copy(1),
                 {"step 3 (%o)", "reads %copied before it waits, while step 2 may still write it"});
}

}  // namespace
}  // namespace sinter::steps_test
