// Random masks of attention: what attention_masks makes of one leaves every token the same keys.
//
// SINTER_TRIES=N draws N masks (1000); SINTER_SEED=S others (5).
#include <doctest/doctest.h>

#include <cstdlib>

#include "differential/random.h"
#include "ir/attention_heads.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "passes/passes.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter::attention_masks_test {
namespace {

int64_t number_from(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

constexpr int64_t kBatch = 2, kHeads = 2;
constexpr int64_t kSizes[][2] = {{1, 1}, {1, 9}, {7, 7}, {9, 4}, {5, 12}};  // tokens, keys

/// Draws a mask [B, heads, N, R] with 1 for some extents, and the attention that has it.
class MaskModule {
 public:
  explicit MaskModule(uint64_t seed) : random_(seed), b_(entry_.graph, symbols()) {
    module_.symbols = symbols_;
    tokens_ = Dim(SymbolId{0});
    keys_ = random_.chance(50) ? tokens_ : Dim(SymbolId{1});
    entry_.name = "f";
    const ValueId q = input(DType::f32, {Dim(kBatch), tokens_, Dim(kHeads)}, "q");
    const ValueId k = input(DType::f32, {Dim(kBatch), keys_, Dim(kHeads)}, "k");
    row_ = input(DType::i32, {Dim(kBatch), tokens_}, "row");
    wide_row_ = input(DType::i64, {tokens_}, "wide_row");
    wide_key_ = input(DType::i64, {keys_}, "wide_key");
    of_key_ = input(DType::i32, {Dim(kBatch), keys_}, "of_key");
    seen_ = input(DType::i1, {Dim(kBatch), keys_}, "seen");
    ValueId mask = truth(3);
    if (random_.chance(30)) mask = numbers(mask);
    const ValueId zero = b_.constant(0, DType::i32, {Dim(kBatch), tokens_});
    const ValueId all = b_.constant(2147483647, DType::i32, {Dim(kBatch), tokens_});
    const ValueId first = random_.chance(90) ? zero : row_, last = random_.chance(85) ? all : row_;
    entry_.graph.outputs = {
        b_.op(OpKind::attention, {q, k, k, first, last, shaped(mask)}, attributes(), "y")};
    module_.name = "m";
    module_.entries.push_back(std::move(entry_));
  }

  Module& module() { return module_; }
  bool has_one_size() const { return keys_ == tokens_; }

 private:
  llvm::ArrayRef<Symbol> symbols() {
    symbols_ = {{.name = "N", .low = 1, .high = 64}, {.name = "R", .low = 1, .high = 64}};
    return symbols_;
  }
  Attributes attributes() {
    Attributes attrs;
    attrs.set(AttrName::heads, kHeads).set(AttrName::kv_heads, kHeads).set(AttrName::scale, 1.0);
    attrs.set(AttrName::any_range, int64_t{1}).set(AttrName::empty_zero, int64_t{1});
    if (random_.chance(10)) attrs.set(AttrName::window, random_.between(1, 5));
    if (random_.chance(10)) attrs.set(AttrName::sink, random_.between(1, 5));
    return attrs;
  }
  ValueId input(DType dtype, Dims dims, std::string name) {
    return b_.leaf(OpKind::input, {dtype, std::move(dims)}, std::move(name));
  }
  ValueId constant(int64_t value, DType dtype = DType::i32) {
    return b_.constant(static_cast<double>(value), dtype);
  }
  ValueId iota(Dim extent, Dims dims) {
    const ValueId one =
        b_.op(OpKind::iota, {},
              Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, Dims{extent}));
    return b_.reshape(one, dims);
  }
  ValueId token() { return iota(tokens_, {Dim(1), Dim(1), tokens_, Dim(1)}); }
  ValueId key() { return iota(keys_, {Dim(1), Dim(1), Dim(1), keys_}); }

  /// An integer: a position, one that is given for each token or key, a number, or made of such.
  ValueId integer(int depth) {
    switch (random_.below(depth > 0 ? 13 : 6)) {
      case 0:
      case 1:
        return key();
      case 2:
      case 3:
        return token();
      case 4:
        return constant(random_.between(-3, 9));
      case 5:
        if (random_.chance(60)) return b_.reshape(row_, {Dim(kBatch), Dim(1), tokens_, Dim(1)});
        if (random_.chance(50)) return b_.reshape(of_key_, {Dim(kBatch), Dim(1), Dim(1), keys_});
        return b_.cast(b_.reshape(wide_row_, {Dim(1), Dim(1), tokens_, Dim(1)}), DType::i32);
      case 6:
      case 7:
        return b_.add(integer(depth - 1), integer(depth - 1));
      case 8:
        return b_.sub(integer(depth - 1), integer(depth - 1));
      case 9:
        return b_.op(OpKind::div_floor, {integer(depth - 1), constant(random_.between(1, 4))});
      case 10:
        return b_.op(OpKind::mod_floor, {integer(depth - 1), constant(random_.between(1, 4))});
      case 11:
        return b_.op(random_.chance(50) ? OpKind::maximum : OpKind::minimum,
                     {integer(depth - 1), integer(depth - 1)});
      default:
        return b_.op(OpKind::abs, {integer(depth - 1)});
    }
  }

  ValueId comparison() {
    const OpKind kind =
        random_.pick(std::array{OpKind::less, OpKind::less_equal, OpKind::less, OpKind::equal});
    if (random_.chance(8))
      return b_.op(kind, {b_.reshape(wide_row_, {Dim(1), Dim(1), tokens_, Dim(1)}),
                          b_.reshape(wide_key_, {Dim(1), Dim(1), Dim(1), keys_})});
    const int depth = random_.chance(60) ? 1 : 2;
    return b_.op(kind, {integer(depth), integer(depth)});
  }

  /// Leading keys, up to a position or not: a sink, if no other key is hidden behind them.
  ValueId leading_keys() {
    const ValueId end = random_.chance(80) ? constant(random_.between(0, 6)) : integer(0);
    const ValueId leading = b_.less(key(), end);
    if (random_.chance(60)) return leading;
    const ValueId near = b_.add(token(), constant(random_.between(-2, 3)));
    const ValueId last = random_.chance(70) ? near : integer(0);
    return b_.logical_and(leading, b_.op(OpKind::less_equal, {key(), last}));
  }
  ValueId window() {
    const ValueId distance = b_.sub(token(), key());
    return b_.op(OpKind::less_equal,
                 {random_.chance(50) ? b_.op(OpKind::abs, {distance}) : distance,
                  constant(random_.between(0, 4))});
  }

  ValueId truth(int depth) {
    switch (random_.below(depth > 0 ? 11 : 5)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return comparison();
      case 10:
        return b_.logical_or(leading_keys(), random_.chance(50) ? window() : truth(depth - 1));
      case 4:
        return b_.reshape(seen_, {Dim(kBatch), Dim(1), Dim(1), keys_});
      case 5:
      case 6:
      case 7:
        return b_.logical_and(truth(depth - 1), truth(depth - 1));
      case 8:
        return b_.logical_or(truth(depth - 1), truth(depth - 1));
      default:
        return b_.logical_not(truth(depth - 1));
    }
  }

  /// 0 where a key is seen, else -inf or the lowest number.
  ValueId numbers(ValueId mask) {
    const DType dtype = random_.pick(std::array{DType::f32, DType::bf16, DType::f16});
    const ValueId hidden =
        b_.constant(random_.chance(70) ? -std::numeric_limits<double>::infinity() : -3e38, dtype);
    const ValueId zero = b_.constant(0, dtype);
    if (random_.chance(50)) return b_.op(OpKind::where, {mask, zero, hidden});
    return b_.op(OpKind::where, {b_.logical_not(mask), hidden, zero});
  }

  /// With all four axes, some of which repeat.
  ValueId shaped(ValueId mask) {
    Dims dims = b_.type(mask).dims;
    dims.insert(dims.begin(), 4 - dims.size(), Dim(1));
    mask = b_.reshape(mask, dims);
    const Dim whole[] = {Dim(kBatch), Dim(kHeads), tokens_, keys_};
    for (size_t axis = 0; axis < 4; ++axis)
      if (random_.chance(30)) dims[axis] = whole[axis];
    if (dims == b_.type(mask).dims) return mask;
    return b_.op(OpKind::broadcast, {mask}, Attributes().set(AttrName::dims, dims));
  }

  Random random_;
  std::vector<Symbol> symbols_;
  Module module_;
  Entry entry_;
  Builder b_;
  Dim tokens_, keys_;
  ValueId row_, wide_row_, wide_key_, of_key_, seen_;
};

const Op& attention_of(const Graph& graph) {
  return *llvm::find_if(graph.ops(), [](const Op& op) { return op.kind == OpKind::attention; });
}

/// Inputs of a call. Numbers that are given for tokens are sometimes the largest that there are.
std::vector<HostTensor> call_inputs(const Graph& graph, llvm::ArrayRef<int64_t> sizes,
                                    Random& random) {
  std::vector<HostTensor> inputs;
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph[id].type;
    std::vector<int64_t> dims;
    for (Dim dim : type.dims)
      dims.push_back(dim.is_constant() ? dim.constant() : sizes[dim.symbol().index]);
    HostTensor tensor = *make_tensor(type.dtype, std::move(dims));
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      const bool extreme = random.chance(3);
      if (type.dtype == DType::i32)
        tensor.data<int32_t>()[i] = extreme ? (random.chance(50) ? INT32_MIN : INT32_MAX)
                                            : static_cast<int32_t>(random.between(-4, 12));
      else if (type.dtype == DType::i64)
        tensor.data<int64_t>()[i] =
            extreme ? (random.chance(50) ? INT64_MIN : INT64_MAX) : random.between(-4, 12);
      else if (type.dtype == DType::i1)
        tensor.bytes[static_cast<size_t>(i)] = std::byte{random.chance(70)};
      else
        tensor.data<float>()[i] = random.unit();
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// The keys that an attention lets each token's head see, in the order of its scores.
std::vector<bool> seen_keys(const Module& module, llvm::ArrayRef<int64_t> sizes,
                            llvm::ArrayRef<HostTensor> inputs) {
  Graph graph = module.entries[0].graph;
  const Op op = attention_of(graph);
  const bool masked = op.operands.size() == 6;
  graph.outputs.assign(op.operands.begin() + 3, op.operands.end());
  std::vector<const HostTensor*> given;
  for (const HostTensor& input : inputs) given.push_back(&input);
  const std::vector<HostTensor> values = *evaluate(graph, module.symbols, sizes, given);
  const int64_t tokens = inputs[0].dims[1], keys = inputs[1].dims[1];
  const auto hides = [&](const HostTensor& mask, int64_t place) {
    if (mask.dtype == DType::i1) return mask.bytes[static_cast<size_t>(place)] == std::byte{0};
    return to_doubles(mask)[static_cast<size_t>(place)] < -1e30;
  };
  std::vector<bool> seen;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t n = 0; n < tokens; ++n)
        for (int64_t r = 0; r < keys; ++r) {
          const int64_t token = b * tokens + n;
          const int64_t last = values[1].data<int32_t>()[token];
          int64_t first = values[0].data<int32_t>()[token];
          if (op.attrs.has(AttrName::window))
            first = std::max(first, last + 1 - op.attrs.get<int64_t>(AttrName::window));
          bool sees = r <= last && (first <= r || r < attention_sink(op.attrs));
          if (masked) {
            const auto& dims = values[2].dims;
            int64_t place = 0;
            const int64_t index[] = {b, h, n, r};
            for (size_t axis = 0; axis < 4; ++axis)
              place = place * dims[axis] + (dims[axis] == 1 ? 0 : index[axis]);
            sees = sees && !hides(values[2], place);
          }
          seen.push_back(sees);
        }
  return seen;
}

}  // namespace

TEST_CASE("a mask and what becomes of it let each token see the same keys") {
  const int64_t tries = number_from("SINTER_TRIES", 1000);
  const auto seed0 = static_cast<uint64_t>(number_from("SINTER_SEED", 5)) * 1000000;
  int64_t changed = 0, without_mask = 0, sinks = 0;
  for (int64_t i = 0; i < tries; ++i) {
    const uint64_t seed = seed0 + static_cast<uint64_t>(i);
    CAPTURE(seed);
    MaskModule drawn(seed);
    const Module before = drawn.module();
    Module& after = drawn.module();
    const Status drawn_well = verify(before);
    REQUIRE_MESSAGE(drawn_well.has_value(), (drawn_well ? "" : drawn_well.error().message()));
    if (i % 2 == 0) fold_positions(after);
    if (!attention_masks(after)) continue;
    const Status valid = verify(after);
    REQUIRE_MESSAGE(valid.has_value(), (valid ? "" : valid.error().message()));
    ++changed;
    const Op& ranged = attention_of(after.entries[0].graph);
    without_mask += ranged.operands.size() == 5;
    sinks += ranged.attrs.has(AttrName::sink);
    Random random(seed + 1);
    for (const auto& [tokens, keys] : kSizes) {
      const int64_t sizes[] = {tokens, drawn.has_one_size() ? tokens : keys};
      const auto inputs = call_inputs(before.entries[0].graph, sizes, random);
      REQUIRE(seen_keys(after, sizes, inputs) == seen_keys(before, sizes, inputs));
    }
  }
  MESSAGE(changed, " of ", tries, " masks became ranges, ", without_mask, " of them whole, ", sinks,
          " with a sink");
  CHECK(changed * 4 > tries);
  CHECK(without_mask * 10 > tries);
  CHECK(sinks * 100 > tries);
}

}  // namespace sinter::attention_masks_test
