// Row numbers that kernels use without anybody having checked them, planted in programs that are
// otherwise right.
#include <doctest/doctest.h>

#include "plan/expect_refused.h"
#include "plan/program_builder.h"

namespace sinter::checker_rows_test {
namespace {

using test::gathering_program;

void require_safe(const Program& program) {
  const Status status = check(program);
  if (!status) FAIL(status.error().message());
}

/// Ops of the kernel of step 1.
Graph& gather(Program& program) { return program.kernels[1].group; }

Op& embedding(Program& program) {
  for (Op& op : gather(program).mutable_ops())
    if (op.kind == OpKind::embedding) return op;
  FAIL("no embedding");
  return gather(program).mutable_ops()[0];
}

TEST_CASE("computed row numbers are safe in a kernel that is checked, if they are looked at") {
  require_safe(gathering_program());
  SUBCASE("the kernel is not checked") {
    Program program = gathering_program();
    embedding(program).attrs = {};
    test::expect_refused(program, {"entry forward, step 1 (%y)", "reads %in1",
                                   "that nothing has checked, and is not checked"});
  }
  SUBCASE("checked = 0 is not checked") {
    Program program = gathering_program();
    embedding(program).attrs.set(AttrName::checked, int64_t{0});
    test::expect_refused(program, {"that nothing has checked"});
  }
  SUBCASE("nothing looks at them") {
    Program program = gathering_program();
    program.entries[0].row_checks.clear();
    program.entries[0].buffers[2].last_step = 1;
    test::expect_refused(program, {"step 1 (%y)", "that nothing looks at after the call"});
  }
  SUBCASE("they are looked at for a larger table") {
    Program program = gathering_program();
    program.entries[0].row_checks[0].rows = 33;
    test::expect_refused(program, {"that nothing looks at after the call"});
    program.entries[0].row_checks[0].rows = 31;
    require_safe(program);
  }
  SUBCASE("others are looked at") {
    Program program = gathering_program();
    program.entries[0].buffers[2].last_step = 1;
    program.entries[0].row_checks[0].buffer = 0;
    test::expect_refused(program, {"%t0 reads %in1", "that nothing looks at after the call"});
    program.entries[0].row_checks[0].buffer = 3;
    test::expect_refused(program, {"%y, f32[N, 16], holds no row numbers"});
    program.entries[0].row_checks[0].buffer = 7;
    test::expect_refused(program, {"row numbers are buffer 7 of 4"});
  }
  SUBCASE("an input is looked at too") {
    Program program = gathering_program();
    program.entries[0].row_checks.push_back({0, 32, "y"});
    require_safe(program);
  }
  SUBCASE("their buffer is given away before the call ends") {
    Program program = gathering_program();
    program.entries[0].buffers[2].last_step = 1;
    test::expect_refused(program, {"%i is planned for steps 0 to 1 but used from 0 to 2"});
  }
  SUBCASE("a number of rows that no host knows") {
    Program program = gathering_program();
    program.entries[0].row_checks[0].rows = Dim(SymbolId{5});
    test::expect_refused(program, {"the number of rows uses symbol 5 of 1"});
  }
}

TEST_CASE("row numbers that the kernel computes itself must leave it") {
  test::ProgramBuilder p;
  const uint32_t n = p.input("n", {DType::i32, {4}});
  const uint32_t table = p.input("table", {DType::f32, {32, 16}});
  const uint32_t y = p.arena("y", {DType::f32, {4, 16}}, 0);
  p.kernel("gather", {table, n}, {y}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.op(OpKind::embedding, {in[0], g.add(in[1], in[1])},
                            Attributes().set(AttrName::checked, int64_t{1}))};
  });
  p.output(y);
  test::expect_refused(p.finish(), {"that nothing looks at after the call"});
}

/// A kernel, not checked, that gathers rows of a table of 32 by `ids`, which it makes of its input.
Program gathering_by(Dim extent, const std::function<ValueId(Builder&, ValueId)>& ids) {
  test::ProgramBuilder p;
  p.symbol("F", 1, 32);
  p.symbol("M", 1, 33);
  const uint32_t n = p.input("n", {DType::i32, {extent}});
  const uint32_t table = p.input("table", {DType::f32, {32, 16}});
  const uint32_t y = p.arena("y", {DType::f32, {extent, 16}}, 0);
  p.kernel("gather", {table, n}, {y}, [&](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.op(OpKind::embedding, {in[0], ids(g, in[1])})};
  });
  p.output(y);
  return p.finish();
}

TEST_CASE("inputs and known row numbers need no check") {
  const Dim few{SymbolId{0}}, more{SymbolId{1}};
  const auto constant = [&](double value) {
    return gathering_by(few,
                        [&](Builder& g, ValueId) { return g.constant(value, DType::i32, {few}); });
  };
  const auto counting = [](Dim extent) {
    return gathering_by(extent, [&](Builder& g, ValueId) {
      return g.op(OpKind::iota, {},
                  Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, Dims{extent}));
    });
  };
  require_safe(gathering_by(few, [](Builder&, ValueId n) { return n; }));
  require_safe(gathering_by(few, [&](Builder& g, ValueId n) {
    return g.reshape(g.reshape(n, {few, 1}), {few});
  }));
  require_safe(counting(few));
  require_safe(counting(32));
  require_safe(constant(31));
  for (const Program& program :
       {counting(33), counting(more), constant(32), constant(-1),
        gathering_by(few, [](Builder&g, ValueId n) { return g.add(n, n); }),
        gathering_by(few, [](Builder&g, ValueId n) { return g.op(OpKind::copy, {n}); })})
    test::expect_refused(program, {"that nothing has checked"});
}

}  // namespace
}  // namespace sinter::checker_rows_test
