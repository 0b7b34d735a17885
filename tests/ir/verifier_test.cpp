// One test for each invariant of verifier.cpp, named after it.
#include "ir/verifier.h"

#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/symbols.h"
#include "ir/text.h"

namespace sinter::verifier_test {
namespace {

const TensorType kRow{DType::f32, {4}};
const TensorType kCache{DType::f16, {SymbolId{1}, 4}};
const TensorType kToken{DType::f16, {SymbolId{0}, 4}};
const TensorType kSlots{DType::i32, {SymbolId{0}}};

/// A valid module: a weight, a state, an entry that reads the old version, appends, and reads the
/// new.
struct Sample {
  Module module;
  ValueId x, slot, cache, weight, sum, old_rows, next, new_rows;
  Graph& graph() { return module.entries[0].graph; }

  Sample() {
    module.name = "m";
    module.symbols = {host_symbol("N", 1, 8), host_symbol("R", 8, 64, 8)};
    Weight w{"w", {DType::f16, {4}}, {}};
    Builder init(w.init, module.symbols);
    w.init.outputs = {init.op(OpKind::file, {},
                              Attributes()
                                  .set(AttrName::dims, Dims{4})
                                  .set(AttrName::dtype, DType::f16)
                                  .set(AttrName::tensor, std::string("t")),
                              "w")};
    module.weights.push_back(std::move(w));
    module.states.push_back({"cache", kCache});
    module.entries.push_back({"e", {}});
    Builder builder(graph(), module.symbols);
    x = builder.leaf(OpKind::input, kToken, "x");
    slot = builder.leaf(OpKind::input, kSlots, "slot");
    weight = builder.leaf(OpKind::weight, {DType::f16, {4}}, "w");
    cache = builder.leaf(OpKind::state, kCache, "cache");
    sum = builder.op(OpKind::add, {x, weight}, {}, "sum");
    old_rows = builder.op(OpKind::copy, {cache}, {}, "old_rows");
    next = builder.op(OpKind::kv_append, {cache, sum, slot}, {}, "next");
    new_rows = builder.op(OpKind::copy, {next}, {}, "new_rows");
    graph().outputs = {old_rows, new_rows};
  }

  /// Adds an op without any check.
  ValueId raw(OpKind kind, std::initializer_list<ValueId> operands, TensorType type,
              std::string name, Attributes attrs = {}) {
    return graph().add(Op{kind, std::move(type), operands, std::move(attrs), std::move(name)});
  }
  Builder builder() { return Builder(graph(), module.symbols, "more"); }
};

/// The module breaks the invariant, at that place; the message holds `part`.
void breaks(const Module& module, int invariant, std::string_view place, std::string_view part) {
  const Status status = verify(module);
  REQUIRE_FALSE(status.has_value());
  const Error& error = status.error();
  CHECK_MESSAGE(error.what.starts_with(fmt::format("V{}: ", invariant)), error.what);
  CHECK_MESSAGE(error.what.find(part) != std::string::npos, error.what);
  CHECK(error.where == place);
  CHECK_FALSE(error.hint.empty());
}

void holds(const Module& module) {
  const Status status = verify(module);
  CHECK_MESSAGE(status.has_value(), (status ? std::string() : status.error().message()));
}

}  // namespace

TEST_CASE("the sample holds every invariant") { holds(Sample().module); }

TEST_CASE("V1 symbol bounds") {
  const auto with = [](int64_t low, int64_t high, int64_t multiple) {
    Sample s;
    s.module.symbols.push_back(host_symbol("S", low, high, multiple));
    return s.module;
  };
  holds(with(0, 0, 1));
  holds(with(0, int64_t{1} << 31, 4));
  breaks(with(-1, 4, 1), 1, "symbol S", "[-1, 4]");
  breaks(with(5, 4, 1), 1, "symbol S", "[5, 4]");
  breaks(with(0, (int64_t{1} << 31) + 1, 1), 1, "symbol S", "2147483649");
  breaks(with(0, 4, 0), 1, "symbol S", "step 0");
  breaks(with(4, 10, 4), 1, "symbol S", "step 4");
  breaks(with(2, 8, 4), 1, "symbol S", "step 4");
  const auto bounded_by = [&](uint32_t symbol) {
    Module module = with(0, 4, 1);
    module.symbols.back().at_most = SymbolId{symbol};
    return module;
  };
  holds(bounded_by(0));
  holds(bounded_by(1));
  breaks(bounded_by(2), 1, "symbol S", "symbol 2, which does not come before it");
  breaks(bounded_by(9), 1, "symbol S", "symbol 9");
}

TEST_CASE("V2 names and strings") {
  Sample s;
  s.graph()[s.sum].name = "";
  breaks(s.module, 2, "entry @e, %", "0 bytes");
  s.graph()[s.sum].name = "\xC3";
  breaks(s.module, 2, "entry @e, %\\xc3", "not UTF-8");
  s.graph()[s.sum].name = std::string(4097, 'a');
  CHECK(verify(s.module).error().what.starts_with("V2: "));
  s.graph()[s.sum].name = std::string(4096, 'a');
  holds(s.module);

  Sample file;
  file.module.weights[0].init.mutable_ops()[0].attrs.set(AttrName::tensor, std::string("\xFF"));
  breaks(file.module, 2, "weight %w, %w", "attribute tensor");
  for (std::string name : {"", "2N", "a b", "N-1", "\n"}) {
    Sample symbol;
    symbol.module.symbols[0].name = name;
    CHECK(verify(symbol.module).error().what.starts_with("V2: "));
  }
  Sample module;
  module.module.name = "";
  breaks(module.module, 2, "module @", "the module's name");
}

TEST_CASE("V3 unique names") {
  Sample ops;
  ops.graph()[ops.sum].name = "x";
  breaks(ops.module, 3, "entry @e, %x", "both named %x");
  Sample like_state;
  like_state.graph()[like_state.sum].name = "cache";
  CHECK(verify(like_state.module).error().what.starts_with("V3: "));
  Sample like_unused;
  like_unused.module.states.push_back({"spare", kRow});
  like_unused.graph()[like_unused.sum].name = "spare";
  breaks(like_unused.module, 3, "entry @e, %spare", "like a weight or a state");
  Sample symbols;
  symbols.module.symbols.push_back(symbols.module.symbols[0]);
  breaks(symbols.module, 3, "symbol N", "two symbols");
  Sample leaves;
  leaves.module.states.push_back({"w", kRow});
  breaks(leaves.module, 3, "state %w", "two weights and states");
  Sample entries;
  entries.module.entries.push_back(entries.module.entries[0]);
  breaks(entries.module, 3, "entry @e", "two entries");
  Sample twice;
  twice.raw(OpKind::state, {}, kCache, "cache");
  breaks(twice.module, 3, "entry @e, %cache", "both named");
}

TEST_CASE("V4 operands stand before their users") {
  Sample later;
  later.graph()[later.sum].operands[0] = later.new_rows;
  breaks(later.module, 4, "entry @e, %sum", "is op 4 and reads op 7");
  Sample self;
  self.graph()[self.sum].operands[0] = self.sum;
  breaks(self.module, 4, "entry @e, %sum", "reads op 4");
  Sample none;
  none.graph()[none.sum].operands[0] = ValueId{1000};
  breaks(none.module, 4, "entry @e, %sum", "reads op 1000");
  Sample invalid;
  invalid.graph()[invalid.sum].operands[0] = ValueId{};
  CHECK(verify(invalid.module).error().what.starts_with("V4: "));
}

TEST_CASE("V5 operand counts") {
  Sample few;
  few.graph()[few.sum].operands.pop_back();
  breaks(few.module, 5, "entry @e, %sum", "takes 2 operands, got 1");
  Sample many;
  many.graph()[many.next].operands.push_back(many.slot);
  breaks(many.module, 5, "entry @e, %next", "takes 3 operands, got 4");
  Sample leaf;
  leaf.graph()[leaf.cache].operands.push_back(leaf.x);
  breaks(leaf.module, 5, "entry @e, %cache", "takes 0 operands, got 1");
}

TEST_CASE("V6 attributes") {
  Sample missing;
  missing.raw(OpKind::reduce_sum, {missing.x}, kToken, "r");
  breaks(missing.module, 6, "entry @e, %r", "lacks its attribute axes");
  Sample unknown;
  unknown.graph()[unknown.sum].attrs.set(AttrName::axis, int64_t{0});
  breaks(unknown.module, 6, "entry @e, %sum", "no attribute axis");
}

TEST_CASE("V7 types and shapes") {
  Sample axes;
  axes.module.states.push_back({"s", {DType::f32, Dims(9, Dim(1))}});
  breaks(axes.module, 7, "state %s", "9 axes");
  Sample symbol;
  symbol.module.states.push_back({"s", {DType::f32, {SymbolId{2}}}});
  breaks(symbol.module, 7, "state %s", "symbol 2 of 2");
  Sample attribute;
  attribute.raw(OpKind::slice, {attribute.x}, kToken, "r",
                Attributes()
                    .set(AttrName::axis, int64_t{0})
                    .set(AttrName::begin, int64_t{0})
                    .set(AttrName::size, Dim(SymbolId{7})));
  breaks(attribute.module, 7, "entry @e, %r", "attribute size");
  const auto with = [](TensorType type) {
    Sample s;
    s.module.states.push_back({"s", type});
    return s.module;
  };
  const Symbol largest = host_symbol("L", 0, int64_t{1} << 31);
  holds(with({DType::f16, {int64_t{1} << 47}}));
  breaks(with({DType::f16, {(int64_t{1} << 47) + 1}}), 7, "state %s", "2^48");
  breaks(with({DType::i1, {0, int64_t{1} << 48, 2}}), 7, "state %s", "2^48");
  breaks(with({DType::i1, {INT64_MAX}}), 7, "state %s", "2^48");
  breaks(with({DType::f32, {INT64_MAX / 4, 0}}), 7, "state %s", "2^48");
  Module symbolic = with({DType::f16, {SymbolId{2}, SymbolId{2}}});
  symbolic.symbols.push_back(largest);
  breaks(symbolic, 7, "state %s", "f16[L, L]");
}

TEST_CASE("V8 stated and inferred types") {
  Sample s;
  s.graph()[s.sum].type.dtype = DType::bf16;
  breaks(s.module, 8, "entry @e, %sum",
         "states bf16[N, 4], but its operands and attributes give f16[N, 4]");
  Sample constraint;
  constraint.raw(OpKind::logical_not, {constraint.x}, kToken, "r");
  breaks(constraint.module, 8, "entry @e, %r", "(C3)");
  Sample literal;
  literal.raw(OpKind::literal, {}, kRow, "r",
              Attributes()
                  .set(AttrName::dims, kRow.dims)
                  .set(AttrName::dtype, DType::f32)
                  .set(AttrName::values, std::vector<double>{1, 2, 3}));
  breaks(literal.module, 8, "entry @e, %r", "(C19)");
}

TEST_CASE("V9 weight and state leaves") {
  Sample unknown;
  unknown.raw(OpKind::state, {}, kCache, "other");
  breaks(unknown.module, 9, "entry @e, %other", "the module has no state %other");
  Sample kind;
  kind.module.states.push_back({"s", kRow});
  kind.raw(OpKind::weight, {}, kRow, "s");
  breaks(kind.module, 9, "entry @e, %s", "the module has no weight %s");
  Sample type;
  type.module.states.push_back({"s", kRow});
  type.raw(OpKind::state, {}, kToken, "s");
  breaks(type.module, 9, "entry @e, %s", "is f16[N, 4], the module declares f32[4]");
  Sample in_weight;
  Graph& init = in_weight.module.weights[0].init;
  init.add(Op{OpKind::state, kCache, {}, {}, "cache"});
  breaks(in_weight.module, 9, "weight %w, %cache", "stands in a weight function");
}

TEST_CASE("V10 inputs") {
  Sample twice;
  twice.graph().inputs.push_back(twice.x);
  breaks(twice.module, 10, "entry @e", "listed twice: %x");
  Sample other;
  other.graph().inputs.push_back(other.sum);
  breaks(other.module, 10, "entry @e", "not of kind input: %sum");
  Sample none;
  none.graph().inputs.push_back(ValueId{99});
  breaks(none.module, 10, "entry @e", "input 99 of 8 ops");
  Sample unlisted;
  unlisted.graph().inputs.pop_back();
  breaks(unlisted.module, 10, "entry @e, %slot", "not listed");
  Sample weight;
  Graph& init = weight.module.weights[0].init;
  init.inputs = {init.add(Op{OpKind::input, kRow, {}, {}, "i"})};
  breaks(weight.module, 10, "weight %w, %i", "has the input %i");
}

TEST_CASE("V11 outputs") {
  Sample none;
  none.graph().outputs.push_back(ValueId{});
  breaks(none.module, 11, "entry @e", "none of 8 ops");
  Sample count;
  count.module.weights[0].init.outputs.clear();
  breaks(count.module, 11, "weight %w", "has 0 outputs");
  Sample two;
  two.module.weights[0].init.outputs.push_back(ValueId{0});
  breaks(two.module, 11, "weight %w", "has 2 outputs");
  Sample type;
  type.module.weights[0].type.dtype = DType::bf16;
  breaks(type.module, 11, "weight %w", "is bf16[4], but its function gives f16[4]");
}

TEST_CASE("V12 file only in weight functions") {
  Sample s;
  Op file = s.module.weights[0].init.ops()[0];
  file.name = "f";
  s.graph().add(file);
  breaks(s.module, 12, "entry @e, %f", "outside of a weight function");
}

TEST_CASE("V13 weights are constants of the model") {
  Sample symbolic;
  symbolic.module.weights[0].type = kToken;
  breaks(symbolic.module, 13, "weight %w", "f16[N, 4]");
  Sample contraction;
  Graph& init = contraction.module.weights[0].init;
  Builder builder(init, contraction.module.symbols);
  const ValueId square = builder.constant(1, DType::f16, {4, 4});
  init.outputs = {builder.op(OpKind::linear, {init.outputs[0], square}, {}, "product")};
  breaks(contraction.module, 13, "weight %w, %product", "%product (linear)");
}

TEST_CASE("V14 what an op writes as a state") {
  Sample input;
  Builder builder = input.builder();
  const ValueId other = builder.leaf(OpKind::input, kCache, "other");
  builder.op(OpKind::kv_append, {other, input.sum, input.slot}, {}, "bad");
  breaks(input.module, 14, "entry @e, %bad", "writes %other, which is of kind input");
  Sample view;
  Builder more = view.builder();
  const ValueId same = more.slice(view.next, 0, 0, kCache.dims[0], "same");
  more.op(OpKind::kv_append, {same, view.sum, view.slot}, {}, "bad");
  breaks(view.module, 14, "entry @e, %bad", "writes %same, which is of kind slice");
  Sample value;
  Builder stores = value.builder();
  const ValueId twice = stores.add(value.next, value.next);
  stores.op(OpKind::store, {twice, stores.neg(twice)}, {}, "bad");
  breaks(value.module, 14, "entry @e, %bad", "which is of kind add");
  // In a graph alone an input may stand for a state; nothing else may.
  CHECK_FALSE(find_violation(input.graph(), input.module.symbols).has_value());
  CHECK(find_violation(view.graph(), view.module.symbols).has_value());
}

TEST_CASE("V15 one writer for each version") {
  Sample s;
  s.builder().op(OpKind::kv_append, {s.cache, s.sum, s.slot}, {}, "second");
  breaks(s.module, 15, "entry @e, %second", "writes %cache, which %next has written");
  Sample stored;
  Builder stores = stored.builder();
  const ValueId twice = stores.add(stored.next, stored.next);
  stores.op(OpKind::store, {stored.next, twice}, {}, "first");
  holds(stored.module);
  stores.op(OpKind::store, {stored.next, twice}, {}, "second");
  breaks(stored.module, 15, "entry @e, %second", "writes %next, which %first has written");
  Sample chain;
  chain.builder().op(OpKind::kv_append, {chain.next, chain.sum, chain.slot}, {}, "second");
  chain.graph().outputs = {chain.old_rows};
  holds(chain.module);
}

TEST_CASE("V16 readers stand before the writer") {
  Sample late;
  late.builder().op(OpKind::copy, {late.cache}, {}, "late");
  breaks(late.module, 16, "entry @e, %late", "reads %cache, which %next has overwritten");
  Sample through_view;
  Builder builder = through_view.builder();
  const ValueId row = builder.slice(through_view.cache, 0, 0, 1, "row");
  holds(through_view.module);  // nothing reads the view
  builder.op(OpKind::copy, {row}, {}, "late");
  breaks(through_view.module, 16, "entry @e, %late", "reads %cache");
  Sample output;
  output.graph().outputs.push_back(output.cache);
  breaks(output.module, 16, "entry @e, %next", "output %cache is %cache, which %next overwrites");
  Sample view_output;
  view_output.graph().outputs.push_back(
      view_output.builder().slice(view_output.cache, 0, 0, 1, "row"));
  breaks(view_output.module, 16, "entry @e, %next", "output %row is %cache");
  Sample itself;
  Builder more = itself.builder();
  const ValueId head = more.slice(itself.next, 0, 0, 1, "head");
  const ValueId spot = more.op(
      OpKind::iota, {}, Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, Dims{1}));
  more.op(OpKind::kv_append, {itself.next, head, spot}, {}, "shift");
  breaks(itself.module, 16, "entry @e, %shift", "reads %next while it writes it");
  Sample same;
  same.builder().op(OpKind::store, {same.next, same.next}, {}, "same");
  breaks(same.module, 16, "entry @e, %same", "reads %next while it writes it");
}

TEST_CASE("V17 a gemv reads a weight or an input as it stands in memory") {
  const auto module = [](std::string_view matrix) {
    auto parsed = parse_module(fmt::format(R"(module @m {{
  weight %w : f16[16, 8] = file {{tensor = "t"}}
  entry @e(%x: f16[2, 8], %m: f16[4, 8]) -> (%y) {{
    {}
    %y = linear %x, %matrix : f16[2, 4]
  }}
}}
)",
                                           matrix),
                               "text");
    REQUIRE_MESSAGE(parsed.has_value(), (parsed ? "" : parsed.error().message()));
    Graph& graph = parsed->entries[0].graph;
    Op& product = graph[graph.outputs[0]];
    product.attrs.set(AttrName::order, Order::gemv).set(AttrName::splits, int64_t{1});
    return *parsed;
  };
  const std::string part = "%y (gemv) reads the matrix %matrix";
  breaks(module("%matrix = slice %w {axis = 0, begin = 4, size = 4} : f16[4, 8]"), 17,
         "entry @e, %y", part);
  breaks(module("%matrix = copy %m : f16[4, 8]"), 17, "entry @e, %y", part);
  breaks(module("%columns = reshape %m {dims = [8, 4]} : f16[8, 4]\n"
                "    %matrix = transpose %columns {axes = [1, 0]} : f16[4, 8]"),
         17, "entry @e, %y", part);
  holds(module("%matrix = reshape %m {dims = [4, 8]} : f16[4, 8]"));
  holds(module("%matrix = slice %w {axis = 0, begin = 0, size = 4} : f16[4, 8]"));
}

TEST_CASE("V18 variants cover the symbol and have one interface") {
  const auto with = [](const std::function<void(Module&)>& change) {
    Sample itself;
    Module& module = itself.module;
    module.entries.push_back(module.entries[0]);
    module.entries[0].range = SymbolRange{SymbolId{0}, 1, 4};
    module.entries[1].range = SymbolRange{SymbolId{0}, 5, 8};
    change(module);
    return module;
  };
  holds(with([](Module&) {}));
  const auto fails = [&](std::string_view part, const std::function<void(Module&)>& change) {
    breaks(with(change), 18, "entry @e", part);
  };
  fails("N in [6, 8], where one from 5", [](Module& m) { m.entries[1].range->low = 6; });
  fails("N in [4, 8], where one from 5", [](Module& m) { m.entries[1].range->low = 4; });
  fails("no variant for N from 8 to 8", [](Module& m) { m.entries[1].range->high = 7; });
  fails("a range that its symbol lacks", [](Module& m) { m.entries[1].range->high = 9; });
  fails("once without a range", [](Module& m) { m.entries[0].range.reset(); });
  fails("by different symbols", [](Module& m) {
    m.entries[1].range = SymbolRange{SymbolId{1}, 8, 64};
  });
  fails("no other variant", [](Module& m) { m.entries.pop_back(); });
  fails("tokens", [](Module& m) { m.entries[1].tokens = Tokens::one_each; });
  fails("inputs", [](Module& m) { m.entries[1].graph[ValueId{0}].name = "z"; });
  fails("outputs", [](Module& m) { m.entries[1].graph.outputs.pop_back(); });
  fails("written states", [](Module& m) {
    Op& append = m.entries[1].graph[m.entries[1].graph.find("next")];
    append.kind = OpKind::copy;
    append.operands.resize(1);
  });
  // Two inputs, and one whose name reads like both.
  const auto one_name = parse_module(R"(module @m {
  symbol N in [1, 8]
  entry @e(%x: f32[N], %y: f32[N]) -> (%x) where N in [1, 4] {
  }
  entry @e(%"x: f32[N], %y": f32[N]) -> (%"x: f32[N], %y") where N in [5, 8] {
  }
}
)",
                                     "text");
  REQUIRE_FALSE(one_name.has_value());
  CHECK(one_name.error().what.find("V18: entry @e has a variant with the inputs") == 0);
}

TEST_CASE("V19 parts follow one another, and are read when all are there") {
  const auto read = [](std::string_view ops, std::string_view outputs) {
    return parse_module(
        fmt::format(
            "module @m {{\n  entry @e(%x: f16[2, 4], %y: f16[2, 4]) -> ({}) {{\n{}  }}\n}}\n",
            outputs, ops),
        "text");
  };
  const std::string first = "    %a = place %x {axis = 1, begin = 4, size = 8}\n";
  const std::string second = "    %b = place %y, %a {axis = 1, begin = 0, size = 8}\n";
  CHECK(read(first + second, "%b").has_value());
  const auto fails = [&](const std::string& part, const std::string& ops,
                         std::string_view outputs) {
    const auto module = read(ops, outputs);
    REQUIRE_FALSE(module.has_value());
    CHECK_MESSAGE(module.error().what.starts_with("V19: " + part), module.error().what);
  };
  fails("%a is an output, but parts of it are missing", first, "%a");
  fails("%a is an output, but another op has its memory", first + second, "%b, %a");
  fails("%z reads %a, of which parts are missing", first + "    %z = neg %a\n", "%z");
  fails("%z reads %a, whose memory another op has",
        first + second + "    %z = place %y, %a {axis = 1, begin = 0, size = 8}\n", "%b, %z");
  fails("%v reads %a, of which parts are missing",
        first + "    %v = reshape %a {dims = [16]}\n" + second, "%b, %v");
  fails("%b has the base %a, which is no place along axis 1",
        "    %a = concat %x, %y {axis = 1}\n" + second, "%b");
  fails("%b places elements 0 to 4 beside 0 to 4",
        "    %a = place %x {axis = 1, begin = 0, size = 8}\n" + second, "%b");
  fails("%b has the base %a, which is no place along axis 0",
        "    %a = place %x {axis = 1, begin = 0, size = 4}\n"
        "    %b = place %y, %a {axis = 0, begin = 0, size = 2}\n",
        "%b");
  fails("%b places its base in itself",
        "    %a = place %x {axis = 1, begin = 0, size = 4}\n"
        "    %b = place %a, %a {axis = 1, begin = 0, size = 4}\n",
        "%b");
}

}  // namespace sinter::verifier_test
