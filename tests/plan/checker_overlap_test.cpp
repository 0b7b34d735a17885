// Reads of kernels before their wait: every violation, planted once in a program that is otherwise
// right.
#include <doctest/doctest.h>

#include "plan/expect_refused.h"
#include "plan/program_builder.h"

namespace sinter::checker_overlap_test {
namespace {

using test::expect_refused;
using test::overlapping_program;
using test::sample_program;

// Changes one thing about the program; the message must contain all of `parts`.
void expect_violation(const std::function<void(Program&)>& plant,
                      const std::vector<std::string>& parts) {
  Program program = overlapping_program();
  plant(program);
  expect_refused(program, parts);
}

Overlap& neg(Program& p) { return p.kernels[0].overlap; }
Overlap& append(Program& p) { return p.kernels[1].overlap; }
Overlap& attend(Program& p) { return p.kernels[2].overlap; }
Overlap& add(Program& p) { return p.kernels[3].overlap; }
KernelStep& step(Program& p, size_t i) { return test::kernel_step(p.entries[0], i); }

void expect_safe(const Program& program) {
  const Status status = check(program);
  if (!status) FAIL(status.error().message());
}

TEST_CASE("attention is launched in clusters of its splits, or without") {
  const auto with = [](int64_t cluster) {
    return [cluster](Program& p) {
      p.kernels[2].minimum_arch = 90;
      p.kernels[2].launch.cluster = cluster;
    };
  };
  Program program = overlapping_program();
  const auto splits =
      program.kernels[2].group[program.kernels[2].group.outputs[0]].attrs.get<int64_t>(
          AttrName::splits);
  REQUIRE(splits < kMaxCluster);
  for (const int64_t cluster : {int64_t{1}, splits}) {
    with(cluster)(program);
    expect_safe(program);
  }
  expect_violation(with(splits + 1),
                   {fmt::format("clusters of {} for attention in {} splits", splits + 1, splits)});
}

TEST_CASE("what is safe") {
  expect_safe(overlapping_program());
  expect_safe(overlapping_program(4, 4));
  SUBCASE("a trigger after a wait further ahead, for what was written before it") {
    Program p = overlapping_program();
    append(p).triggers_after_wait = false;
    neg(p).triggers_after_wait = true;
    attend(p).early_inputs = {3, 4};
    add(p).early_inputs = {};
    expect_safe(p);
  }
  SUBCASE("keys that are no state, complete as inputs are") {
    Program p = overlapping_program();
    EntryPlan& entry = p.entries[0];
    Buffer copy = entry.buffers[step(p, 2).inputs[1]];
    copy.value = "copy";
    copy.place = Buffer::Place::input;
    copy.index = static_cast<uint32_t>(entry.inputs.size());
    step(p, 2).inputs[1] = static_cast<uint32_t>(entry.buffers.size());
    entry.inputs.push_back(step(p, 2).inputs[1]);
    entry.buffers.push_back(std::move(copy));
    expect_safe(p);
  }
  SUBCASE("nothing triggers after its wait for what no kernel reads early") {
    Program p = overlapping_program();
    append(p).triggers_after_wait = false;
    attend(p) = add(p) = {true, false, {}, {}};
    expect_safe(p);
  }
}

TEST_CASE("no trigger after a wait between writer and reader") {
  SUBCASE("none at all") {
    expect_violation([](Program& p) { append(p).triggers_after_wait = false; },
                     {"entry forward, step 2 (%o)", "reads %a before it waits",
                      "while step 0 may still write it"});
  }
  SUBCASE("the writer itself") {
    expect_violation(
        [](Program& p) {
          append(p).triggers_after_wait = false;
          neg(p).triggers_after_wait = true;
        },
        {"step 2 (%o)", "reads %a before it waits, while step 0 may still write it"});
  }
  SUBCASE("the reader itself") {
    expect_violation(
        [](Program& p) {
          append(p).triggers_after_wait = false;
          attend(p).triggers_after_wait = true;
        },
        {"step 2 (%o)", "reads %a before it waits, while step 0 may still write it"});
  }
  SUBCASE("one before the writer") {
    expect_violation([](Program& p) { add(p).early_inputs = {0}; },
                     {"step 3 (%y)", "reads %o before it waits, while step 2 may still write it"});
  }
  SUBCASE("an input of the entry") {
    expect_violation(
        [](Program& p) {
          append(p).triggers_after_wait = false;
          attend(p).early_inputs = {4, 3};
        },
        {"step 2 (%o)", "reads %slots before it waits, while an earlier call may still write it"});
  }
  SUBCASE("the first kernel") {
    expect_violation(
        [](Program& p) {
          neg(p) = {true, true, {0}, {}};
        },
        {"step 0 (%a)", "reads %x before it waits, while an earlier call"});
  }
  SUBCASE("a kernel that may have nothing to do") {
    expect_violation([](Program& p) { p.symbols[0].low = 0; },
                     {"reads %a before it waits, while step 0"});
    expect_violation([](Program& p) { p.kernels[1].launch.items_per_row = 0; },
                     {"reads %a before it waits, while step 0"});
    expect_violation(
        [](Program& p) {
          p.symbols[1].low = 0;
          p.kernels[1].launch.symbolic_items = SymExpr(Dim(SymbolId{1}));
        },
        {"reads %a before it waits, while step 0"});
  }
  SUBCASE("a product of the library") {
    Program p = sample_program();
    p.kernels[1].overlap = {true, true, {}, {}};  // exp, two steps ahead of append
    p.kernels[2].overlap = {true, false, {2}, {}};
    expect_safe(p);
    p.kernels[2].overlap.early_inputs = {1};
    expect_refused(p, {"step 3 (%k1)", "reads %c before it waits, while step 2 may still"});
  }
}

TEST_CASE("caches") {
  SUBCASE("rows that other slots name") {
    expect_violation([](Program& p) { step(p, 1).inputs[3] = step(p, 2).inputs[3]; },
                     {"step 2 (%o)", "reads %k1 before it waits, while step 1 may still write it"});
  }
  SUBCASE("rows of which the attention knows a part") {
    expect_refused(overlapping_program(4, 8),
                   {"step 2 (%o)", "reads %k1 before it waits, while step 1 may still write it"});
  }
  SUBCASE("slots that the append computes") {
    expect_violation(
        [](Program& p) {
          Graph& group = p.kernels[1].group;
          Graph moved;
          Builder g(moved, p.symbols);
          std::vector<ValueId> in;
          for (ValueId id : group.inputs)
            in.push_back(g.leaf(OpKind::input, group[id].type, group[id].name));
          const ValueId slots = g.add(in[3], in[3]);
          for (ValueId cache : {in[0], in[1]})
            moved.outputs.push_back(g.op(OpKind::kv_append, {cache, in[2], slots}));
          group = std::move(moved);
        },
        {"step 2 (%o)", "reads %k1 before it waits, while step 1 may still write it"});
  }
  SUBCASE("all rows") {
    expect_violation(
        [](Program& p) {
          attend(p) = {true, false, {0, 1, 3, 4}, {2}};
        },
        {"reads %k1 before it waits, while step 1 may still write it"});
  }
  SUBCASE("no append in this call") {
    expect_violation(
        [](Program& p) {
          append(p).triggers_after_wait = false;
          p.entries[0].steps.erase(p.entries[0].steps.begin() + 1);
          step(p, 1).inputs[1] -= 1;
          step(p, 1).inputs[2] -= 1;
          attend(p).early_inputs = {};
          attend(p).early_caches = {};
          neg(p) = {true, false, {}, {}};
          add(p).early_inputs = {};
          for (Buffer& buffer : p.entries[0].buffers) buffer.version = 0;
          for (Buffer& buffer : p.entries[0].buffers)
            if (buffer.place == Buffer::Place::arena && --buffer.last_step > 0)
              buffer.first_step -= buffer.first_step > 0;
          expect_safe(p);
          attend(p).early_inputs = {3, 4};
          attend(p).early_caches = {1, 2};
          neg(p).triggers_after_wait = true;
          expect_safe(p);
          neg(p).triggers_after_wait = false;
        },
        {"step 1 (%o)", "while an earlier call may still write it"});
  }
  SUBCASE("read by no attention") {
    expect_violation([](Program& p) { add(p).early_caches = {0}; },
                     {"kernel add", "reads rows of %in0 before it waits", "no attention's cache"});
    expect_violation(
        [](Program& p) {
          attend(p) = {true, false, {3, 4}, {0}};
        },
        {"kernel attend", "reads rows of %in0", "no attention's cache"});
  }
  SUBCASE("rows that the attention counts otherwise") {
    expect_refused(overlapping_program(4, 4, 8),
                   {"step 2 (%o)", "reads %k1 before it waits, while step 1 may still write it"});
  }
  SUBCASE("rows that are not known yet") {
    for (uint32_t known : {3, 4})
      expect_violation(
          [&](Program& p) { attend(p).early_inputs = {known}; },
          {"kernel attend", "reads rows of %in1 before it waits", "not the inputs that say which"});
  }
}

TEST_CASE("what a kernel says of itself") {
  SUBCASE("a trigger after a wait without a wait") {
    expect_violation(
        [](Program& p) {
          neg(p) = {false, true, {}, {}};
        },
        {"kernel neg", "triggers the next kernel after its wait", "does not wait"});
  }
  SUBCASE("early reads without a wait") {
    expect_violation([](Program& p) { add(p).waits = false; },
                     {"kernel add", "before it waits, but does not wait"});
    expect_violation(
        [](Program& p) {
          attend(p).waits = false;
          attend(p).early_inputs = {};
        },
        {"kernel attend", "before it waits, but does not wait"});
  }
  SUBCASE("inputs that are none") {
    expect_violation(
        [](Program& p) {
          add(p).early_inputs = {1, 2};
        },
        {"kernel add", "reads input 2 of 2 before it waits"});
    expect_violation(
        [](Program& p) {
          attend(p).early_caches = {1, UINT32_MAX};
        },
        {"kernel attend", "reads input 4294967295 of 5 before it waits"});
  }
  SUBCASE("an input that is listed twice") {
    expect_violation(
        [](Program& p) {
          add(p).early_inputs = {1, 1};
        },
        {"kernel add", "lists input 1 twice"});
    expect_violation(
        [](Program& p) {
          attend(p).early_caches = {2, 1, 2};
        },
        {"kernel attend", "lists input 2 twice"});
    expect_violation(
        [](Program& p) {
          attend(p).early_inputs = {1, 3, 4};
        },
        {"kernel attend", "lists input 1 twice"});
  }
  SUBCASE("an input that the kernel writes") {
    expect_violation([](Program& p) { step(p, 3).outputs[0] = step(p, 3).inputs[1]; },
                     {"step 3 (%y)", "writes %a, which it reads"});
  }
}

}  // namespace
}  // namespace sinter::checker_overlap_test
