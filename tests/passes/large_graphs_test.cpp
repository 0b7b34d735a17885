// Graphs of 40,000 ops, and a dense one of 16,000, through all passes and the fusion engine: how
// often the engine asks the judge grows with the graph and no faster.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "frontends/model/build_model.h"
#include "ir/builder.h"

namespace sinter::test::large_graphs_test {
namespace {

constexpr uint32_t kOps = 40000;
constexpr uint32_t kLatticeOps = 16000;  // whose judgements take longer, each of a wide group

// Questions to the judge for each op: every candidate once, and again when a neighbour has merged.
// The diamonds take 4.0, the model 2.2, the others 1.0 to 1.4.
constexpr int64_t kMaxQuestions = 5;

/// Runs the passes and the engine; checks the number of questions and the grouping's order.
std::vector<Fusion> fuse_all(Module module, uint32_t min_ops = kOps) {
  size_t ops = 0;
  for (const Entry& entry : module.entries) ops += entry.graph.size();
  CHECK(ops >= min_ops);
  run_passes(module);
  std::vector<Fusion> fusions;
  for (const Entry& entry : module.entries)
    fusions.push_back(fuse(entry.graph, module.symbols, *find_device("sm_90a"), {}));
  for (size_t i = 0; i < fusions.size(); ++i) {
    const Graph& graph = module.entries[i].graph;
    const Grouping& grouping = fusions[i].grouping;
    const int64_t judged = fusions[i].statistics.judged, size = graph.size();
    CAPTURE(size);
    CHECK(judged <= kMaxQuestions * size);
    bool ordered = true;
    for (uint32_t id = 0; id < graph.size(); ++id)
      for (ValueId operand : graph.ops()[id].operands) {
        const ValueId root = root_of(graph, operand);
        if (computes(graph.ops()[id]) && computes(graph[root]))
          ordered &= grouping.group_of[root.index] <= grouping.group_of[id];
      }
    CHECK(ordered);
  }
  return fusions;
}

struct GraphMaker {
  Module module;
  Graph graph;
  Builder b{graph, module.symbols};
  ValueId input(const std::string& name) {
    return b.leaf(OpKind::input, {DType::f32, {64, 256}}, name);
  }
  Module finish(llvm::ArrayRef<ValueId> outputs) {
    graph.outputs.assign(outputs.begin(), outputs.end());
    module.name = "large";
    module.entries.push_back({"f", std::move(graph)});
    return std::move(module);
  }
};

TEST_CASE("a very deep Llama") {
  ModelSpec spec;
  spec.name = "deep";
  spec.dtype = DType::f16;
  spec.vocabulary = 512, spec.hidden = 256, spec.heads = 4, spec.kv_heads = 2, spec.head_dim = 64;
  spec.ffn = 512, spec.max_positions = 1024, spec.norm = NormKind::rms_norm;
  spec.rope = Rope{.rotary = 64};
  spec.activation = OpKind::silu, spec.gated = true, spec.attention_scale = 0.125;
  spec.layers = 640;
  auto module = build_model(spec, {WeightMap::identity(), {}}, nullptr, "deep");
  REQUIRE(module);
  fuse_all(std::move(*module));
}

TEST_CASE("a chain: kernels of bounded size") {
  GraphMaker m;
  ValueId x = m.input("x");
  for (uint32_t i = 1; i < kOps; ++i) x = m.b.tanh(x);
  const auto fusions = fuse_all(m.finish({x}));
  for (const Group& group : fusions[0].grouping.groups) CHECK(group.members.size() <= 64);
}

TEST_CASE("a ladder of diamonds, one arm of each a product") {
  GraphMaker m;
  ValueId x = m.input("x");
  const ValueId w =
      m.b.op(OpKind::einsum, {x, x}, Attributes().set(AttrName::spec, std::string("nk,nm->km")));
  while (m.graph.size() < kOps) {
    const ValueId heavy =
        m.b.op(OpKind::einsum, {x, w}, Attributes().set(AttrName::spec, std::string("nk,mk->nm")));
    x = m.b.add(m.b.exp(x), m.b.tanh(heavy));
  }
  fuse_all(m.finish({x}));
}

TEST_CASE("one value with forty thousand readers") {
  GraphMaker m;
  const ValueId x = m.input("x"), top = m.b.exp(x);
  std::vector<ValueId> layer;
  while (m.graph.size() < kOps / 2) {
    const ValueId c = m.b.constant(static_cast<double>(layer.size()), DType::f32);
    layer.push_back(m.b.mul(top, c));
  }
  while (layer.size() > 1) {
    std::vector<ValueId> next;
    for (size_t i = 0; i + 1 < layer.size(); i += 2)
      next.push_back(m.b.add(layer[i], layer[i + 1]));
    if (layer.size() % 2 == 1) next.push_back(layer.back());
    layer = std::move(next);
  }
  while (m.graph.size() < kOps) layer.push_back(m.b.add(m.b.exp(layer.back()), top));
  fuse_all(m.finish({layer.back()}));
}

TEST_CASE("a lattice: every op reads two of the row above") {
  GraphMaker m;
  std::vector<ValueId> row;
  for (int i = 0; i < 200; ++i) row.push_back(m.input(fmt::format("x{}", i)));
  while (m.graph.size() < kLatticeOps) {
    std::vector<ValueId> next;
    for (size_t i = 0; i < row.size(); ++i)
      next.push_back(m.b.add(row[i], row[(i * 7 + 1) % row.size()]));
    row = std::move(next);
  }
  fuse_all(m.finish(row), kLatticeOps);
}

}  // namespace
}  // namespace sinter::test::large_graphs_test
