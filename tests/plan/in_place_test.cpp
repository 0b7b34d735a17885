// A step that writes a value in the memory of one that it reads last: what the checker takes, what
// it refuses, and the results of the host.
#include "ir/in_place.h"

#include <doctest/doctest.h>

#include "plan/expect_refused.h"
#include "plan/program_builder.h"
#include "runtime/host/executable.h"

namespace sinter::in_place_test {
namespace {

using Body = std::function<std::vector<ValueId>(Builder&, std::vector<ValueId>)>;

const TensorType kSquare{DType::f32, {64, 64}};

/// a = -x; b = `body` of a and x, in a's memory; y = |b|.
struct InPlaceProgram {
  explicit InPlaceProgram(const Body& body, TensorType type = kSquare) {
    x = p.input("x", kSquare);
    a = p.arena("a", kSquare, 0), b = p.arena("b", type, 0), y = p.arena("y", type, 1);
    p.kernel("neg", {x}, {a},
             [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
    p.kernel("body", {a, x}, {b}, body);
    p.kernel("abs", {b}, {y},
             [](Builder& g, std::vector<ValueId> in) { return std::vector{g.abs(in[0])}; });
    p.output(y);
    kernel().in_place = {{0, 0}};
  }
  Kernel& kernel() { return p.program.kernels[1]; }
  void expect_refused() {
    test::expect_refused(p.finish(), {"step 1 (%b)", "%a, live from step 0 to 1, and %b", "share"});
  }

  test::ProgramBuilder p;
  uint32_t x, a, b, y;
};

std::vector<ValueId> sum(Builder& g, std::vector<ValueId> in) { return {g.add(in[0], in[1])}; }

ValueId transposed(Builder& g, ValueId id) {
  return g.op(OpKind::transpose, {id},
              Attributes().set(AttrName::axes, std::vector<int64_t>{1, 0}));
}

ValueId cast(Builder& g, ValueId id, DType dtype) {
  return g.op(OpKind::cast, {id}, Attributes().set(AttrName::dtype, dtype));
}

void expect_accepted(const Program& program) {
  const Status status = check(program);
  CHECK_MESSAGE(status.has_value(), (status ? "" : status.error().message()));
}

TEST_CASE("a kernel of elements writes in the place of its operand") {
  InPlaceProgram in_place(sum);
  expect_accepted(in_place.p.finish());
  SUBCASE("one that overlaps others needs no pair") {
    in_place.kernel().in_place.clear();
    in_place.kernel().overlap.waits = true;
    expect_accepted(in_place.p.finish());
  }
  SUBCASE("through a reshape") {
    InPlaceProgram flat([](Builder& g, std::vector<ValueId> in) {
      const auto reshaped = [&](ValueId id, Dims dims) {
        return g.op(OpKind::reshape, {id}, Attributes().set(AttrName::dims, std::move(dims)));
      };
      return std::vector{reshaped(g.exp(reshaped(in[0], {4096})), {64, 64})};
    });
    expect_accepted(flat.p.finish());
  }
  SUBCASE("of another type of the same width") {
    InPlaceProgram numbers(
        [](Builder& g, std::vector<ValueId> in) { return std::vector{cast(g, in[0], DType::i32)}; },
        {DType::i32, {64, 64}});
    expect_accepted(numbers.p.finish());
  }
}

/// A group of inputs x and z, 64 x 64, with two outputs of the same size.
Graph two_outputs(const Body& body) {
  Graph graph;
  Builder g(graph, {});
  for (const char* name : {"x", "z"}) graph.inputs.push_back(g.leaf(OpKind::input, kSquare, name));
  for (ValueId id : body(g, {graph.inputs[0], graph.inputs[1]})) graph.outputs.push_back(id);
  return graph;
}

TEST_CASE("another output may need the operand where one thread computes both") {
  const auto may = [](const Body& body) { return may_overwrite(two_outputs(body), 0, 0, {}); };
  SUBCASE("through the output itself") {
    CHECK(may([](Builder& g, std::vector<ValueId> in) {
      const ValueId moment = g.add(in[0], in[1]);
      return std::vector{moment, g.exp(moment)};
    }));
  }
  SUBCASE("with a value that both are made of") {
    CHECK(may([](Builder& g, std::vector<ValueId> in) {
      const ValueId difference = g.add(in[0], in[1]);
      return std::vector{g.exp(difference), g.neg(difference)};
    }));
  }
  SUBCASE("perhaps in a part of its own") {
    CHECK_FALSE(may([](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.exp(in[0]), g.neg(in[0])};
    }));
  }
  SUBCASE("at another index") {
    CHECK_FALSE(may([](Builder& g, std::vector<ValueId> in) {
      const ValueId moment = g.add(in[0], in[1]);
      return std::vector{moment, g.exp(transposed(g, moment))};
    }));
  }
  SUBCASE("by other axes") {
    CHECK_FALSE(may([](Builder& g, std::vector<ValueId> in) {
      const ValueId moment = g.add(in[0], in[1]);
      const ValueId flat =
          g.op(OpKind::reshape, {in[0]}, Attributes().set(AttrName::dims, Dims{4096}));
      return std::vector{moment, g.op(OpKind::reshape, {g.exp(flat)},
                                      Attributes().set(AttrName::dims, Dims{64, 64}))};
    }));
  }
}

TEST_CASE("wrong places are refused") {
  SUBCASE("pointers that the text takes for different") {
    InPlaceProgram in_place(sum);
    in_place.kernel().in_place.clear();
    in_place.expect_refused();
  }
  SUBCASE("another pair") {
    InPlaceProgram in_place(sum);
    in_place.kernel().in_place = {{0, 1}};
    in_place.expect_refused();
  }
  SUBCASE("the operand is read at another index") {
    InPlaceProgram([](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.exp(transposed(g, in[0]))};
    }).expect_refused();
  }
  SUBCASE("also at another index") {
    InPlaceProgram([](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.add(in[0], transposed(g, in[0]))};
    }).expect_refused();
  }
  SUBCASE("a reduction reads the row") {
    InPlaceProgram([](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.op(OpKind::softmax, {in[0]})};
    }).expect_refused();
  }
  SUBCASE("elements of another width") {
    InPlaceProgram in_place(
        [](Builder& g, std::vector<ValueId> in) { return std::vector{cast(g, in[0], DType::f16)}; },
        {DType::f16, {64, 64}});
    in_place.expect_refused();
  }
  SUBCASE("the operand is given twice") {
    InPlaceProgram in_place([](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.add(in[0], transposed(g, in[1]))};
    });
    test::kernel_step(in_place.p.entry(), 1).inputs[1] = in_place.a;
    in_place.expect_refused();
  }
  SUBCASE("the operand is still alive") {
    InPlaceProgram in_place(sum);
    in_place.p.kernel("late", {in_place.a, in_place.y}, {in_place.p.arena("z", kSquare, 2)}, sum);
    test::expect_refused(in_place.p.finish(),
                         {"%a, live from step 0 to 3, and %b", "share slot 0"});
  }
  SUBCASE("the operand is an output of the entry") {
    InPlaceProgram in_place(sum);
    in_place.p.output(in_place.a);
    test::expect_refused(in_place.p.finish(),
                         {"%a, live from step 0 to 3, and %b", "share slot 0"});
  }
  SUBCASE("the operand is an input") {
    InPlaceProgram in_place(sum);
    in_place.kernel().in_place = {{0, 1}};
    test::kernel_step(in_place.p.entry(), 1).outputs[0] = in_place.x;
    test::expect_refused(in_place.p.finish(), {"writes %x, which is no buffer of the arena"});
  }
}

TEST_CASE("two outputs of a step in one place are refused") {
  test::ProgramBuilder p;
  const uint32_t x = p.input("x", kSquare), a = p.arena("a", kSquare, 0);
  const uint32_t b = p.arena("b", kSquare, 0), c = p.arena("c", kSquare, 0);
  p.kernel("neg", {x}, {a},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.kernel("both", {a}, {b, c}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.exp(in[0]), g.abs(in[0])};
  });
  p.output(b), p.output(c);
  p.program.kernels[1].in_place = {{0, 0}};
  test::expect_refused(p.finish(), {"share slot 0"});
  p.entry().buffers[c].slot = 1;
  test::expect_refused(p.finish(), {"%a, live from step 0 to 1, and %b", "share slot 0"});
}

TEST_CASE("pairs that the kernel does not have are refused") {
  InPlaceProgram in_place(sum);
  in_place.kernel().in_place = {{0, 0}, {1, 1}};
  test::expect_refused(in_place.p.finish(),
                       {"kernel body", "output 1 of 1 in the place of input 1"});
  in_place.kernel().in_place = {{0, 2}};
  test::expect_refused(in_place.p.finish(), {"output 0 of 1 in the place of input 2 of 2"});
  in_place.kernel().in_place = {{0, 0}, {0, 1}};
  test::expect_refused(in_place.p.finish(), {"output 0 in the place of input 0, output 0 in"});
}

TEST_CASE("a constant, a weight or a state keeps its memory: it has no slot") {
  test::ProgramBuilder p;
  const uint32_t w = p.weight("w", kSquare, [](Builder& b) {
    return b.op(OpKind::constant, {},
                Attributes()
                    .set(AttrName::dims, Dims{64, 64})
                    .set(AttrName::dtype, DType::f32)
                    .set(AttrName::value, 0.5),
                "w");
  });
  const uint32_t wb = p.weight_buffer(w), s = p.state("s", kSquare), y = p.arena("y", kSquare, 0);
  const uint32_t sb = p.state_buffer(s, 0, "s0");
  p.kernel("sum", {wb, sb}, {y}, sum);
  p.output(y);
  p.program.kernels[0].in_place = {{0, 0}};
  expect_accepted(p.finish());
  for (uint32_t written : {wb, sb}) {
    test::kernel_step(p.entry(), 0).outputs[0] = written;
    test::expect_refused(p.finish(), {"which is no buffer of the arena"});
  }
}

TEST_CASE("a state that an output replaces has room for no other output") {
  Graph group;
  Builder b(group, {});
  const ValueId m = b.leaf(OpKind::input, kSquare, "m"), x = b.leaf(OpKind::input, kSquare, "x");
  const ValueId total = b.add(m, x);
  group.outputs = {b.op(OpKind::store, {m, total}), b.exp(total)};
  CHECK(may_overwrite(group, 0, 0, {}));
  CHECK_FALSE(may_overwrite(group, 1, 0, {}));
  CHECK(may_overwrite(group, 1, 1, {}));
}

TEST_CASE("the host writes in place, with what is freed poisoned") {
  InPlaceProgram in_place(
      [](Builder& g, std::vector<ValueId> in) { return std::vector{g.mul(in[0], in[1])}; });
  const auto program = std::make_shared<const Program>(in_place.p.finish());
  const auto layout = arena_layout(program->entries[0], {});
  REQUIRE(layout);
  CHECK(layout->offsets[in_place.a] == layout->offsets[in_place.b]);
  CHECK(layout->bytes == 2 * 64 * 64 * 4);
  const auto model = HostExecutable::load(program, nullptr);
  REQUIRE(model);
  auto session = HostSession::create(*model, {});
  REQUIRE(session);
  auto input = make_tensor(DType::f32, {64, 64});
  REQUIRE(input);
  for (size_t i = 0; i < 64 * 64; ++i) input->data<float>()[i] = static_cast<float>(i);
  CallOptions options;
  options.poison_freed = true;
  const std::vector<HostTensor> inputs{*input};
  const auto result = session->run("forward", {}, addresses_of(inputs), options);
  REQUIRE(result);
  for (size_t i = 0; i < 64 * 64; ++i)
    CHECK(result->outputs[0].elements<float>()[i] == static_cast<float>(i * i));
}

/// A part of 128 columns, from column `begin` on.
ValueId placed_part(Builder& g, const std::vector<ValueId>& part_and_base, int64_t begin) {
  return g.op(OpKind::place, part_and_base,
              Attributes()
                  .set(AttrName::axis, int64_t{1})
                  .set(AttrName::begin, begin)
                  .set(AttrName::size, Dim(128)));
}

/// a begins a value with x; `whole`: b places y in it, z = -b.
struct PlacedProgram {
  explicit PlacedProgram(bool whole = true) {
    x = p.input("x", kSquare), y = p.input("y", kSquare);
    a = p.arena("a", kWide, 0);
    p.kernel("begin", {x}, {a}, [](Builder& g, std::vector<ValueId> in) {
      return std::vector{placed_part(g, in, 64)};
    });
    if (!whole) return;
    b = p.arena("b", kWide, 0), z = p.arena("z", kWide, 1);
    p.kernel("place", {y, a}, {b}, [](Builder& g, std::vector<ValueId> in) {
      return std::vector{placed_part(g, in, 0)};
    });
    p.kernel("neg", {b}, {z},
             [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
    p.output(z);
    p.program.kernels[1].in_place = {{0, 1}};
  }

  static inline const TensorType kWide{DType::f32, {64, 128}};
  test::ProgramBuilder p;
  uint32_t x, y, a, b, z;
};

TEST_CASE("a kernel that places a part has the memory of the value") {
  PlacedProgram placed;
  SUBCASE("the same slot") { expect_accepted(placed.p.finish()); }
  SUBCASE("other memory") {
    placed.p.entry().buffers[placed.b].slot = 2;
    test::expect_refused(placed.p.finish(), {"step 1", "%b must have the memory of %a"});
  }
  SUBCASE("another part is placed in the base later") {
    const uint32_t w = placed.p.arena("w", PlacedProgram::kWide, 0);
    test::kernel_step(placed.p.entry(), 2).inputs[0] = w;
    placed.p.entry().steps.insert(placed.p.entry().steps.begin() + 2, placed.p.entry().steps[1]);
    test::kernel_step(placed.p.entry(), 2).outputs[0] = w;
    test::expect_refused(placed.p.finish(), {"step 1", "%b must have the memory of %a"});
  }
  SUBCASE("pointers that the text takes for different") {
    placed.p.program.kernels[1].in_place.clear();
    test::expect_refused(placed.p.finish(), {"%a, live from step 0 to 1, and %b", "share"});
  }
}

TEST_CASE("what parts are placed in is read when all are there") {
  const std::string missing =
      "%a is read before all of its parts are placed: only elements [64, 128) of axis 1 are";
  PlacedProgram begun(false);
  test::ProgramBuilder& p = begun.p;
  const auto result = [&] { return p.arena("w", PlacedProgram::kWide, 1); };
  SUBCASE("the result of a plan") {
    p.output(begun.a);
    test::expect_refused(p.finish(), {"step 1", missing});
  }
  SUBCASE("by a copy") {
    p.copy(begun.a, result());
    test::expect_refused(p.finish(), {"step 1 (%w)", missing});
  }
  SUBCASE("by a product") {
    p.gemm(begun.x, begun.a, result(), 64, 128, 64);
    test::expect_refused(p.finish(), {"step 1 (%w)", missing});
  }
  SUBCASE("by a kernel") {
    p.kernel("abs", {begun.a}, {result()},
             [](Builder& g, std::vector<ValueId> in) { return std::vector{g.abs(in[0])}; });
    test::expect_refused(p.finish(), {"step 1 (%w)", "%t0 reads %in0, of which parts are missing"});
  }
  SUBCASE("by a kernel that places a part in it") {
    const uint32_t v = p.arena("v", PlacedProgram::kWide, 0);
    p.kernel("half", {begun.x, begun.a}, {v, result()}, [](Builder& g, std::vector<ValueId> in) {
      const ValueId part = g.op(OpKind::slice, {in[0]},
                                Attributes()
                                    .set(AttrName::axis, int64_t{1})
                                    .set(AttrName::begin, int64_t{0})
                                    .set(AttrName::size, Dim(32)));
      const ValueId last = placed_part(g, {part, in[1]}, 32);
      return std::vector{last, g.abs(last)};
    });
    test::expect_refused(p.finish(), {"step 1 (%v, %w)", "of which parts are missing"});
  }
  SUBCASE("a kernel returns it as it is") {
    p.kernel("same", {begun.a}, {result()},
             [](Builder&, std::vector<ValueId> in) { return std::vector{in[0]}; });
    test::expect_refused(p.finish(), {"step 1 (%w)", "%in0 is an output, but parts of it"});
  }
}

TEST_CASE("parts that are placed by several kernels follow one another") {
  PlacedProgram placed;
  SUBCASE("a part twice") {
    Graph& group = placed.p.program.kernels[1].group;
    group[group.outputs[0]].attrs.set(AttrName::begin, int64_t{64});
    test::expect_refused(placed.p.finish(),
                         {"step 1 (%b)", "places elements 64 to 128 beside 64 to 128"});
  }
  SUBCASE("a base that is no place") {
    test::kernel_step(placed.p.entry(), 1).inputs = {placed.y,
                                                     placed.p.input("wide", PlacedProgram::kWide)};
    test::expect_refused(placed.p.finish(),
                         {"step 1 (%b)", "has the base %in1, which is no place along axis 1"});
  }
  SUBCASE("a result whose memory another op of the kernel has") {
    const uint32_t v = placed.p.arena("v", PlacedProgram::kWide, 2);
    const uint32_t w = placed.p.arena("w", PlacedProgram::kWide, 3);
    placed.p.kernel("both", {placed.x, placed.y}, {v, w}, [](Builder& g, std::vector<ValueId> in) {
      const ValueId first = placed_part(g, {in[0]}, 0);
      return std::vector{first, placed_part(g, {in[1], first}, 64)};
    });
    test::expect_refused(placed.p.finish(), {"step 3 (%v, %w)", "but another op has its memory"});
  }
}

}  // namespace
}  // namespace sinter::in_place_test
