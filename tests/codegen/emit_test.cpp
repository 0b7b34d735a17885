// Kernel text: a few kernels in full (SINTER_BLESS=1 rewrites the expectations), what reaches the
// text and what does not, and what is refused.
#include "codegen/lowering/emit.h"

#include <doctest/doctest.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>

#include "codegen/groups.h"
#include "codegen/scan_groups.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::emit_test {
namespace {

Result<Kernel> emit(const Graph& group, uint32_t prefix_rank) {
  return emit_kernel(group, prefix_rank, group_symbols(), *find_device("sm_90a"));
}

Kernel emit(const GroupText& text, DType dtype = DType::f32, int64_t width = 64) {
  return value(emit_kernel(make_group(text, dtype, width), text.parts(), group_symbols(),
                           *find_device("sm_90a")));
}

Kernel emit_in_place(const GroupText& text, InPlace pair) {
  return value(emit_kernel(make_group(text, DType::f32, 64), text.parts(), group_symbols(),
                           *find_device("sm_90a"), {}, {}, pair));
}

/// A kernel that overlaps others waits for them, and reads nothing that may be read before.
void check_wait(const Kernel& kernel) {
  CAPTURE(kernel.name);
  CHECK((kernel.source.find("griddepcontrol_wait();") != std::string::npos) ==
        kernel.overlap.waits);
  CHECK((kernel.source.find("__restrict__") == std::string::npos) == kernel.overlap.waits);
}

void check_text(const std::string& file, const Kernel& kernel) {
  check_wait(kernel);
  test::check_text_file(kernel.source, "codegen/kernels/" + file, "emit");
}

const GroupText kAddRmsNorm = {"add_rms_norm", 1, R"(
graph(%x: DTYPE[N, WIDTH], %r: DTYPE[N, WIDTH], %w: DTYPE[WIDTH]) -> (%s, %y) {
  %s = add %x, %r : DTYPE[N, WIDTH]
  %y = rms_norm %s, %w {eps = 1e-5} : DTYPE[N, WIDTH]
})"};

const GroupText kSoftmax = {"softmax", 2, R"(
graph(%x: f32[N, 16, K]) -> (%y) {
  %y = softmax %x : f32[N, 16, K]
})"};

const GroupText kRopeAppend = {"rope_append", 1, R"(
graph(%qk: bf16[N, 5120], %c: bf16[N, 64], %s: bf16[N, 64], %kc: bf16[512, 1024], %slot: i32[N]) -> (%y, %a) {
  %q = slice %qk {axis = 1, begin = 0, size = 4096} : bf16[N, 4096]
  %k = slice %qk {axis = 1, begin = 4096, size = 1024} : bf16[N, 1024]
  %qh = reshape %q {dims = [N, 32, 128]} : bf16[N, 32, 128]
  %kh = reshape %k {dims = [N, 8, 128]} : bf16[N, 8, 128]
  %y = rope %qh, %c, %s {rotary = 128, pairing = "half"} : bf16[N, 32, 128]
  %z = rope %kh, %c, %s {rotary = 128, pairing = "half"} : bf16[N, 8, 128]
  %zr = reshape %z {dims = [N, 1024]} : bf16[N, 1024]
  %a = kv_append %kc, %zr, %slot : bf16[512, 1024]
})"};

// Chunks of eight elements that hold rotated pairs and the rest.
const GroupText kPartialRope = {"partial_rope", 1, R"(
graph(%qkv: f16[N, 7680], %c: f16[N, 10], %s: f16[N, 10]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 0, size = 2560} : f16[N, 2560]
  %qh = reshape %q {dims = [N, 32, 80]} : f16[N, 32, 80]
  %y = rope %qh, %c, %s {rotary = 20, pairing = "half"} : f16[N, 32, 80]
})"};

const GroupText kGelu = {"gelu", 1, R"(
graph(%x: f16[N, 3072], %b: f16[3072]) -> (%y) {
  %s = add %x, %b : f16[N, 3072]
  %w = cast %s {dtype = f32} : f32[N, 3072]
  %c = constant {value = 0.70710678118654752} : f32[]
  %half = constant {value = 0.5} : f32[]
  %one = constant {value = 1.0} : f32[]
  %v = mul %w, %c : f32[N, 3072]
  %e = erf %v : f32[N, 3072]
  %t = add %one, %e : f32[N, 3072]
  %h = mul %half, %w : f32[N, 3072]
  %p = mul %h, %t : f32[N, 3072]
  %y = cast %p {dtype = f16} : f16[N, 3072]
})"};

const GroupText kEmbeddingLayerNorm = {"embedding_layer_norm", 1, R"(
graph(%t: f16[50257, 1600], %p: f16[1024, 1600], %ids: i32[N], %pos: i32[N], %w: f16[1600], %b: f16[1600]) -> (%x, %y) {
  %e = embedding %t, %ids : f16[N, 1600]
  %q = embedding %p, %pos : f16[N, 1600]
  %x = add %e, %q : f16[N, 1600]
  %y = layer_norm %x, %w, %b {eps = 1e-5} : f16[N, 1600]
})"};

const GroupText kDecodeAttention = {"decode_attention", 0, R"(
graph(%qkv: bf16[N, 3072], %k: bf16[K, 512], %v: bf16[K, 512], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 0, size = 2048} : bf16[N, 2048]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 32, kv_heads = 8, scale = 0.125, splits = 8} : bf16[N, 2048]
})"};

const GroupText kGemv = {"rms_norm_gemv_silu_mul", 1, R"(
graph(%x: bf16[B, 4096], %n: bf16[4096], %w: bf16[22016, 4096]) -> (%y) {
  %h = rms_norm %x, %n {eps = 1e-5} : bf16[B, 4096]
  %p = linear %h, %w {order = gemv, splits = 1} : bf16[B, 22016]
  %g = slice %p {axis = 1, begin = 0, size = 11008} : bf16[B, 11008]
  %u = slice %p {axis = 1, begin = 11008, size = 11008} : bf16[B, 11008]
  %s = silu %g : bf16[B, 11008]
  %y = mul %s, %u : bf16[B, 11008]
})"};

// The gradients of a norm's weight and bias: sums over tokens.
const GroupText kNormGradients = {"norm_gradients", 0, R"(
graph(%dy: bf16[16384, 4096], %x: bf16[16384, 4096], %mean: bf16[16384, 1], %weight: bf16[4096]) -> (%weight_gradient, %bias_gradient) {
  %centered = sub %x, %mean : bf16[16384, 4096]
  %p = mul %dy, %centered : bf16[16384, 4096]
  %sum = reduce_sum %p {axes = [0]} : bf16[1, 4096]
  %weight_gradient = mul %sum, %weight : bf16[1, 4096]
  %s = reduce_sum %dy {axes = [0]} : bf16[1, 4096]
  %bias_gradient = reshape %s {dims = [4096]} : bf16[4096]
})"};

}  // namespace

TEST_CASE("constants of i64 and i32 are exact in the text") {
  const auto text_of = [](DType dtype, std::string_view number) {
    const std::string graph = fmt::format(R"(
graph(%x: {0}[N, 8]) -> (%y) {{
  %c = constant {{value = {1}}} : {0}[]
  %y = add %x, %c : {0}[N, 8]
}})",
                                          to_string(dtype), number);
    return emit(GroupText{"constant", 0, graph.c_str()}).source;
  };
  const auto has = [&](DType dtype, std::string_view number, std::string_view code) {
    CAPTURE(code);
    CHECK(text_of(dtype, number).find(code) != std::string::npos);
  };
  has(DType::i64, "9007199254740993", " 9007199254740993ll)");
  has(DType::i64, "9007199254740992", " 9007199254740992ll)");
  has(DType::i64, "-9007199254740993", " (-9007199254740993ll))");
  has(DType::i64, "4611686018427387905", " 4611686018427387905ll)");
  has(DType::i64, "9223372036854775807", " 9223372036854775807ll)");
  has(DType::i64, "-9223372036854775807", " (-9223372036854775807ll))");
  has(DType::i64, "-9223372036854775808", " (-9223372036854775807ll - 1))");
  has(DType::i32, "2147483647", " 2147483647)");
  has(DType::i32, "-2147483648", " (-2147483647 - 1))");
  has(DType::i32, "-9007199254740993", " (-2147483647 - 1))");
  has(DType::f32, "1152921573326323713", " 0x1.000002p+60f)");
}

TEST_CASE("kernels in full") {
  check_text("add_rms_norm.cu", emit(kAddRmsNorm, DType::f16, 4096));
  check_text("add_rms_norm_looped.cu", emit(kAddRmsNorm, DType::f32, 131072));
  check_text("softmax.cu", emit(kSoftmax));
  check_text("softmax_in_clusters.cu", emit(kRowGroups[1], DType::f16, 32768));
  check_text("rope_append.cu", emit(kRopeAppend));
  check_text("partial_rope.cu", emit(kPartialRope));
  check_text("gelu.cu", emit(kGelu));
  check_text("gelu_in_place.cu", emit_in_place(kGelu, {0, 0}));
  check_text("norms_side_by_side.cu", emit(kPartGroups[0], DType::f16, 128));
  check_text("embedding_layer_norm.cu", emit(kEmbeddingLayerNorm));
  check_text("decode_attention.cu", emit(kDecodeAttention));
  check_text("rms_norm_gemv_silu_mul.cu", emit(kGemv));
  check_text("sample.cu", emit(kSampleGroup, DType::bf16, 32000));
  check_text("cumulative_sum_of_rows.cu", emit(scan_group("N, 4096", 1, 0).view(), DType::bf16));
  check_text("cumulative_sum_of_one_row.cu", emit(scan_group("1, 1048576", 1, 0).view()));
  check_text("cumulative_sum_of_columns.cu", emit(scan_group("N, 24", 0, 3).view(), DType::f16));
  check_text("norm_gradients.cu", emit(kNormGradients));
}

TEST_CASE("values of 16 bits are compared and rounded in pairs") {
  const auto group = [](llvm::ArrayRef<GroupText> groups, std::string_view name) {
    return *llvm::find_if(groups, [&](const GroupText& one) { return one.name == name; });
  };
  const auto has = [](const Kernel& kernel, std::string_view text) {
    return kernel.source.find(text) != std::string::npos;
  };
  const GroupText loss = group(kRowGroups, "loss_of_labels");
  CHECK(has(emit(loss, DType::bf16), "PairsOfMax"));
  for (DType dtype : {DType::f16, DType::f32}) CHECK_FALSE(has(emit(loss, dtype), "PairsOfMax"));
  const GroupText sums = group(kColumnGroups, "stored_and_summed");
  for (DType dtype : {DType::f16, DType::bf16}) {
    const Kernel kernel = emit(sums, dtype);
    CHECK(has(kernel, "pack_pair"));
    CHECK(has(kernel, "lane0.take_pair"));
    CHECK(has(kernel, "lane1.take_pair"));
  }
}

TEST_CASE("most chunks of a long row have no condition on its label") {
  const auto of_width = [](int64_t width) {
    return emit(GroupText{"at_label", 1, R"(
graph(%x: f32[N, WIDTH], %label: i32[N, 1], %g: f32[N, 1]) -> (%y) {
  %i = iota {axis = 0} : i32[WIDTH]
  %at = equal %i, %label : i1[N, WIDTH]
  %zero = constant {value = 0} : f32[]
  %chosen = where %at, %g, %zero : f32[N, WIDTH]
  %sum = reduce_sum %x {axes = [1]} : f32[N, 1]
  %d = sub %x, %sum : f32[N, WIDTH]
  %y = add %chosen, %d : f32[N, WIDTH]
})"},
                DType::f32, width)
        .source;
  };
  CHECK(of_width(4096).find("= false;") != std::string::npos);
  CHECK(of_width(512).find("= false;") == std::string::npos);
}

TEST_CASE("blocks of a cluster prefetch later rows where these are contiguous in memory") {
  const auto prefetches = [](const char* text, int64_t width) {
    const Kernel kernel = emit(GroupText{"rows", 1, text}, DType::bf16, width);
    CHECK(kernel.launch.cluster == 2);
    const llvm::StringRef source = kernel.source;
    return source.count("prefetch_part<") + source.count("prefetch_row<");
  };
  const char* const softmax = kRowGroups[1].text;
  CHECK(prefetches(softmax, 32768) == 1);
  CHECK(prefetches(softmax, 20000) == 1);
  CHECK(prefetches(softmax, 20008) == 1);           // half a row is no multiple of 16 bytes
  CHECK(prefetches(softmax, 20004) == 0);           // nor is a row
  CHECK(prefetches(kAddRmsNorm.text, 32768) == 0);  // two results
  CHECK(prefetches(R"(
graph(%x: DTYPE[N, HALF, 2], %m: DTYPE[WIDTH], %c: DTYPE[N, 1]) -> (%y) {
  %r = reshape %x {dims = [N, WIDTH]} : DTYPE[N, WIDTH]
  %s = add %r, %m : DTYPE[N, WIDTH]
  %t = add %s, %c : DTYPE[N, WIDTH]
  %y = softmax %t : DTYPE[N, WIDTH]
})",
                   32768) == 1);  // %x
  CHECK(prefetches(R"(
graph(%a: DTYPE[64, WIDTH], %b: DTYPE[1024, WIDTH], %x: DTYPE[1088, WIDTH]) -> (%y) {
  %c = concat %a, %b {axis = 0} : DTYPE[1088, WIDTH]
  %s = add %c, %x : DTYPE[1088, WIDTH]
  %y = softmax %s : DTYPE[1088, WIDTH]
})",
                   32768) == 1);  // %x, not %a, whose rows are the first 64
  CHECK(prefetches(R"(
graph(%x: DTYPE[N, WIDTH], %z: DTYPE[N, HALF]) -> (%y) {
  %h = slice %x {axis = 1, begin = 0, size = HALF} : DTYPE[N, HALF]
  %c = concat %h, %z {axis = 1} : DTYPE[N, WIDTH]
  %y = softmax %c : DTYPE[N, WIDTH]
})",
                   32768) == 0);  // of %x one half is read
  CHECK(prefetches(R"(
graph(%x: DTYPE[N, 40000]) -> (%y) {
  %s = slice %x {axis = 1, begin = 0, size = WIDTH} : DTYPE[N, WIDTH]
  %y = softmax %s : DTYPE[N, WIDTH]
})",
                   32768) == 0);
  CHECK(prefetches(R"(
graph(%x: DTYPE[N, 2, HALF]) -> (%y) {
  %t = transpose %x {axes = [0, 2, 1]} : DTYPE[N, HALF, 2]
  %r = reshape %t {dims = [N, WIDTH]} : DTYPE[N, WIDTH]
  %y = softmax %r : DTYPE[N, WIDTH]
})",
                   32768) == 0);
}

TEST_CASE("the oldest device that a plan names for clusters is the first that has them") {
  const auto has_clusters = [](uint32_t arch) {
    return capabilities_of(fmt::format("sm_{}", arch)).clusters;
  };
  CHECK(has_clusters(kFirstArchWithClusters));
  for (uint32_t arch = 0; arch < kFirstArchWithClusters; ++arch) CHECK_FALSE(has_clusters(arch));
}

TEST_CASE("attention's blocks: clusters of its splits, from many heads on none") {
  const Graph group = make_group(kDecodeAttention, DType::bf16, 64);
  const auto emit_on = [&](const DeviceDescription& device) {
    const auto kernel = emit_kernel(group, kDecodeAttention.parts(), group_symbols(), device);
    REQUIRE(kernel.has_value());
    return *kernel;
  };
  const Kernel kernel = emit_on(*find_device("sm_90a"));
  CHECK(kernel.minimum_arch == 90);
  CHECK(kernel.launch.items_per_row == 16);  // of 32 heads two at a time
  CHECK(kernel.launch.cluster == 8);
  CHECK(kernel.launch.items_without_clusters == 34);
  DeviceDescription small = *find_device("sm_90a");
  small.multiprocessors = 16;
  CHECK(emit_on(small).launch.items_without_clusters == 5);
  const Kernel old = emit_on(*find_device("sm_80"));
  CHECK(old.minimum_arch == 70);
  CHECK(old.launch.items_per_row == 16);
  CHECK(old.launch.cluster == 1);
  CHECK(old.launch.items_without_clusters == 0);
}

TEST_CASE("equal groups give equal kernels, whatever their values are called") {
  const std::string hostile = "x\n}; __global__ void evil() {} /* \\ */ // \"%s\" ?\?/";
  for (const std::vector<GroupText>* list :
       {&kRowGroups, &kFixedGroups, &kPartGroups, &kClosedGroups, &kGemvGroups, &kColumnGroups,
        &kScanViews})
    for (const GroupText& text : *list) {
      const Kernel kernel = emit(text, DType::bf16);
      Graph renamed = make_group(text, DType::bf16, 64);
      for (size_t i = 0; i < renamed.size(); ++i)
        renamed.mutable_ops()[i].name = hostile + std::to_string(i);
      std::vector<Symbol> symbols = group_symbols();
      for (Symbol& symbol : symbols) symbol.name += hostile;
      const auto again = emit_kernel(renamed, text.parts(), symbols, *find_device("sm_90a"));
      REQUIRE(again.has_value());
      CHECK(again->source == kernel.source);
      CHECK(again->name == kernel.name);
      CHECK(again->source.find("evil") == std::string::npos);
      CHECK(llvm::all_of(again->group.ops(), [](const Op& op) { return op.name.size() < 8; }));
      CHECK(llvm::all_of(kernel.name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      }));
      CHECK(kernel.source.find(kernel.name + "(") != std::string::npos);
    }
}

TEST_CASE("different schedules of one group are different kernels") {
  const Graph group = make_group(kAddRmsNorm, DType::f32, 4096);
  DeviceDescription small = *find_device("sm_90a");
  small.registers_per_block = 0;
  const auto looped = emit_kernel(group, 1, group_symbols(), small);
  REQUIRE(looped.has_value());
  CHECK(looped->name != emit(kAddRmsNorm, DType::f32, 4096).name);
}

TEST_CASE("a pattern in primitives gives the body of its composite") {
  const GroupText composite = {"gelu", 1, R"(
graph(%x: f16[N, 3072], %b: f16[3072]) -> (%y) {
  %s = add %x, %b : f16[N, 3072]
  %y = gelu %s : f16[N, 3072]
})"};
  const auto body = [](const Kernel& kernel) {
    return kernel.source.substr(kernel.source.find("(const f16*"));
  };
  CHECK(body(emit(kGelu)) == body(emit(composite)));
}

TEST_CASE("launches cover the rows, and nothing is launched for none") {
  const Kernel rows = emit(kAddRmsNorm, DType::f16, 64);  // 8 threads a row
  CHECK(rows.launch.rows == SymExpr(Dim(SymbolId{0})));
  CHECK(rows.launch.threads == 256);
  CHECK(rows.launch.items_per_block == 32);
  const Kernel elements = emit(kGelu);
  CHECK(elements.launch.rows == SymExpr(1));
  CHECK(elements.launch.symbolic_items == SymExpr(Dim(SymbolId{0})) * SymExpr(3072));
  CHECK(elements.launch.items_per_block == 2 * 256 * 8);  // two chunks a thread: erf of f16
  const Kernel wide = emit(GroupText{"tanh", 1, R"(
graph(%x: f32[100, 512]) -> (%y) {
  %y = tanh %x : f32[100, 512]
})"});
  CHECK(wide.launch.items_per_row == 100 * 512 / 8);
  CHECK(wide.launch.items_per_block == 256);
  const Kernel long_function = emit(GroupText{"cos", 1, R"(
graph(%x: f32[100, 512]) -> (%y) {
  %y = cos %x : f32[100, 512]
})"});
  CHECK(long_function.launch.items_per_row == 100 * 512);  // of few elements each has a thread
  CHECK(long_function.launch.items_per_block == 256);
  const Kernel append = emit(kRopeAppend);
  CHECK(append.appends == std::vector<uint32_t>{1});
  CHECK(append.symbols == std::vector<SymbolId>{SymbolId{0}});
}

TEST_CASE("indices are as wide as the elements need") {
  const auto source = [](const char* text) { return emit(GroupText{"wide", 1, text}).source; };
  CHECK(source(R"(
graph(%x: f32[100000, 50000]) -> (%y) {
  %y = exp %x : f32[100000, 50000]
})")
            .find("const long long i = static_cast<long long>(item * 8);") != std::string::npos);
  // The index within a row is an int; a row's place is not.
  const std::string rows = source(R"(
graph(%x: f32[100000, 150000]) -> (%y) {
  %y = softmax %x : f32[100000, 150000]
})");
  CHECK(rows.find("const long long row") != std::string::npos);
  CHECK(rows.find("for (int i = ") != std::string::npos);
  CHECK(rows.find("x0 + row * 150000 + i") != std::string::npos);
  // A column's stride times its number may exceed an int although both fit.
  CHECK(source(R"(
graph(%x: f32[50000, 100000]) -> (%y) {
  %t = transpose %x {axes = [1, 0]} : f32[100000, 50000]
  %y = softmax %t : f32[100000, 50000]
})")
            .find("(i + e) * 100000ll") != std::string::npos);
}

TEST_CASE("groups that are no row kernel are refused with a reason") {
  const auto refused = [](uint32_t prefix_rank, const char* text) {
    const auto kernel =
        emit(make_group({"refused", prefix_rank, text}, DType::f32, 64), prefix_rank);
    REQUIRE_FALSE(kernel.has_value());
    return kernel.error().what;
  };
  CHECK(refused(1, R"(
graph(%x: f32[N, 8], %w: f32[8, 8]) -> (%y) {
  %y = linear %x, %w : f32[N, 8]
})") == "family gemm makes a step of a plan, no kernel");
  CHECK(refused(1, R"(
graph(%x: f32[N, 8]) -> (%y, %z) {
  %y = reduce_sum %x {axes = [1]} : f32[N, 1]
  %z = reduce_sum %x {axes = [0]} : f32[1, 8]
})") == "the reductions of a group run over different axes");
  CHECK(refused(1, R"(
graph(%x: f32[16, 8]) -> (%y) {
  %s = reduce_sum %x {axes = [1]} : f32[16, 1]
  %t = transpose %s {axes = [1, 0]} : f32[1, 16]
  %z = slice %t {axis = 1, begin = 0, size = 8} : f32[1, 8]
  %y = add %x, %z : f32[16, 8]
})") == "a reduction is read at another row than its own");
  CHECK(refused(1, R"(
graph(%x: f32[N, 8], %y: f32[M, 8]) -> (%a, %b) {
  %s = reduce_sum %x {axes = [1]} : f32[N, 1]
  %a = mul %x, %s : f32[N, 8]
  %b = exp %y : f32[M, 8]
})") == "'exp' does not have the rows that the other ops of its group have");
  CHECK(refused(1, R"(
graph(%c: f32[9, 8], %x: f32[N, 8], %slot: i32[N]) -> (%y) {
  %a = kv_append %c, %x, %slot : f32[9, 8]
  %y = exp %a : f32[9, 8]
})") == "a group reads the state that it writes");
  CHECK(refused(1, R"(
graph(%q: f32[N, 16], %k: f32[9, 16], %first: i32[N]) -> (%y) {
  %a = attention %q, %k, %k, %first, %first {order = decode_attention, heads = 1, kv_heads = 1, scale = 1.0, splits = 2} : f32[N, 16]
  %y = add %a, %q : f32[N, 16]
})") == "a kernel of decode_attention computes nothing of its result");
  CHECK(refused(1, R"(
graph(%x: f32[N, 9], %t: f32[N], %k: i32[N]) -> (%y) {
  %s = sample %x, %t, %k, %t, %k, %k : i32[N]
  %y = add %s, %k : i32[N]
})") == "a kernel of sample computes nothing else");
  CHECK(refused(0, R"(
graph(%q: f32[N, 4], %t: f32[4, 9], %first: i32[N]) -> (%y) {
  %k = transpose %t {axes = [1, 0]} : f32[9, 4]
  %y = attention %q, %k, %k, %first, %first {order = decode_attention, heads = 1, kv_heads = 1, scale = 1.0, splits = 2} : f32[N, 4]
})") == "decode_attention reads keys and values where they lie, but cannot address them");
  // Values of one element a row have no offset and no stride of their own.
  CHECK(refused(0, R"(
graph(%x: f32[3, 9], %t: f32[4], %k: i32[3]) -> (%y) {
  %u = slice %t {axis = 0, begin = 1, size = 3} : f32[3]
  %y = sample %x, %u, %k, %u, %k, %k : i32[3]
})") == "sample reads a value that does not stand in memory as it is");
}

TEST_CASE("results that share no value are computed by threads of their own") {
  const auto has_second_stage = [](const char* body) {
    const GroupText text = {"two_results", 2, body};
    return emit(text, DType::f32, 4096).source.find("const long long end1 = ") != std::string::npos;
  };
  CHECK(has_second_stage(R"(
graph(%x: f32[N, WIDTH], %z: f32[N, WIDTH], %s: f32[]) -> (%a, %b) {
    %a = mul %x, %s : f32[N, WIDTH]
    %b = mul %z, %s : f32[N, WIDTH]
})"));
  CHECK_FALSE(has_second_stage(R"(
graph(%x: f32[N, WIDTH], %z: f32[N, WIDTH], %s: f32[]) -> (%a, %b) {
    %a = mul %x, %s : f32[N, WIDTH]
    %b = add %z, %x : f32[N, WIDTH]
})"));
  // One of these numbers may lie in the memory of %n, which both read.
  CHECK_FALSE(has_second_stage(R"(
graph(%n: f32[], %one: f32[]) -> (%next, %twice) {
    %next = add %n, %one : f32[]
    %twice = add %next, %next : f32[]
})"));
}

TEST_CASE("small kernels overlap others, large ones do not") {
  const auto overlaps = [](OpKind kind, int64_t heads, int64_t rows) {
    Graph group;
    const ValueId x = group.add({OpKind::input, {DType::f32, {heads, rows, 64}}, {}, {}, "x"});
    group.inputs.push_back(x);
    const bool reduces = kind == OpKind::reduce_sum;
    Attributes attrs;
    if (reduces) attrs.set(AttrName::axes, std::vector<int64_t>{2});
    group.outputs.push_back(
        group.add({kind, {DType::f32, {heads, rows, reduces ? 1 : 64}}, {x}, attrs, "y"}));
    const auto kernel = emit_kernel(group, 2, {}, *find_device("sm_90a"));
    REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
    check_wait(*kernel);
    return kernel->overlap.waits;
  };
  CHECK(overlaps(OpKind::neg, 1, 8));
  CHECK(overlaps(OpKind::neg, 32, 1024));
  CHECK_FALSE(overlaps(OpKind::neg, 32, 2048));
  CHECK(overlaps(OpKind::reduce_sum, 32, 1024));
  CHECK_FALSE(overlaps(OpKind::reduce_sum, 32, 2048));  // for what it reads
}

}  // namespace sinter::emit_test
