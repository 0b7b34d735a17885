// Generators, views, gathers, appends; empty tensors everywhere; errors.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "runtime/eval_case.h"
#include "runtime/evaluate/host_view.h"
#include "support/algorithms.h"
#include "support/custom_ops.h"

namespace sinter::host_eval_move_test {
namespace {

using V = std::vector<double>;

V counted(size_t count, double first = 0) {
  V values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<double>(i);
  return values;
}

TEST_CASE("every element type has a storage of its own, in the bytes that its row says") {
  std::set<Storage> storages = {Storage::f64};
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    CHECK(storages.insert(storage_of(info.dtype)).second);
    CHECK(whole_bytes(storage_of(info.dtype)) == whole_bytes(info.dtype));
  }
}

TEST_CASE("generators of i64 go beyond i32") {
  const HostTensor y = evaluated(
      module_of("", "%y = literal {values = [0x1p+40, -inf, inf, nan, 2.5]} : i64[5]"), {});
  const int64_t expected[] = {int64_t{1} << 40, INT64_MIN, INT64_MAX, 0, 2};
  CHECK(y.elements<int64_t>() == llvm::ArrayRef<int64_t>(expected));
  CHECK(values_of(evaluated(module_of("", "%y = constant {value = -3} : i64[2]"), {})) ==
        V{-3, -3});
}

TEST_CASE("generators") {
  CHECK(values_of(evaluated(module_of("", "%y = iota {axis = 1} : i32[2, 3]"), {})) ==
        V{0, 1, 2, 0, 1, 2});
  CHECK(values_of(evaluated(module_of("", "%y = iota {axis = 0} : i32[N, 2]"), {}, {3, 0})) ==
        V{0, 0, 1, 1, 2, 2});
  CHECK(values_of(evaluated(module_of("", "%y = constant {value = 0x1.004002p+0} : f16[2]"), {})) ==
        V{1 + 0x1p-10, 1 + 0x1p-10});  // rounded once: as a float32 it is a tie
  CHECK(values_of(evaluated(module_of("", "%y = literal {values = [0x1p-1, -inf]} : bf16[2, 1]"),
                            {})) == V{0.5, -INFINITY});
  CHECK(values_of(evaluated(module_of("", "%y = literal {values = [0x1p+0, 0x0p+0]} : i1[2]"),
                            {})) == V{1, 0});
}

TEST_CASE("views read through each other") {
  const HostTensor x = tensor(DType::f16, {2, 3, 4}, counted(24));
  const auto run = [&](std::string_view ops) {
    return values_of(evaluated(module_of("%x: f16[2, 3, 4]", ops), {x}));
  };
  CHECK(run("%y = transpose %x {axes = [2, 0, 1]} : f16[4, 2, 3]") ==
        V{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23});
  CHECK(run("%y = slice %x {axis = 1, begin = 1, size = 1} : f16[2, 1, 4]") ==
        V{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(run("%s = slice %x {axis = 2, begin = 2, size = 2} : f16[2, 3, 2]\n"
            "%t = transpose %s {axes = [1, 0, 2]} : f16[3, 2, 2]\n"
            "%y = reshape %t : f16[12]") == V{2, 3, 14, 15, 6, 7, 18, 19, 10, 11, 22, 23});
  CHECK(run("%s = slice %x {axis = 1, begin = 2, size = 1} : f16[2, 1, 4]\n"
            "%b = broadcast %s : f16[2, 2, 4]\n"
            "%y = copy %b : f16[2, 2, 4]") ==
        V{8, 9, 10, 11, 8, 9, 10, 11, 20, 21, 22, 23, 20, 21, 22, 23});
  CHECK(run("%y = concat %x, %x {axis = 1} : f16[2, 6, 4]").size() == 48);
}

TEST_CASE("concat along each axis, of views") {
  const HostTensor a = tensor(DType::i32, {2, 2}, {1, 2, 3, 4});
  const HostTensor b = tensor(DType::i32, {1, 2}, {5, 6});
  const Module rows = module_of("%a: i32[2, 2], %b: i32[1, 2]",
                                "%t = transpose %a {axes = [1, 0]} : i32[2, 2]\n"
                                "%y = concat %t, %b, %a {axis = 0} : i32[5, 2]");
  CHECK(values_of(evaluated(rows, {a, b})) == V{1, 3, 2, 4, 5, 6, 1, 2, 3, 4});
  const Module columns = module_of("%a: i32[2, 2], %b: i32[1, 2]",
                                   "%t = transpose %b {axes = [1, 0]} : i32[2, 1]\n"
                                   "%y = concat %a, %t {axis = 1} : i32[2, 3]");
  CHECK(values_of(evaluated(columns, {a, b})) == V{1, 2, 5, 3, 4, 6});
}

TEST_CASE("parts are placed along each axis, of views, before and behind one another") {
  const HostTensor a = tensor(DType::i32, {2, 2}, {1, 2, 3, 4});
  const HostTensor b = tensor(DType::i32, {1, 2}, {5, 6});
  const Module rows = module_of("%a: i32[2, 2], %b: i32[1, 2]",
                                "%t = transpose %a {axes = [1, 0]} : i32[2, 2]\n"
                                "%p = place %b {axis = 0, begin = 2, size = 3} : i32[3, 2]\n"
                                "%y = place %t, %p {axis = 0, begin = 0, size = 3} : i32[3, 2]");
  CHECK(values_of(evaluated(rows, {a, b})) == V{1, 3, 2, 4, 5, 6});
  const Module columns = module_of("%a: i32[2, 2], %b: i32[1, 2]",
                                   "%t = transpose %b {axes = [1, 0]} : i32[2, 1]\n"
                                   "%p = place %a {axis = 1, begin = 0, size = 3} : i32[2, 3]\n"
                                   "%y = place %t, %p {axis = 1, begin = 2, size = 3} : i32[2, 3]");
  CHECK(values_of(evaluated(columns, {a, b})) == V{1, 2, 5, 3, 4, 6});
}

TEST_CASE("embedding takes rows of a table, also of a transposed one") {
  const HostTensor table = tensor(DType::bf16, {3, 4}, counted(12));
  const HostTensor ids = tensor(DType::i32, {3}, {2, 0, 2});
  CHECK(values_of(
            evaluated(module_of("%t: bf16[3, 4], %i: i32[3]", "%y = embedding %t, %i : bf16[3, 4]"),
                      {table, ids})) == V{8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(values_of(evaluated(module_of("%t: bf16[3, 4], %i: i32[3]",
                                      "%r = transpose %t {axes = [1, 0]} : bf16[4, 3]\n"
                                      "%y = embedding %r, %i : bf16[3, 3]"),
                            {table, ids})) == V{2, 6, 10, 0, 4, 8, 2, 6, 10});
  const Module module =
      module_of("%t: bf16[3, 4], %i: i32[3]", "%y = embedding %t, %i : bf16[3, 4]");
  CHECK(
      eval_error(module, {table, tensor(DType::i32, {3}, {0, 3, 0})}).find("id 3 at position 1") !=
      std::string::npos);
  CHECK(eval_error(module, {table, tensor(DType::i32, {3}, {0, 1, -1})}).find("id -1") !=
        std::string::npos);
}

TEST_CASE("gather takes an element at the place along an axis that the index says") {
  const HostTensor x = tensor(DType::bf16, {2, 3, 2}, counted(12));
  const Module middle = module_of("%x: bf16[2, 3, 2], %i: i32[2, 1, 2]",
                                  "%y = gather %x, %i {axis = 1} : bf16[2, 1, 2]");
  CHECK(values_of(evaluated(middle, {x, tensor(DType::i32, {2, 1, 2}, {2, 0, 1, 1})})) ==
        V{4, 1, 8, 9});
  const Module first = module_of("%x: bf16[2, 3, 2], %i: i32[3, 3, 2]",
                                 "%y = gather %x, %i {axis = 0} : bf16[3, 3, 2]");
  V index(18, 1);
  index[0] = 0;
  CHECK(values_of(evaluated(first, {x, tensor(DType::i32, {3, 3, 2}, index)})) ==
        V{0, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11});
  // Through views, and of i64.
  const Module turned = module_of("%x: i64[3, 2], %i: i32[2, 3]",
                                  "%t = transpose %x {axes = [1, 0]} : i64[2, 3]\n"
                                  "%y = gather %t, %i {axis = 1} : i64[2, 3]");
  CHECK(values_of(evaluated(turned, {tensor(DType::i64, {3, 2}, counted(6)),
                                     tensor(DType::i32, {2, 3}, {2, 1, 0, 0, 0, 2})})) ==
        V{4, 2, 0, 1, 1, 5});
  CHECK(eval_error(middle, {x, tensor(DType::i32, {2, 1, 2}, {0, 0, 3, 0})})
            .find("index 3 at position 2 is not one of the 3 rows") != std::string::npos);
  const Module checked = module_of("%x: bf16[2, 3, 2], %i: i32[2, 1, 2]",
                                   "%y = gather %x, %i {axis = 1, checked = 1} : bf16[2, 1, 2]");
  CHECK(values_of(evaluated(checked, {x, tensor(DType::i32, {2, 1, 2}, {1, -1, 3, 0})})) ==
        V{2, 0, 0, 7});
}

TEST_CASE("kv_append gives the whole new state and leaves the old one") {
  const Module module = module_of("%v: f16[N, 2], %slot: i32[N]",
                                  "%old = copy %s : f16[4, 2]\n"
                                  "%y = kv_append %s, %v, %slot : f16[4, 2]",
                                  "%y, %old", "  state %s : f16[4, 2]");
  const HostTensor state = tensor(DType::f16, {4, 2}, counted(8));
  const HostTensor value = tensor(DType::f16, {2, 2}, {-1, -2, -3, -4});
  const auto results =
      try_evaluate(module, {value, tensor(DType::i32, {2}, {3, 1}), state}, {2, 0});
  REQUIRE(results.has_value());
  CHECK(values_of((*results)[0]) == V{0, 1, -3, -4, 4, 5, -1, -2});
  CHECK(values_of((*results)[1]) == counted(8));
  for (double slot : {-1.0, 4.0})
    CHECK(eval_error(module, {value, tensor(DType::i32, {2}, {0, slot}), state}, {2, 0})
              .find("slot") != std::string::npos);
}

TEST_CASE("store gives the value and leaves the old version") {
  const Module module = module_of("%v: f16[N, 2]",
                                  "%t = mul %s, %v : f16[N, 2]\n"
                                  "%old = copy %s : f16[N, 2]\n"
                                  "%y = store %s, %t : f16[N, 2]",
                                  "%y, %old", "  state %s : f16[N, 2]");
  const HostTensor state = tensor(DType::f16, {2, 2}, counted(4));
  const auto results =
      try_evaluate(module, {tensor(DType::f16, {2, 2}, {-1, -2, -3, -4}), state}, {2, 0});
  REQUIRE(results.has_value());
  CHECK(values_of((*results)[0]) == V{0, -2, -6, -12});
  CHECK(values_of((*results)[1]) == counted(4));
}

constexpr double kNoRows[] = {-1, 3, 4, INT32_MAX, INT32_MIN};

TEST_CASE("a checked embedding gives zeros for numbers that name no row") {
  const Module module =
      module_of("%t: bf16[3, 4], %i: i32[3]", "%y = embedding %t, %i {checked = 1} : bf16[3, 4]");
  for (double number : kNoRows)
    CHECK(values_of(evaluated(module, {tensor(DType::bf16, {3, 4}, counted(12, 1)),
                                       tensor(DType::i32, {3}, {2, number, 0})})) ==
          V{9, 10, 11, 12, 0, 0, 0, 0, 1, 2, 3, 4});
  const Module empty =
      module_of("%t: f32[M, 2], %i: i32[N]", "%y = embedding %t, %i {checked = 1} : f32[N, 2]");
  CHECK(values_of(evaluated(
            empty, {tensor(DType::f32, {0, 2}, {}), tensor(DType::i32, {2}, {0, -1})}, {2, 0})) ==
        V(4, 0));
}

TEST_CASE("a checked kv_append drops rows whose slot names none") {
  const Module module = module_of("%v: f16[N, 2], %slot: i32[N]",
                                  "%y = kv_append %s, %v, %slot {checked = 1} : f16[3, 2]", "%y",
                                  "  state %s : f16[3, 2]");
  const HostTensor state = tensor(DType::f16, {3, 2}, counted(6));
  const HostTensor value = tensor(DType::f16, {3, 2}, {-1, -2, -3, -4, -5, -6});
  for (double number : kNoRows)
    CHECK(values_of(evaluated(module, {value, tensor(DType::i32, {3}, {2, number, 0}), state},
                              {3, 0})) == V{-5, -6, 2, 3, -1, -2});
}

/// One tensor of f16 [2, 3] called "w".
class OneTensor : public TensorSource {
 public:
  std::optional<TensorType> find(std::string_view name) const override {
    if (name != "w") return std::nullopt;
    return TensorType{DType::f16, {2, 3}};
  }
  Status read(std::string_view, std::span<std::byte> out) const override {
    const HostTensor values = tensor(DType::f16, {2, 3}, counted(6));
    if (out.size() != values.bytes.size()) return fail("size");
    std::memcpy(out.data(), values.bytes.data(), out.size());
    return {};
  }
};

TEST_CASE("file tensors come from the source") {
  const auto graph = [](const TensorType& type, std::string name) {
    Module module;
    Op op{OpKind::file, type, {}, {}, "f"};
    op.attrs.set(AttrName::dims, type.dims).set(AttrName::dtype, type.dtype);
    op.attrs.set(AttrName::tensor, std::move(name));
    module.entries.push_back({"e", {}});
    Graph& graph = module.entries[0].graph;
    graph.outputs.push_back(graph.add(std::move(op)));
    return module;
  };
  const OneTensor source;
  const EvalOptions options{.source = &source};
  const Module good = graph({DType::f16, {2, 3}}, "w");
  CHECK(values_of(evaluated(good, {}, {}, options)) == counted(6));
  CHECK(eval_error(good, {}, {}).find("no files") != std::string::npos);
  CHECK(eval_error(graph({DType::f16, {2, 3}}, "v"), {}, {}, options).find("no tensor \"v\"") !=
        std::string::npos);
  CHECK(eval_error(graph({DType::f16, {3, 2}}, "w"), {}, {}, options)
            .find("is f16[2, 3], expected f16[3, 2]") != std::string::npos);
}

TEST_CASE("every op takes empty tensors") {
  // With N = 0 and M = 0; the one result is empty unless it says otherwise.
  struct Case {
    std::string_view parameters, ops;
    int64_t volume = 0;
    std::string_view states = "";
  };
  std::vector<Case> cases = {
      {"", "%y = constant {value = 0x1p+0} : f16[N, 2]"},
      {"", "%y = iota {axis = 0} : i32[N, 2]"},
      {"", "%y = literal {values = []} : f32[0, 2]"},
      {"%x: f16[N, 4]", "%y = reshape %x : f16[2, N, 2]"},
      {"%x: f16[N, 4]", "%y = transpose %x {axes = [1, 0]} : f16[4, N]"},
      {"%x: f16[N, 4]", "%y = slice %x {axis = 1, begin = 4, size = 0} : f16[N, 0]"},
      {"%x: f16[3, 4]", "%y = slice %x {axis = 1, begin = 4, size = 0} : f16[3, 0]"},
      {"%x: f16[1, 4]", "%y = broadcast %x : f16[N, 4]"},
      {"%x: f16[N, 4]", "%y = copy %x : f16[N, 4]"},
      {"%x: f16[N, 4]", "%y = concat %x, %x {axis = 1} : f16[N, 8]"},
      {"%x: f16[0, 4], %z: f16[2, 4]", "%y = concat %x, %z, %x {axis = 0} : f16[2, 4]", 8},
      {"%x: f16[3, 4], %i: i32[N]", "%y = embedding %x, %i : f16[N, 4]"},
      {"%x: f16[0, 4], %i: i32[N]", "%y = embedding %x, %i : f16[N, 4]"},
      {"%x: f16[N, 4], %i: i32[N, 2]", "%y = gather %x, %i {axis = 1} : f16[N, 2]"},
      {"%x: f16[3, 4], %i: i32[N, 4]", "%y = gather %x, %i {axis = 0} : f16[N, 4]"},
      {"%i: i32[N], %x: f16[N, 4]", "%y = scatter_add %i, %x {rows = 2} : f16[2, 4]", 8},
      {"%i: i32[N], %x: f16[N, 4]", "%y = scatter_add %i, %x {rows = M} : f16[M, 4]"},
      {"%i: i32[3], %x: f16[3, N]", "%y = scatter_add %i, %x {rows = 2} : f16[2, N]"},
      {"%p: i32[0, 48]", "%y = dequantize %p {size = 9, codes = \"int4 g16 f32\"} : f32[0, 9]"},
      {"%x: f16[N, 4]", "%y = cast %x : f32[N, 4]"},
      {"%x: i32[N, 4]", "%y = cast %x : f16[N, 4]"},
      {"%v: f16[N, 2], %i: i32[N]", "%y = kv_append %s, %v, %i : f16[4, 2]", 8,
       "state %s : f16[4, 2]"},
      {"%v: f16[N, 2], %i: i32[N]", "%y = kv_append %s, %v, %i : f16[M, 2]", 0,
       "state %s : f16[M, 2]"},
      {"%v: f16[N, 2]", "%y = store %s, %v : f16[N, 2]", 0, "state %s : f16[N, 2]"},
      {"%x: f16[N, 2]", "%y = place %x {axis = 1, begin = 0, size = 2} : f16[N, 2]"},
      {"%x: f16[2, 4], %z: f16[0, 4]",
       "%a = place %x {axis = 0, begin = 0, size = 2} : f16[2, 4]\n"
       "    %y = place %z, %a {axis = 0, begin = 2, size = 2} : f16[2, 4]",
       8},
      {"%c: i1[N, 1], %x: f16[N, 4]", "%y = where %c, %x, %x : f16[N, 4]"},
      {"%x: f16[N, 4]", "%y = reduce_sum %x {axes = [0]} : f16[1, 4]", 4},
      {"%x: f16[N, 4]", "%y = reduce_sum %x {axes = [1]} : f16[N, 1]"},
      {"%x: f16[N, 4]", "%y = reduce_max %x {axes = [0, 1]} : f16[1, 1]", 1},
      {"%x: f16[4, 0, 2]", "%y = reduce_max %x {axes = [0, 2]} : f16[1, 0, 1]"},
      {"%x: f16[N, 4], %w: f16[4]", "%y = layer_norm %x, %w {eps = 0x1p-9} : f16[N, 4]"},
      {"%x: f16[N, 4], %w: f16[4]", "%y = rms_norm %x, %w {eps = 0x1p-9} : f16[N, 4]"},
      {"%x: f16[N, 4]", "%y = softmax %x : f16[N, 4]"},
      {"%x: f16[4, N]", "%y = softmax %x : f16[4, N]"},
      {"%x: f32[2, N, M], %f: i32[N]",
       "%y = attention_softmax %x, %f, %f {dtype = f16, scale = 0x1p+0} : f16[2, N, M]"},
      {"%x: f32[M, 2, N, 8], %f: i32[M, 1, N], %m: i1[2, 1, 8]",
       "%y = attention_softmax %x, %f, %f, %m {dtype = f16, scale = 0x1p+0} : f16[M, 2, N, 8]"},
      {"%x: f16[N, 2, 4], %c: f16[N, 1]",
       "%y = rope %x, %c, %c {rotary = 2, pairing = \"half\"} : f16[N, 2, 4]"},
      {"%x: f16[N, 4], %w: f16[3, 4], %b: f16[3]", "%y = linear %x, %w, %b : f16[N, 3]"},
      {"%x: f16[2, 0], %w: f16[3, 0], %b: f16[3]", "%y = linear %x, %w, %b : f16[2, 3]", 6},
      {"%x: f16[2, 4], %w: f16[0, 4]", "%y = linear %x, %w : f16[2, 0]"},
      {"%a: f16[N, 4], %b: f16[M, 4]", "%y = einsum %a, %b {spec = \"nk,mk->nm\"} : f16[N, M]"},
      {"%a: f16[2, N], %b: f16[3, N]", "%y = einsum %a, %b {spec = \"an,bn->ab\"} : f16[2, 3]", 6},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N]",
       "%y = attention %q, %k, %k, %f, %f {heads = 2, kv_heads = 2, scale = 0x1p+0} : f16[N, 4]"},
      {"%q: f16[M, 3, 4], %k: f16[M, N, 4], %f: i32[M, 3], %m: f32[1, 2, 3, N]",
       "%y = attention %q, %k, %k, %f, %f, %m {heads = 2, kv_heads = 2, scale = 0x1p+0} : "
       "f16[M, 3, 4]"},
      {"%q: f16[2, 3, 4], %k: f16[2, N, 4], %f: i32[2, 3], %m: f16[2, 1, 3, N]",
       "%y = attention %q, %k, %k, %f, %f, %m {order = tiled_attention, heads = 2, kv_heads = 2, "
       "scale = 0x1p+0, "
       "any_range = 1} : f16[2, 3, 4]",
       24},
      {"%q: f16[N, 3, 4], %k: f16[N, M, 4], %f: i32[N, 3], %m: i1[N, 1, 3, M]",
       "%y = attention %q, %k, %k, %f, %f, %m {order = decode_attention, heads = 2, kv_heads = 2, "
       "scale = 0x1p+0, "
       "splits = 3} : f16[N, 3, 4]"},
      {"%q: f16[N, 3, 4], %k: f16[N, M, 4], %f: i32[N, 3], %m: f16[N, 1, 3, M]",
       "%y = attention %q, %k, %k, %f, %f, %m {order = tiled_attention, heads = 2, kv_heads = 2, "
       "scale = 0x1p+0} : "
       "f16[N, 3, 4]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N]",
       "%y = attention %q, %k, %k, %f, %f {order = decode_attention, heads = 2, kv_heads = 2, "
       "scale = 0x1p+0, splits "
       "= "
       "3} : f16[N, 4]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N]",
       "%y = attention %q, %k, %k, %f, %f {order = tiled_attention, heads = 2, kv_heads = 2, scale "
       "= 0x1p+0} : "
       "f16[N, "
       "4]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N]",
       "%y = attention_log_sum %q, %k, %k, %f, %f {heads = 2, kv_heads = 2, scale = 0x1p+0} : "
       "f32[2, "
       "N]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N], %s: f32[2, N]",
       "%y = attention_query_gradient %q, %k, %k, %f, %f, %q, %s, %s {heads = 2, kv_heads = 2, "
       "scale = 0x1p+0} : f16[N, 4]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N], %s: f32[2, N]",
       "%y = attention_key_gradient %q, %k, %k, %f, %f, %q, %s, %s {heads = 2, kv_heads = 2, "
       "scale = 0x1p+0} : f16[M, 4]"},
      {"%q: f16[N, 4], %k: f16[M, 4], %f: i32[N], %s: f32[2, N]",
       "%y = attention_value_gradient %q, %k, %k, %f, %f, %q, %s, %s {heads = 2, kv_heads = 2, "
       "scale = 0x1p+0} : f16[M, 4]"},
      {"%m: f16[2, N, M]", "%y = mask_tiles %m {tile_tokens = 128, tile_keys = 64} : i1[2, 32, 64]",
       4096},
      {"%q: f32[N, 4], %k: f32[M, 4], %f: i32[N]",
       "%y = attention %q, %k, %k, %f, %f {order = float_attention, heads = 2, kv_heads = 2, scale "
       "= 0x1p+0} : "
       "f32[N, 4]"},
      {"%x: f16[N, 8], %w: f16[3, 8]", "%y = linear %x, %w {order = tiled_linear} : f16[N, 3]"},
      {"%x: f16[N, 8], %w: f16[2, 3, 8], %e: i32[2]", "%y = grouped_linear %x, %w, %e : f16[N, 3]"},
      {"%x: f16[N, 8], %w: f16[N, 16], %e: i32[2]", "%y = grouped_outer %x, %w, %e : f16[2, 8, 16]",
       256},
      {"%x: f16[N, 2, 8], %w: f16[N, 2]", "%y = expert_sum %x, %w : f16[N, 8]"},
      {"%x: f16[N, 8]", "%y = top_k %x {count = 3} : i32[N, 3]"},
      {"%x: f16[N, 8], %w: f16[2, 3, 8], %e: i32[N, 2]",
       "%y = expert_linear %x, %w, %e : f16[N, 2, 3]"},
      {"%x: f16[N, 2, 8], %w: f16[2, 3, 8], %e: i32[2]",
       "%y = grouped_linear %x, %w, %e : f16[N, 2, 3]"},
      {"%e: i32[N, 2]", "%y = sorted_positions %e {count = 3} : i32[N, 2]"},
      {"%e: i32[N, 2]", "%y = sorted_places %e {count = 3} : i32[N, 2]"},
      {"%e: i32[N, 2]", "%y = run_ends %e {count = 3} : i32[3]", 3},
      {"%x: f16[N, 8], %w: i32[2, 3, 68], %e: i32[N, 2]",
       "%y = expert_linear %x, %w, %e {size = 8, codes = \"int8 row f32\"} : f16[N, 2, 3]"},
      {"%x: f16[N, 8], %w: i32[3, 68]",
       "%y = quantized_linear %x, %w {size = 8, codes = \"int8 row f32\", order = tiled_codes} : "
       "f16[N, 3]"},
      {"%x: f16[N, 4], %t: f32[N], %i: i32[N]", "%y = sample %x, %t, %i, %t, %i, %i : i32[N]"},
      {"%x: f16[N, 4]", "%y = cumulative_sum %x {axis = 1} : f16[N, 4]"},
      {"%x: f16[N, 4]", "%y = all_reduce %x {group = \"tp\"} : f16[N, 4]"},
      {"%x: f16[N, 4], %w: f16[4]",
       "%y = custom %x, %w {op = \"test.rms_norm\", numbers = [0x1p-9]} : f16[N, 4]"},
  };
  test::register_custom_ops();
  // Texts of the elementwise ops and activations, which have no attributes.
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&](OpKind kind, std::string_view in, std::string_view out, int operands) {
    texts.emplace_back(fmt::format("%a: {0}[N, 3], %b: {0}[1, 3]", in),
                       fmt::format("%y = {} %a{} : {}[N, 3]", op_info(kind).name,
                                   operands == 2 ? ", %b" : "", out));
  };
  const auto of_domain = [](OpInfo::Domain domain) {
    return domain == OpInfo::Domain::truth     ? "i1"
           : domain == OpInfo::Domain::integer ? "i64"
                                               : "f16";
  };
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...)                                   \
  add(OpKind::name, of_domain(OpInfo::Domain::domain),                                            \
      OpInfo::Result::result == OpInfo::Result::truth ? "i1" : of_domain(OpInfo::Domain::domain), \
      operands);
#include "ir/ops.def"
  for (OpKind kind :
       {OpKind::silu, OpKind::gelu, OpKind::gelu_tanh, OpKind::quick_gelu, OpKind::relu})
    add(kind, "f16", "f16", 1);
  for (const auto& [parameters, ops] : texts) cases.push_back({parameters, ops});

  std::set<test::Algorithm> seen;
  for (const Case& test : cases) {
    CAPTURE(test.ops);
    const Module module = module_of(test.parameters, test.ops, "%y", test.states);
    const Graph& graph = module.entries[0].graph;
    for (const Op& op : graph.ops()) seen.insert(test::algorithm_of(op));
    std::vector<HostTensor> inputs;
    for (ValueId id : graph.inputs) {
      std::vector<int64_t> dims;
      for (Dim dim : graph[id].type.dims) dims.push_back(dim.is_constant() ? dim.constant() : 0);
      inputs.push_back(random_tensor(graph[id].type.dtype, dims, 0, 2, 1));
    }
    for (bool precise : {false, true})
      CHECK(evaluated(module, inputs, {0, 0}, {.precise = precise}).volume() == test.volume);
  }
  for (const test::Algorithm& algorithm : test::all_algorithms())
    if (algorithm.op_class() != OpClass::leaf && algorithm.kind != OpKind::file &&
        algorithm.kind != OpKind::pack_codes &&
        algorithm.kind != OpKind::run_sums &&  // which has rows and columns always
        (algorithm.kind != OpKind::quantized_linear || algorithm.order) &&  // as gemv
        algorithm.order != Order::gemv)  // which has tokens and rows always
      CHECK_MESSAGE(seen.contains(algorithm), algorithm.name());
}

TEST_CASE("what does not fit the graph is an error") {
  const Module module = module_of("%x: f16[N, 2]", "%y = neg %x : f16[N, 2]");
  const HostTensor x = tensor(DType::f16, {3, 2}, counted(6));
  CHECK(eval_error(module, {}, {3, 0}).find("0 tensors for 1 inputs") != std::string::npos);
  CHECK(eval_error(module, {x}, {4, 0}) == "%x: input 0 is f16[3, 2], expected f16[4, 2]");
  CHECK(eval_error(module, {tensor(DType::f32, {3, 2}, counted(6))}, {3, 0}).find("f32[3, 2]") !=
        std::string::npos);
  CHECK(eval_error(module, {x}, {3}).find("1 values for 2 symbols") != std::string::npos);
  CHECK(eval_error(module, {x}, {5000, 0}).find("N is 5000") != std::string::npos);
  // Precise evaluation also takes the float32 results of another one.
  CHECK(values_of(evaluated(module, {tensor(DType::f32, {3, 2}, counted(6))}, {3, 0},
                            {.precise = true}))[5] == -5);
  Module unbound = module;
  unbound.entries[0].graph.inputs.clear();
  CHECK(eval_error(unbound, {}, {3, 0}).find("not among the graph's inputs") != std::string::npos);
}

}  // namespace
}  // namespace sinter::host_eval_move_test
