// decode_attention reads its caches before it waits for the kernel ahead, which appends rows to
// them: the rows that it may have read too early are read again. The kernel's text runs on the CPU;
// the kernel ahead runs at its wait. Before that the rows hold NaN, as they do once more when the
// block ends and the next one begins.
//
// Blocks run one after another there, and the blocks of a cluster in step: all have read early when
// the kernel ahead writes. What a token's blocks read early is a split each; without clusters it is
// the first split.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "codegen/kernel_trials.h"
#include "ir/attention_heads.h"
#include "ir/grouping.h"
#include "ir/optional_attribute.h"
#include "kernels/decode_attention/order.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/random_inputs.h"
#include "shim/guarded_memory.h"
#include "shim/kernel_shim.h"

namespace sinter::early_attention_test {
namespace {

constexpr int64_t kRows = 1200;  // of a cache; its tensor has as many after them

const std::vector<GroupText> kGroups = {
    {"two_heads_a_block", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[2400, 32], %v: DTYPE[2400, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 1, streams = 32} : DTYPE[N, 64]
})"},
    {"one_head_a_block_softcap", 0, R"(
graph(%q: DTYPE[N, 96], %k: DTYPE[2400, 32], %v: DTYPE[2400, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 6, kv_heads = 2, scale = 0.3, splits = 3, softcap = 5.0} : DTYPE[N, 96]
})"},
    {"window_within_a_round", 0, R"(
graph(%q: DTYPE[N, 48], %k: DTYPE[2400, 16], %v: DTYPE[2400, 16], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 3, kv_heads = 1, scale = 0.25, splits = 1, window = 70} : DTYPE[N, 48]
})"},
    {"window_of_rounds_softcap", 0, R"(
graph(%q: DTYPE[N, 32], %k: DTYPE[2400, 16], %v: DTYPE[2400, 16], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 2, softcap = 1.5, window = 530} : DTYPE[N, 32]
})"},
    {"unaligned_in_one_tensor", 0, R"(
graph(%qkv: DTYPE[N, 77], %kv: DTYPE[2400, 38], %first: i32[N], %last: i32[N]) -> (%y) {
  %q = slice %qkv {axis = 1, begin = 3, size = 48} : DTYPE[N, 48]
  %k = slice %kv {axis = 1, begin = 1, size = 16} : DTYPE[2400, 16]
  %v = slice %kv {axis = 1, begin = 17, size = 16} : DTYPE[2400, 16]
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 3, kv_heads = 1, scale = 0.25, splits = 1} : DTYPE[N, 48]
})"},
    {"odd_widths", 0, R"(
graph(%q: DTYPE[N, 20], %k: DTYPE[2400, 10], %v: DTYPE[2400, 7], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.5, splits = 1} : DTYPE[N, 14]
})"},
    {"checked_rows", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[2400, 32], %v: DTYPE[2400, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 2, checked = 1} : DTYPE[N, 64]
})"},
    {"sink_before_a_window", 0, R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[2400, 32], %v: DTYPE[2400, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 4, kv_heads = 2, scale = 0.25, splits = 2, window = 40, sink = 6} : DTYPE[N, 64]
})"},
    {"rounds_of_128_keys", 0, R"(
graph(%q: DTYPE[N, 256], %k: DTYPE[2400, 128], %v: DTYPE[2400, 128], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.125, splits = 1, streams = 4} : DTYPE[N, 256]
})"},
};

/// Keys of the tokens of a call; a token's own row, the last, is one of those that are appended.
struct Call {
  const char* name;
  std::vector<int32_t> first, last;

  int64_t tokens() const { return static_cast<int64_t>(first.size()); }
};

/// The last tokens of one sequence of `length`.
Call one_sequence(int tokens, int length) {
  Call call{"one sequence", {}, {}};
  for (int t = 0; t < tokens; ++t) {
    call.first.push_back(5);
    call.last.push_back(5 + length - tokens + t);
  }
  return call;
}

/// Sequences of `length` and less of it.
Call own_sequences(int tokens, int length) {
  Call call{"sequences of their own", {}, {}};
  for (int t = 0; t < tokens; ++t) {
    call.first.push_back(3 + t * (length + 1));
    call.last.push_back(call.first.back() + std::max(length - 5 * t, 1) - 1);
  }
  return call;
}

std::vector<Call> calls() {
  std::vector<Call> list;
  for (int length : {1, 61, 256, 257, 600}) list.push_back(one_sequence(1, length));
  for (int length : {3, 130, 258, 600}) list.push_back(one_sequence(3, length));
  for (int length : {8, 13, 132, 260, 1100}) list.push_back(one_sequence(8, length));
  for (int length : {20, 390}) list.push_back(own_sequences(3, length));
  for (int length : {1, 40, 145}) list.push_back(own_sequences(8, length));
  list.push_back({"a token without keys", {0, 0, 9}, {12, -1, 30}});
  return list;
}

/// The input that operand `i` of the attention is a view of.
uint32_t input_of(const Graph& group, size_t i) {
  const ValueId root = root_of(group, group[group.outputs[0]].operands[i]);
  return static_cast<uint32_t>(llvm::find(group.inputs, root) - group.inputs.begin());
}

/// Keys and values, which may stand in one tensor.
std::vector<uint32_t> caches_of(const Graph& group) {
  std::vector<uint32_t> caches{input_of(group, 1)};
  if (input_of(group, 2) != caches[0]) caches.push_back(input_of(group, 2));
  return caches;
}

Kernel emit_early(const GroupText& text, DType dtype) {
  const Graph group = make_group(text, dtype, 0);
  Overlap overlap;
  overlap.waits = true;
  overlap.early_inputs = {input_of(group, 3), input_of(group, 4)};
  overlap.early_caches = caches_of(group);
  auto kernel = emit_kernel(group, text.parts(), group_symbols(), *find_device("sm_90a"), overlap);
  REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
  return std::move(*kernel);
}

/// In all forms of the kernel: with clusters, if it has them, and without.
void replace_in_all(std::string& text, std::string_view what, const std::string& with) {
  int count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size(), ++count)
    text.replace(at, what.size(), with);
  REQUIRE_MESSAGE(count > 0, (std::string(what) + " is not in\n" + text));
}

// Appended rows come from as far after their places as the cache is long.
constexpr const char* kKernelAhead = R"(
SINTER_DEVICE void set_rows(const void* cache, long long row_bytes, long long rows, const int* last,
                            long long tokens, bool written) {
  unsigned char* bytes = static_cast<unsigned char*>(const_cast<void*>(cache));
  for (long long t = 0; t < tokens; ++t)
    for (long long i = 0; last[t] >= 0 && i < row_bytes; ++i)
      bytes[last[t] * row_bytes + i] = written ? bytes[(last[t] + rows) * row_bytes + i] : 0xFF;
}

)";

/// The kernel, with the kernel ahead instead of its wait.
void add_kernel_ahead(Kernel& kernel) {
  const Graph& group = kernel.group;
  const auto setting = [&](bool written) {
    std::string text = "__syncthreads();\nif (threadIdx.x == 0) {\n";
    for (uint32_t cache : caches_of(group)) {
      const TensorType& type = group[group.inputs[cache]].type;
      text += fmt::format("set_rows(x{}, {}, {}, x{}, n0, {});\n", cache,
                          type.dims[1].constant() * whole_bytes(type.dtype), kRows,
                          input_of(group, 4), written);
    }
    return text + "}\n__syncthreads();\n";
  };
  std::string& source = kernel.source;
  replace_in_all(source, "griddepcontrol_wait();\n", setting(true));
  source.insert(source.rfind('}'), setting(false));
  source.insert(source.find("__device__ __noinline__ void"), kKernelAhead);
}

/// How a kernel begins: it reads the rows of the first `known` tokens again.
struct Start {
  const char* text;
  int64_t known;
};
constexpr Start kStart = {"attention.start_early(n0);\n", kRows};
constexpr Start kFaults[] = {{"attention.start();\n", 0}, {"attention.start_early(1);\n", 1}};

/// Kernels with clusters are there twice: the second is launched without.
struct EarlyKernels {
  std::vector<Kernel> kernels;
  std::vector<std::string> names;
  KernelShim shim;

  /// Compiles `types` kernels of each group, each for another element type.
  EarlyKernels(const Start& start, size_t types) {
    std::vector<const Kernel*> pointers;
    for (size_t g = 0; g < kGroups.size(); ++g)
      for (size_t i = 0; i < types; ++i) {
        const DType dtype = kFloats[(g + i) % std::size(kFloats)];
        kernels.push_back(emit_early(kGroups[g], dtype));
        names.push_back(fmt::format("{} {}", kGroups[g].name, to_string(dtype)));
        replace_in_all(kernels.back().source, kStart.text, start.text);
        add_kernel_ahead(kernels.back());
        kernels.back().launch.items_without_clusters = 0;
        if (kernels.back().launch.cluster == 1) continue;
        Kernel alone = kernels.back();
        alone.launch.cluster = 1;
        kernels.push_back(std::move(alone));
        names.push_back(names.back() + " without clusters");
      }
    for (const Kernel& kernel : kernels) pointers.push_back(&kernel);
    auto compiled = KernelShim::compile(pointers);
    REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
    shim = std::move(*compiled);
  }
};

/// A token's keys, numbered as KeyNumbers does: the sink's keys come right before the range.
struct NumberedKeys {
  AttentionRange all;
  int64_t low = 0, gap = 0;  // the first row of the range, and the rows between the sink and it

  NumberedKeys(AttentionRange range, int64_t last, int64_t sink)
      : all(sink > 0 ? with_sink(range, last, sink) : range) {
    if (sink == 0 || all.low == 0) return;
    low = all.low;
    gap = low - sink;
    all = {gap, all.count + sink};
  }
  int64_t row(int64_t number) const { return number < low ? number - gap : number; }
};

/// True if a kernel that begins so takes a row for read that was not yet written.
bool takes_stale_rows(const Kernel& kernel, const Call& call, int64_t known) {
  const Op& op = kernel.group[kernel.group.outputs[0]];
  const auto heads = op.attrs.get<int64_t>(AttrName::heads);
  const int64_t width = kernel.group[op.operands[0]].type.dims[1].constant() / heads;
  const int64_t value_width = op.type.dims[1].constant() / heads;
  const int lanes = attention_lanes(static_cast<int>(width), static_cast<int>(value_width));
  const int64_t streams = integer_or(op.attrs, AttrName::streams, attention_most_streams(lanes));
  const int64_t window =
      op.attrs.has(AttrName::window) ? op.attrs.get<int64_t>(AttrName::window) : 0;
  const auto splits = static_cast<int>(op.attrs.get<int64_t>(AttrName::splits));
  const int early_splits = static_cast<int>(kernel.launch.cluster);
  for (size_t i = 0; i < call.first.size() * static_cast<size_t>(early_splits); ++i) {
    const size_t t = i / static_cast<size_t>(early_splits);
    const NumberedKeys numbered(attention_range(call.first[t], call.last[t], window), call.last[t],
                                attention_sink(op.attrs));
    const AttentionRange keys =
        attention_split(numbered.all, splits, static_cast<int>(i) % early_splits);
    std::vector<bool> appended(static_cast<size_t>(streams)), again(appended);  // of first blocks
    for (size_t u = 0; u < call.last.size(); ++u) {
      const int64_t row = call.last[u];
      for (const int64_t number : {row, row + numbered.gap}) {
        const int64_t key = number - keys.low, block = key / kAttentionBlock;
        if (key < 0 || block >= streams) continue;
        if (key < keys.count && numbered.row(number) == row)
          appended[static_cast<size_t>(block)] = true;
        if (static_cast<int64_t>(u) < known) again[static_cast<size_t>(block)] = true;
      }
    }
    for (size_t b = 0; b < appended.size(); ++b)
      if (appended[b] && !again[b]) return true;
  }
  return false;
}

/// A call's inputs, with rows that are written and with rows that are not.
struct CallInputs {
  std::vector<HostTensor> written, unwritten;

  CallInputs(const Kernel& kernel, const Call& call, llvm::ArrayRef<int64_t> values, size_t seed) {
    const Graph& group = kernel.group;
    auto inputs = random_inputs(group, group_symbols(), values, seed);
    REQUIRE_MESSAGE(inputs.has_value(), (inputs ? "" : inputs.error().message()));
    written = std::move(*inputs);
    written[input_of(group, 3)] = i32_tensor(call.first);
    written[input_of(group, 4)] = i32_tensor(call.last);
    unwritten = written;
    for (uint32_t cache : caches_of(group)) {
      std::vector<std::byte>& bytes = unwritten[cache].bytes;
      const size_t row_bytes = bytes.size() / (2 * kRows);
      for (int32_t row : call.last) {
        REQUIRE(row < kRows);
        if (row < 0) continue;
        std::byte* place = bytes.data() + static_cast<size_t>(row) * row_bytes;
        std::memcpy(place + kRows * row_bytes, written[cache].bytes.data() + (place - bytes.data()),
                    row_bytes);
        std::memset(place, kNanPoison, row_bytes);
      }
    }
  }
};

/// Runs the kernels with every call, in one of these orders, each in its turn; a result differs
/// just where stale rows are expected. Returns how often that is.
int check_calls(const EarlyKernels& early, int64_t known, llvm::ArrayRef<ThreadOrder> orders) {
  int stale = 0;
  size_t turn = 0;
  for (size_t k = 0; k < early.kernels.size(); ++k) {
    const Kernel& kernel = early.kernels[k];
    for (const Call& call : calls()) {
      CAPTURE(early.names[k]);
      CAPTURE(std::string(call.name));
      CAPTURE(fmt::format("{}", fmt::join(call.last, ", ")));
      std::vector<int64_t> values(group_symbols().size());
      values[0] = call.tokens();
      const CallInputs inputs(kernel, call, values, k + 1);
      const auto expected =
          evaluate(kernel.group, group_symbols(), values, addresses_of(inputs.written));
      REQUIRE_MESSAGE(expected.has_value(), (expected ? "" : expected.error().message()));
      const bool takes_stale = takes_stale_rows(kernel, call, known);
      stale += takes_stale;
      const ThreadOrder order = orders[turn++ % orders.size()];
      const auto results = early.shim.run(kernel, values, addresses_of(inputs.unwritten), order);
      REQUIRE_MESSAGE(results.has_value(), (results ? "" : results.error().message()));
      const auto difference = compare_bits((*expected)[0], (*results)[0]);
      REQUIRE(difference.has_value());
      CHECK_MESSAGE(difference->has_value() == takes_stale,
                    (*difference ? to_string(**difference) : "no difference"));
    }
  }
  return stale;
}

}  // namespace

TEST_CASE("rows appended after attention's first reads are read again") {
  CHECK(check_calls(EarlyKernels(kStart, 2), kStart.known,
                    {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled}) == 0);
}

TEST_CASE("planted faults: what is read before the rows are written, and not again, is seen") {
  for (const Start& fault : kFaults) {
    CAPTURE(std::string(fault.text));
    CHECK(check_calls(EarlyKernels(fault, 1), fault.known, ThreadOrder::ascending) > 0);
  }
}

}  // namespace sinter::early_attention_test
