// Graphs that are made from others: rebuilt op by op, and copied in part.
#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/graph_copier.h"
#include "ir/graph_rewriter.h"
#include "ir/guarded.h"

namespace sinter::new_graphs_test {
namespace {

/// y = exp(x), z = log(y + w); outputs: z, y.
struct Example {
  Graph graph;
  ValueId x, w, y, z;

  Example() {
    Builder b(graph, {});
    x = b.leaf(OpKind::input, {DType::f32, {8}}, "x");
    w = b.leaf(OpKind::input, {DType::f32, {8}}, "w");
    y = b.op(OpKind::exp, {x}, {}, "y");
    z = b.op(OpKind::log, {b.reshape(b.add(y, w), {2, 4})}, {}, "z");
    graph.outputs = {z, y};
  }
};

TEST_CASE("a graph is rebuilt with other values in the place of some") {
  const Example from;
  Graph into;
  Builder b(into, {});
  GraphRewriter rewriter(from.graph, into);
  rewriter.rewrite([&](ValueId id, Op op) {
    return id == from.y ? b.op(OpKind::sqrt, op.operands, {}, op.name)
                        : rewriter.add(std::move(op));
  });
  CHECK(into.size() == from.graph.size());
  CHECK(into.inputs == from.graph.inputs);
  CHECK(into.outputs == from.graph.outputs);
  CHECK(into[rewriter[from.y]].kind == OpKind::sqrt);
  CHECK(into[rewriter[from.y]].operands[0] == rewriter[from.x]);
}

TEST_CASE("a value without a successor is no input and no output of the new graph") {
  const Example from;
  Graph into;
  GraphRewriter rewriter(from.graph, into);
  rewriter.rewrite([&](ValueId id, Op op) {
    return id == from.x || id == from.y ? rewriter.add(std::move(op)) : ValueId();
  });
  CHECK(into.size() == 2);
  CHECK(into.inputs.size() == 1);
  REQUIRE(into.outputs.size() == 1);
  CHECK(into[into.outputs[0]].name == "y");
}

/// n = -c before `next` overwrites c; y = exp(n) and z = next + 1 behind it.
struct OverwrittenState {
  Graph graph;
  Builder b{graph, {}};
  const ValueId c = b.leaf(OpKind::state, {DType::f32, {4, 8}}, "c");
  const ValueId x = b.leaf(OpKind::input, {DType::f32, {1, 8}}, "x");
  const ValueId row = b.leaf(OpKind::input, {DType::i32, {1}}, "row");
  const ValueId view = b.reshape(c, {32}, "view");
  const ValueId n = b.op(OpKind::neg, {view}, {}, "n");
  const ValueId next = b.op(OpKind::kv_append, {c, x, row}, {}, "next");
  const ValueId y = b.op(OpKind::exp, {n}, {}, "y");
  const ValueId z = b.op(OpKind::neg, {next}, {}, "z");
};

TEST_CASE("an op may read a version of a state up to the op that overwrites it") {
  const OverwrittenState from;
  Graph into;
  GraphRewriter rewriter(from.graph, into);
  for (ValueId version : {from.c, from.view}) {
    CHECK(rewriter.may_read(version, from.n));
    CHECK(rewriter.may_read(version, from.next));
    CHECK_FALSE(rewriter.may_read(version, from.y));
    CHECK_FALSE(rewriter.may_read(version));
  }
  CHECK(rewriter.may_read(from.n));
  CHECK(rewriter.may_read(from.next));
  CHECK(rewriter.may_compute(from.n, from.next));
  CHECK_FALSE(rewriter.may_compute(from.n, from.y));
  CHECK_FALSE(rewriter.may_compute(from.n));
  CHECK(rewriter.may_compute(from.y));
}

TEST_CASE("a builder says what its next op may read") {
  Graph graph;
  Builder b(graph, {});
  const ValueId c = b.leaf(OpKind::state, {DType::f32, {4, 8}}, "c");
  const ValueId x = b.leaf(OpKind::input, {DType::f32, {1, 8}}, "x");
  CHECK(b.may_read(c));
  const ValueId next =
      b.op(OpKind::kv_append, {c, x, b.leaf(OpKind::input, {DType::i32, {1}}, "row")});
  CHECK_FALSE(b.may_read(c));
  CHECK(b.may_read(next));
  CHECK(b.may_read(x));
}

TEST_CASE("an op that is added behind the op that overwrites what it reads is a broken invariant") {
  const OverwrittenState from;
  const auto reading = [&](ValueId read) {
    Graph into;
    GraphRewriter rewriter(from.graph, into);
    const InvariantsThrow throws;
    rewriter.rewrite_ops([&](ValueId id, Op op) {
      if (id == from.y) op.operands[0] = rewriter[read];
      return rewriter.add(std::move(op));
    });
  };
  CHECK_NOTHROW(reading(from.n));
  CHECK_NOTHROW(reading(from.next));
  CHECK_THROWS_AS(reading(from.c), BrokenInvariant);
  CHECK_THROWS_AS(reading(from.view), BrokenInvariant);
}

TEST_CASE("a part of a graph has all of its inputs, in their order") {
  const Example from;
  Graph into;
  GraphCopier copy(from.graph, into);
  const ValueId y = copy(from.y);
  CHECK(copy(from.y) == y);
  CHECK(into.inputs.size() == 2);
  CHECK(into.size() == 3);
}

TEST_CASE("values from outside a part become its inputs, in the order in which they are read") {
  const Example from;
  Graph into;
  GraphCopier copy(from.graph, into, [&](ValueId id) { return id == from.y; });
  const ValueId z = copy(from.z);
  CHECK(into[z].name == "z");
  REQUIRE(into.inputs.size() == 2);
  CHECK(into[into.inputs[0]].name == "y");
  CHECK(into[into.inputs[0]].kind == OpKind::input);
  CHECK(into[into.inputs[1]].name == "w");
  REQUIRE(copy.inputs().size() == 2);
  CHECK(copy.inputs()[0] == from.y);
  CHECK(copy.inputs()[1] == from.w);
}

TEST_CASE("a defined copy stands for its value") {
  const Example from;
  Graph into;
  GraphCopier copy(from.graph, into);
  copy.define(from.y, into.inputs[0]);
  copy(from.z);
  CHECK(into[ValueId{2}].operands[0] == into.inputs[0]);
}

TEST_CASE("an input is found through views") {
  Graph graph;
  Builder b(graph, {});
  b.leaf(OpKind::input, {DType::f32, {8}}, "x");
  const ValueId w = b.leaf(OpKind::input, {DType::f32, {8}}, "w");
  const ValueId view = b.reshape(w, {2, 4});
  CHECK(input_of(graph, view) == 1);
  CHECK_FALSE(input_of(graph, b.op(OpKind::exp, {view})));
  CHECK_FALSE(input_of(graph, {}));
}

}  // namespace
}  // namespace sinter::new_graphs_test
