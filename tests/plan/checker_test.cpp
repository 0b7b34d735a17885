// Every violation that the checker knows, planted once in a program that is otherwise right. One
// file: its cases plant in the same small program, by the same few functions.
#include "plan/checker.h"

#include <doctest/doctest.h>

#include "plan/check_parts.h"
#include "plan/expect_refused.h"
#include "plan/program_builder.h"
#include "plan/step_traffic.h"

namespace sinter::checker_test {
namespace {

using test::ProgramBuilder;
using test::sample_program;

// Changes one thing about the sample; the message must contain all of `parts`.
void expect_violation(const std::function<void(Program&, EntryPlan&)>& plant,
                      const std::vector<std::string>& parts) {
  Program program = sample_program();
  plant(program, program.entries[0]);
  test::expect_refused(program, parts);
}

uint32_t buffer(const EntryPlan& entry, std::string_view name) {
  for (uint32_t i = 0; i < entry.buffers.size(); ++i)
    if (entry.buffers[i].value == name) return i;
  FAIL("no such buffer");
  return 0;
}
KernelStep& kernel(EntryPlan& entry, size_t step) { return test::kernel_step(entry, step); }
GemmStep& gemm(EntryPlan& entry) { return test::gemm_step(entry, 2); }
const SymExpr n = Dim(SymbolId{0});

TEST_CASE("the sample is safe") {
  const Status status = check(sample_program());
  if (!status) FAIL(status.error().message());
}

TEST_CASE("arena") {
  SUBCASE("two live buffers share a slot") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "d")].slot = 0; },
                     {"%c, live from step 2 to 5, and %d, live from step 4 to 5, share slot 0"});
  }
  SUBCASE("an output of a step over its input") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "b")].slot = 0; },
                     {"%a, live from step 0 to 1, and %b, live from step 1 to 2, share slot 0"});
  }
  SUBCASE("a slot that is not there") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "d")].slot = 1u << 31; },
                     {"%d is in slot 2147483648 of the arena"});
  }
  SUBCASE("size of the value") {
    expect_violation(
        [](Program&, EntryPlan& e) { e.buffers[buffer(e, "a")].size_bytes = SymExpr(128) * n; },
        {"%a", "128*N bytes", "f32[N, 64]", "256*N"});
    // An output has memory of its own, in which other values may lie: no more than its type has.
    expect_violation(
        [](Program&, EntryPlan& e) { e.buffers[buffer(e, "y")].size_bytes = SymExpr(512) * n; },
        {"%y", "512*N bytes", "f32[N, 64]", "256*N"});
  }
  SUBCASE("size beyond that of any value") {
    expect_violation([](Program& p, EntryPlan&) { p.symbols[0].high = INT64_MAX / 512; },
                     {"f32[N, 64], more than 2^48 bytes"});
  }
  SUBCASE("planned life too short") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "c")].last_step = 3; },
                     {"%c is planned for steps 2 to 3 but used from 2 to 5"});
  }
  SUBCASE("an output lives to the end") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "y")].last_step = 5; },
                     {"%y is planned for steps 5 to 5 but used from 5 to 6"});
  }
  SUBCASE("never written") {
    expect_violation(
        [](Program&, EntryPlan& e) {
          Buffer spare = e.buffers[buffer(e, "a")];
          spare.value = "spare";
          e.buffers.push_back(spare);
        },
        {"no step writes %spare"});
  }
}

TEST_CASE("order of reads and writes") {
  SUBCASE("read before written") {
    expect_violation([](Program&, EntryPlan& e) { std::swap(e.steps[0], e.steps[1]); },
                     {"step 0 (%b)", "%a is read before any step writes it"});
  }
  SUBCASE("written twice") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 4).outputs[0] = buffer(e, "c"); },
                     {"step 4", "writes %c, which step 2 has written"});
  }
  SUBCASE("written in place") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 1).outputs[0] = buffer(e, "a"); },
                     {"writes %a, which it reads"});
  }
  SUBCASE("an input is written") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 1).outputs[0] = buffer(e, "x"); },
                     {"writes %x, which is no buffer of the arena"});
  }
  SUBCASE("a weight is written by a GEMM") {
    expect_violation(
        [](Program&, EntryPlan& e) {
          gemm(e).m = 64;
          gemm(e).a.buffer = gemm(e).c.buffer = buffer(e, "w");
        },
        {"writes %w"});
  }
}

TEST_CASE("states") {
  SUBCASE("the old version is read after the append") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 4).inputs[0] = buffer(e, "k0"); },
                     {"step 4 (%d)",
                      "%k0 is read in version 0 of state cache, which step 3 has "
                      "made version 1"});
  }
  SUBCASE("the new version is read before the append") {
    expect_violation([](Program&, EntryPlan& e) { std::swap(e.steps[3], e.steps[4]); },
                     {"step 3 (%d)", "%k1 is read in version 1", "is still version 0"});
  }
  SUBCASE("a version is skipped") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "k1")].version = 2; },
                     {"writes %k1, version 2, after version 0"});
  }
  SUBCASE("the result is no state") {
    expect_violation(
        [](Program&, EntryPlan& e) {
          Buffer copy = e.buffers[buffer(e, "k1")];
          copy.place = Buffer::Place::arena;
          copy.value = "copy";
          kernel(e, 3).outputs[0] = static_cast<uint32_t>(e.buffers.size());
          e.buffers.push_back(copy);
        },
        {"appends to %k0 but writes %copy"});
  }
  SUBCASE("an entry's output is an old version") {
    expect_violation([](Program&, EntryPlan& e) { e.outputs[0] = buffer(e, "k0"); },
                     {"%k0 is read in version 0"});
  }
  SUBCASE("a kernel reads the state that it appends to") {
    expect_violation(
        [](Program& p, EntryPlan&) {
          Graph& group = p.kernels[2].group;
          Builder builder(group, p.symbols, "extra");
          group.outputs.push_back(
              builder.op(OpKind::embedding, {group.inputs[0], group.inputs[2]}));
        },
        {"kernel append", "reads %in0", "overwrites in the same kernel"});
  }
  SUBCASE("an append that is not listed") {
    expect_violation([](Program& p, EntryPlan&) { p.kernels[2].appends.clear(); },
                     {"outputs [] are listed as appends, [0] are"});
  }
}

/// A momentum m' = m + g, stored by the kernel that reads m.
Program stored_momentum() {
  ProgramBuilder p;
  const TensorType type{DType::f32, {64, 64}};
  const uint32_t m = p.state("m", type), g = p.input("g", type);
  const uint32_t m0 = p.state_buffer(m, 0, "m0"), m1 = p.state_buffer(m, 1, "m1");
  const uint32_t y = p.arena("y", type, 0);
  p.kernel("update", {m0, g}, {m1}, [](Builder& b, std::vector<ValueId> in) {
    return std::vector{b.op(OpKind::store, {in[0], b.add(in[0], in[1])})};
  });
  p.kernel("read", {m1}, {y},
           [](Builder& b, std::vector<ValueId> in) { return std::vector{b.exp(in[0])}; });
  p.output(y);
  Program program = p.finish();
  program.kernels[0].in_place = {{0, 0}};
  return program;
}

TEST_CASE("a kernel reads the elements of a state that it overwrites, and no others") {
  CHECK(check(stored_momentum()));
  SUBCASE("its pointers are __restrict__") {
    Program program = stored_momentum();
    program.kernels[0].in_place.clear();
    test::expect_refused(program, {"kernel update", "reads %in0", "overwrites in the same kernel"});
  }
  SUBCASE("other elements") {
    Program program = stored_momentum();
    Graph& group = program.kernels[0].group;
    Graph turned;
    Builder b(turned, program.symbols);
    const ValueId m = b.leaf(OpKind::input, group[group.inputs[0]].type, "in0");
    const ValueId g = b.leaf(OpKind::input, group[group.inputs[1]].type, "in1");
    turned.outputs = {b.op(OpKind::store, {m, b.add(b.transpose(m, {1, 0}), g)})};
    group = turned;
    test::expect_refused(program, {"kernel update", "reads %in0", "overwrites in the same kernel"});
  }
  SUBCASE("a second writer") {
    Program program = stored_momentum();
    Graph& group = program.kernels[0].group;
    Builder b(group, program.symbols, "extra");
    group.outputs.push_back(b.op(OpKind::store, {group.inputs[0], group.inputs[1]}));
    program.kernels[0].appends = {0, 1};
    test::expect_refused(program, {"kernel update", "reads %in0", "overwrites in the same kernel"});
  }
}

TEST_CASE("arguments of kernels") {
  SUBCASE("number") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 5).inputs.pop_back(); },
                     {"1 inputs for a kernel with 2"});
  }
  SUBCASE("type") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 0).inputs[0] = buffer(e, "slot"); },
                     {"input 0, %slot, is i32[N], the kernel's %in0 f32[N, 64]"});
  }
  SUBCASE("unknown kernel") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 0).kernel = 9; }, {"kernel 9 of 5"});
  }
  SUBCASE("unknown buffer") {
    expect_violation([](Program&, EntryPlan& e) { kernel(e, 0).inputs[0] = 99; },
                     {"buffer 99 of 11"});
  }
  SUBCASE("name") {
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].name = "a/../b"; },
                     {"a/../b", "identifier"});
  }
  SUBCASE("symbols") {
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].symbols.clear(); },
                     {"the symbols [] are parameters, the group has [N]"});
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].symbols.push_back(SymbolId{9}); },
                     {"the symbols [N, number 9] are parameters, the group has [N]"});
  }
  SUBCASE("launch") {
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].launch.threads = 2048; },
                     {"kernel neg", "2048 threads"});
  }
  SUBCASE("shared memory") {
    const auto with_bytes = [](int64_t bytes) {
      return [bytes](Program& p, EntryPlan&) { p.kernels[0].launch.shared_bytes = bytes; };
    };
    expect_violation(with_bytes(232449), {"kernel neg", "232449 shared bytes"});
    Program largest = sample_program();
    largest.kernels[0].launch.shared_bytes = 232448;
    CHECK(check(largest).has_value());
  }
  SUBCASE("cluster") {
    for (int64_t cluster : {-1, 0, 9})
      expect_violation(
          [&](Program& p, EntryPlan&) {
            p.kernels[0].minimum_arch = 90;
            p.kernels[0].launch.cluster = cluster;
          },
          {"kernel neg", fmt::format("clusters of {}", cluster)});
    expect_violation(
        [](Program& p, EntryPlan&) { p.kernels[0].launch.items_without_clusters = -1; },
        {"kernel neg", "none from -1 items on"});
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].launch.most_blocks = -1; },
                     {"kernel neg", "at most -1 blocks"});
    expect_violation([](Program& p, EntryPlan&) { p.kernels[0].launch.cluster = 2; },
                     {"kernel neg", "clusters of 2 for devices from sm_70 on", "sm_90"});
    Program largest = sample_program();
    largest.kernels[0].minimum_arch = 90;
    largest.kernels[0].launch.cluster = 8;
    CHECK(check(largest).has_value());
  }
}

TEST_CASE("blocks of a launch cover all items, which those of a cluster share") {
  Launch launch;
  launch.rows = SymExpr(Dim(SymbolId{0}));
  launch.items_per_row = 3;
  launch.items_per_block = 2;
  const auto blocks = [&](int64_t rows) -> std::optional<int64_t> {
    const auto grid = grid_of(launch, {rows});
    if (!grid) return std::nullopt;
    CHECK(grid->blocks % grid->cluster == 0);
    return grid->blocks;
  };
  CHECK(blocks(0) == 0);
  CHECK(blocks(1) == 2);
  CHECK(blocks(5) == 8);
  CHECK_FALSE(blocks(INT64_MAX / 2));
  launch.cluster = 8;
  CHECK(blocks(0) == 0);
  CHECK(blocks(1) == 16);
  CHECK(blocks(5) == 64);
  launch.symbolic_items = launch.rows;
  CHECK(blocks(5) == 104);
  CHECK_FALSE(blocks(INT64_MAX / 2));
  CHECK_FALSE(blocks(1l << 31));
  launch.items_without_clusters = 25;
  CHECK(blocks(5) == 13);
  CHECK(grid_of(launch, {5})->cluster == 1);
  CHECK(blocks(4) == 64);
  CHECK(grid_of(launch, {4})->cluster == 8);
  launch.most_blocks = 6;
  CHECK(blocks(0) == 0);
  CHECK(blocks(3) == 40);
  CHECK(blocks(4) == 48);
  CHECK(blocks(5) == 6);
}

TEST_CASE("tables") {
  SUBCASE("range of a symbol") {
    expect_violation([](Program& p, EntryPlan&) { p.symbols[0].low = -1; }, {"symbol N", "-1..64"});
  }
  SUBCASE("bound of a symbol") {
    expect_violation([](Program& p, EntryPlan&) { p.symbols[0].at_most = SymbolId{1}; },
                     {"symbol N", "bounded by symbol 1"});
  }
  SUBCASE("weight's type") {
    expect_violation([](Program& p, EntryPlan&) { p.weights[0].type.dtype = DType::f16; },
                     {"%w", "f32[64, 64]", "f16[64, 64]"});
  }
  SUBCASE("weight's index") {
    expect_violation([](Program&, EntryPlan& e) { e.buffers[buffer(e, "w")].index = 2; },
                     {"weight 2 of 2"});
  }
  SUBCASE("input's place") {
    expect_violation([](Program&, EntryPlan& e) { std::swap(e.inputs[0], e.inputs[1]); },
                     {"input 0 is buffer 1"});
  }
  SUBCASE("an unknown symbol") {
    expect_violation(
        [](Program&, EntryPlan& e) {
          e.buffers[buffer(e, "d")].size_bytes += SymExpr(Dim(SymbolId{7}));
        },
        {"uses symbol 7 of 2"});
  }
}

TEST_CASE("gemm") {
  SUBCASE("an operand beyond its buffer") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).b.offset = 1; },
                     {"operand B reaches element 4097 of %w, which has 4096"});
  }
  SUBCASE("a stride that is one too large") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).a.row_stride = 65; },
                     {"operand A reaches element 65*N - 1 of %b, which has 64*N"});
  }
  SUBCASE("a stride within a line") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).a.row_stride = 63; },
                     {"operand A (%b)", "strides 63 and 1"});
  }
  SUBCASE("no unit stride") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).b.column_stride = 2; },
                     {"operand B (%w)", "strides 64 and 2"});
  }
  SUBCASE("a negative offset") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).a.offset = -1; },
                     {"-1, can be negative"});
  }
  SUBCASE("a result that is not written completely") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).n = 32; },
                     {"32*N elements of the result %c are written, it has 64*N"});
  }
  SUBCASE("a result that a loop writes twice") {
    expect_violation(
        [](Program&, EntryPlan& e) {
          gemm(e).loops.push_back({2, 0, 0, 0});
        },
        {"%c is written twice"});
  }
  SUBCASE("element types") {
    expect_violation(
        [](Program& p, EntryPlan& e) {
          p.weights[0].type.dtype = e.buffers[buffer(e, "w")].type.dtype = DType::f16;
          e.buffers[buffer(e, "w")].size_bytes = 8192;
        },
        {"f32 (%b) times f16 (%w) into f32 (%c)"});
  }
  SUBCASE("bias") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).bias = buffer(e, "slot"); },
                     {"bias %slot is i32"});
  }
  SUBCASE("residual") {
    const auto residual = [](std::string_view name) {
      return [=](Program& p, EntryPlan& e) {
        p.numerics = Numerics::fast;
        gemm(e).residual = buffer(e, std::string(name));
      };
    };
    expect_violation(residual("slot"), {"residual %slot is i32", "the result f32 with 64*N"});
    expect_violation(residual("bias"), {"residual %bias is f32 with 64 elements"});
    expect_violation(residual("c"), {"%c is read before any step writes it"});
    expect_violation(residual("d"), {"%d is read before any step writes it"});
    expect_violation(
        [](Program& p, EntryPlan& e) {
          p.numerics = Numerics::fast;
          gemm(e).residual = 99;
        },
        {"residual is buffer 99 of"});
  }
  SUBCASE("strict numerics") {
    const std::string what =
        "a product with a residual or an activation in a plan with strict numerics";
    expect_violation([](Program&, EntryPlan& e) { gemm(e).activation = Activation::relu; }, {what});
    expect_violation([](Program&, EntryPlan& e) { gemm(e).residual = gemm(e).a.buffer; }, {what});
  }
}

TEST_CASE("a product reads elements that steps write, and writes every element of its result") {
  SUBCASE("no rows, columns or repetitions, and a result with elements") {
    expect_violation([](Program&, EntryPlan& e) { gemm(e).m = 0; },
                     {"0 elements of the result %c are written, it has 64*N"});
    expect_violation([](Program&, EntryPlan& e) { gemm(e).n = 0; },
                     {"0 elements of the result %c are written, it has 64*N"});
    expect_violation(
        [](Program&, EntryPlan& e) {
          gemm(e).loops.push_back({0, 0, 0, 0});
        },
        {"0 elements of the result %c are written, it has 64*N"});
  }
  SUBCASE("a loop that a symbol can make empty") {
    expect_violation(
        [](Program& p, EntryPlan& e) {
          p.symbols[1].low = 0;
          gemm(e).loops.push_back({Dim(SymbolId{1}), 0, 0, 0});
        },
        {"%c is written twice"});
    expect_violation([](Program&, EntryPlan& e) { gemm(e).m = n - SymExpr(1); },
                     {"64*N - 64 elements of the result %c are written, it has 64*N"});
  }
  SUBCASE("an offset of the result") {
    expect_violation([&](Program&, EntryPlan& e) { gemm(e).c.offset = 64; },
                     {"operand C reaches element 64*N + 64 of %c, which has 64*N"});
  }
  SUBCASE("wider rows of the result") {
    expect_violation([&](Program&, EntryPlan& e) { gemm(e).c.row_stride = 128; },
                     {"operand C reaches element 128*N - 64 of %c, which has 64*N"});
  }
  SUBCASE("gaps between the repetitions of the result") {
    expect_violation(
        [&](Program&, EntryPlan& e) {
          gemm(e).n = 32;
          gemm(e).loops.push_back({2, 0, 32, SymExpr(64) * n});
        },
        {"operand C reaches element", "of %c, which has 64*N"});
  }
  SUBCASE("an operand that ends behind its value") {
    expect_violation([&](Program&, EntryPlan& e) { gemm(e).a.offset = 64; },
                     {"operand A reaches element 64*N + 64 of %b, which has 64*N"});
    expect_violation([&](Program&, EntryPlan& e) { gemm(e).a.row_stride = 65; },
                     {"operand A reaches element 65*N - 1 of %b, which has 64*N"});
  }
}

TEST_CASE("a kernel is launched where its result has elements") {
  expect_violation([](Program& p, EntryPlan&) { p.kernels[1].launch.items_per_row = 0; },
                   {"kernel exp", "may have no items while its result", "f32[N, 64]"});
  expect_violation([](Program& p, EntryPlan&) { p.kernels[1].launch.rows = 0; },
                   {"kernel exp", "may have no items while its result"});
  expect_violation([](Program& p, EntryPlan&) { p.kernels[1].launch.rows = n - SymExpr(1); },
                   {"kernel exp", "may have no items while its result"});
  Program empty = sample_program();
  empty.symbols[0].low = 0;
  const Status status = check(empty);
  if (!status) FAIL(status.error().message());
}

// C[N, H, D] from A[N, H, D] and B[H, D, D]: heads are a loop inside the rows.
Program heads_program(int64_t c_loop_stride) {
  ProgramBuilder p;
  const Dim tokens = p.symbol("N", 0, 64);
  const uint32_t a = p.input("a", {DType::f16, {tokens, 4, 8}});
  const uint32_t b = p.input("b", {DType::f16, {4, 8, 8}});
  const uint32_t c = p.arena("c", {DType::f16, {tokens, 4, 8}}, 0);
  GemmStep& step = p.gemm(a, b, c, SymExpr(tokens), 8, 8);
  step.a.row_stride = step.c.row_stride = 32;
  step.loops.push_back({4, 8, 64, c_loop_stride});
  p.output(c);
  return p.finish();
}

TEST_CASE("gemm with interleaved heads") {
  const Status status = check(heads_program(8));
  if (!status) FAIL(status.error().message());
  CHECK_FALSE(check(heads_program(4)));
  CHECK_FALSE(check(heads_program(16)));
}

TEST_CASE("comparison for all values of the symbols") {
  const std::vector<Symbol> symbols = {{.name = "R", .low = 8, .high = 64},
                                       {.name = "N", .low = 1, .high = 64, .at_most = SymbolId{0}}};
  const SymExpr r = Dim(SymbolId{0}), tokens = Dim(SymbolId{1});
  const auto never_less = [&](const SymExpr& a, const SymExpr& b) {
    return checker::never_less(a, b, symbols);
  };
  CHECK(never_less(r * tokens, r * tokens));
  CHECK(never_less(r, 8));  // counted from its smallest value
  CHECK_FALSE(never_less(r, 9));
  CHECK(never_less(r, tokens));  // its bound
  CHECK(never_less(r * r, r * tokens));
  CHECK_FALSE(never_less(tokens, r));
  CHECK_FALSE(never_less(r, tokens + SymExpr(1)));
  CHECK_FALSE(never_less(SymExpr(INT64_MAX) * SymExpr(2), 0));
}

TEST_CASE("variants of an entry") {
  Program sample = sample_program();
  const int64_t low = sample.symbols[0].low, high = sample.symbols[0].high;
  sample.entries.push_back(sample.entries[0]);
  sample.entries[0].range = SymbolRange{SymbolId{0}, low, 4};
  sample.entries[1].range = SymbolRange{SymbolId{0}, 5, high};
  const Status status = check(sample);
  if (!status) FAIL(status.error().message());
  const auto refused = [&](const std::function<void(Program&, EntryPlan&)>& plant,
                           const std::string& part) {
    Program program = sample;
    plant(program, program.entries[1]);
    test::expect_refused(program, {part});
  };
  refused([](Program&, EntryPlan& e) { e.range->low = 6; }, "where one from 5");
  refused([](Program&, EntryPlan& e) { e.range->low = 4; }, "where one from 5");
  refused([](Program&, EntryPlan& e) { --e.range->high; }, "no variant for N");
  refused([](Program&, EntryPlan& e) { ++e.range->high; }, "the symbol is in");
  refused([](Program&, EntryPlan& e) { e.range->symbol = SymbolId{7}; }, "symbol 7 of");
  refused([](Program&, EntryPlan& e) { e.range.reset(); }, "once without a range");
  refused([](Program& p, EntryPlan&) { p.entries.pop_back(); }, "no other variant");
  refused([](Program&, EntryPlan& e) { e.buffers[e.inputs[0]].value = "other"; }, "inputs");
  refused([](Program&, EntryPlan& e) { e.output_names[0] = "other"; }, "outputs");
  refused(
      [](Program& p, EntryPlan&) {
        p.kernels[0].range = SymbolRange{SymbolId{0}, 1, 4};
      },
      "made for N in [1, 4] alone");
  refused(
      [](Program& p, EntryPlan&) {
        p.kernels[0].range = SymbolRange{SymbolId{0}, 4, 1};
      },
      "the symbol is in");
}

TEST_CASE("bytes moved") {
  const Program program = sample_program();
  const EntryPlan& entry = program.entries[0];
  for (const int64_t n : {1, 5}) {
    const StepTraffic traffic(program, std::vector<int64_t>(program.symbols.size(), n));
    const auto moved = [&](size_t step) { return traffic.of(entry, entry.steps[step]).total(); };
    const auto rows = static_cast<double>(n);
    CHECK(moved(0) == 512 * rows);          // x, a
    CHECK(moved(2) == 512 * rows + 16640);  // b, c, w, bias
    CHECK(moved(3) == 516 * rows);          // c and slot, the rows of the state
    CHECK(moved(4) == 516 * rows);          // the rows, slot, d
    CHECK(moved(5) == 768 * rows);
  }
}

TEST_CASE("entries by name") {
  const Program program = sample_program();
  CHECK(program.find_entry("forward") == &program.entries[0]);
  CHECK(program.find_entry("decode") == nullptr);
}

}  // namespace
}  // namespace sinter::checker_test
