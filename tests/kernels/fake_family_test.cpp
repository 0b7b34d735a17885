// The judge's use of a family's record, with a family that no kernel of the project has: ports of
// kind `tile`, a result that is read by rows, and companions.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "passes/fusion/fusion.h"
#include "support/algorithms.h"
#include "support/result.h"

namespace sinter::fake_family_test {
namespace {

constexpr OpKind kAnchors[] = {OpKind::attention};
constexpr Order kOrders[] = {Order::decode_attention};

/// A row of q is a head of a token: two axes number the rows.
Ports tile_ports(const Graph& graph, const Op& op) {
  const Dims& q = graph[op.operands[0]].type.dims;
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads);
  return {.operands = {{.port = Port::tile,
                        .row_axes = 2,
                        .walked = {q[0], heads, q[1].constant() / heads}}},
          .result = {.port = Port::row},
          .max_blocks = heads};
}

const KernelFamily& known(std::string_view name) {
  return **llvm::find_if(kernel_families(),
                         [&](const KernelFamily* family) { return family->name == name; });
}

KernelFamily fake_family() {
  const KernelFamily& model = known("decode_attention");
  return {.name = "fake",
          .kind = KernelFamily::Kind::anchored,
          .anchors = kAnchors,
          .orders = kOrders,
          .make = model.make,
          .cost = model.cost,
          .is_companion = [](const Op&, const Op&) { return true; },
          .ports = tile_ports};
}

/// A module's first entry, fused where `family` makes the kernels of its anchors.
struct Fused {
  Module module;
  std::vector<const KernelFamily*> families;
  Fusion fusion;

  Fused(std::string_view results, std::string_view text, const KernelFamily& family)
      : module(value(parse_module(fmt::format(kModule, results, text), "test"))) {
    families = {&family};
    llvm::append_range(families, kernel_families());
    fusion =
        fuse(module.entries[0].graph, module.symbols, value(find_device("sm_90a")), {}, families);
  }

  Verdict why(std::string_view a, std::string_view b) const {
    const Graph& graph = module.entries[0].graph;
    return fusion.why(graph.find(std::string(a)), graph.find(std::string(b)));
  }
  std::string_view reason(std::string_view a, std::string_view b) const {
    return reason_id(why(a, b).reason);
  }

  static constexpr const char* kModule = R"(module @m {{
  state %keys : f16[64, 128]
  state %values : f16[64, 128]
  entry @main(%x : f16[4, 8, 64], %y : f16[4, 512], %w : f16[64], %v : f16[512],
              %first : i32[4], %last : i32[4]) -> ({}) {{
{}
  }}
}}
)";
};

constexpr const char* kHeads =
    "{order = decode_attention, heads = 8, kv_heads = 2, scale = 0x1p-3, splits = 1}";

TEST_CASE("a tile's rows are normalized where the family reads them, the result's rows after") {
  const KernelFamily fake = fake_family();
  const Fused fused("%s",
                    fmt::format(R"(    %n = rms_norm %x, %w {{eps = 0x1p-20}} : f16[4, 8, 64]
    %q = reshape %n {{dims = [4, 512]}} : f16[4, 512]
    %a = attention %q, %keys, %values, %first, %last {} : f16[4, 512]
    %r = add %a, %y : f16[4, 512]
    %s = rms_norm %r, %v {{eps = 0x1p-20}} : f16[4, 512]
)",
                                kHeads),
                    fake);
  CHECK(fused.reason("n", "a") == "fused");
  CHECK(fused.reason("a", "r") == "fused");
  CHECK(fused.reason("r", "s") == "fused");
}

TEST_CASE("rows that are no rows of the tile stay apart") {
  const KernelFamily fake = fake_family();
  // A row of 512 elements is eight rows of the tile.
  const Fused fused("%a",
                    fmt::format(R"(    %q = rms_norm %y, %v {{eps = 0x1p-20}} : f16[4, 512]
    %a = attention %q, %keys, %values, %first, %last {} : f16[4, 512]
)",
                                kHeads),
                    fake);
  CHECK(fused.reason("q", "a") == "space.prefix");
}

TEST_CASE("elements of another row of the tile stay apart") {
  const KernelFamily fake = fake_family();
  const Fused fused("%a",
                    fmt::format(R"(    %e = exp %x : f16[4, 8, 64]
    %t = transpose %e {{axes = [1, 0, 2]}} : f16[8, 4, 64]
    %q = reshape %t {{dims = [4, 512]}} : f16[4, 512]
    %a = attention %q, %keys, %values, %first, %last {} : f16[4, 512]
)",
                                kHeads),
                    fake);
  CHECK(fused.why("e", "a").reason != Reason::fused);
}

TEST_CASE("an element port takes what is computed element by element, and no rows") {
  KernelFamily fake = fake_family();
  fake.ports = [](const Graph& graph, const Op& op) {
    Ports ports = tile_ports(graph, op);
    ports.operands[0].port = Port::element;
    return ports;
  };
  const Fused fused("%a",
                    fmt::format(R"(    %n = rms_norm %x, %w {{eps = 0x1p-20}} : f16[4, 8, 64]
    %e = exp %n : f16[4, 8, 64]
    %q = reshape %e {{dims = [4, 512]}} : f16[4, 512]
    %a = attention %q, %keys, %values, %first, %last {} : f16[4, 512]
)",
                                kHeads),
                    fake);
  CHECK(fused.reason("n", "a") != "fused");
}

TEST_CASE("companions share a kernel if their operands are the anchor's") {
  const KernelFamily fake = fake_family();
  const std::string text = fmt::format(R"(    %e = exp %y : f16[4, 512]
    %a = attention %e, %keys, %values, %first, %last {} : f16[4, 512]
    %b = attention %e, %keys, %values, %first, %last {{heads = 8, kv_heads = 2, scale = 0x1p-3}} : f16[4, 512]
    %c = attention %y, %keys, %values, %first, %last {{heads = 8, kv_heads = 2, scale = 0x1p-3}} : f16[4, 512]
)",
                                       kHeads);
  const Fused fused("%a, %b, %c", text, fake);
  CHECK(fused.reason("a", "b") == "fused");
  CHECK(fused.reason("a", "c") == "anchor.second");
  // Without the word of the family they are two anchors.
  KernelFamily alone = fake;
  alone.is_companion = nullptr;
  CHECK(Fused("%a, %b, %c", text, alone).reason("a", "b") == "anchor.second");
}

TEST_CASE("a closed family's ops stay alone") {
  KernelFamily fake = fake_family();
  fake.ports = nullptr;
  const Fused fused("%a",
                    fmt::format(R"(    %q = exp %y : f16[4, 512]
    %a = attention %q, %keys, %values, %first, %last {} : f16[4, 512]
)",
                                kHeads),
                    fake);
  CHECK(fused.reason("q", "a") == "port.closed");
}

TEST_CASE("a side result joins the kernel that stores it if nothing else reads the value") {
  KernelFamily fake = fake_family();
  fake.ports = nullptr;
  fake.side_result = [](const Graph&, const Op&, SideKind kind) {
    return kind == SideKind::placed_value ? std::optional(SideResult{}) : std::nullopt;
  };
  const std::string text =
      fmt::format(R"(    %a = attention %y, %keys, %values, %first, %last {} : f16[4, 512]
    %h = reshape %a {{dims = [4, 8, 64]}} : f16[4, 8, 64]
    %c = copy %h : f16[4, 8, 64]
)",
                  kHeads);
  const std::string other = "    %e = exp %a : f16[4, 512]\n";
  CHECK(Fused("%c", text, fake).reason("a", "c") == "fused");
  CHECK(Fused("%c, %e", text + other, fake).reason("a", "c") == "port.closed");
  CHECK(Fused("%c, %a", text, fake).reason("a", "c") == "port.closed");
  // Without the word of the family the value goes through memory.
  fake.side_result = nullptr;
  CHECK(Fused("%c", text, fake).reason("a", "c") == "port.closed");
}

TEST_CASE("the registry gives every anchor one family, in the order of choice") {
  std::vector<std::string_view> names;
  for (const KernelFamily* family : kernel_families()) names.push_back(family->name);
  CHECK(names == std::vector<std::string_view>{"decode_attention",
                                               "tiled_attention",
                                               "attention_backward",
                                               "float_attention",
                                               "mask_tiles",
                                               "tiled_linear",
                                               "gemv",
                                               "tiled_codes",
                                               "dequantize",
                                               "sample",
                                               "scan",
                                               "scatter",
                                               "top_k",
                                               "experts",
                                               "sorted_rows",
                                               "collective",
                                               "custom",
                                               "gemm",
                                               "column",
                                               "run_sums",
                                               "row",
                                               "pointwise"});
  for (const test::Algorithm& algorithm : test::all_algorithms()) {
    Op op{algorithm.kind, {}, {}, {}, {}};
    if (algorithm.order) op.attrs.set(AttrName::order, *algorithm.order);
    const auto claimed = llvm::count_if(
        kernel_families(), [&](const KernelFamily* family) { return family->computes(op); });
    CAPTURE(algorithm.name());
    const OpClass c = algorithm.op_class();
    CHECK(claimed == (c == OpClass::anchor || c == OpClass::contraction ? 1 : 0));
  }
}

}  // namespace
}  // namespace sinter::fake_family_test
