// Row numbers: inputs, which data fills with valid ones, and values that the graph computes; and
// the ops that read and write rows by them.
#include <array>
#include <map>

#include "differential/graph_generator.h"
#include "ir/graph_rewriter.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "ir/verify_graph.h"

namespace sinter {

int64_t GraphGenerator::most(Dim dim) const {
  return dim.is_constant() ? dim.constant() : result_.module.symbols[dim.symbol().index].high;
}

ValueId GraphGenerator::integer(double value) {
  return must(OpKind::constant, {},
              Attributes()
                  .set(AttrName::dims, Dims())
                  .set(AttrName::dtype, DType::i32)
                  .set(AttrName::value, value));
}

/// Rows of a state to which calls append `count` rows.
int64_t GraphGenerator::state_rows(Dim count) {
  return std::max(mostly({12, 16}, 12, 20), most(count));
}

/// Rows of a table or a cache: sometimes a symbol that is not 0.
Dim GraphGenerator::any_rows(int64_t usual) {
  const Dim rows = random_.chance(50) ? Dim(kLong) : Dim(kKeys);
  return random_.chance(12) && extent(rows) > 0 ? rows : Dim(usual);
}

/// [count] numbers of rows of a value that has that many; each may occur often. nullopt where there
/// is none.
GraphGenerator::Value GraphGenerator::ids(Dim count, Dim rows) {
  if (extent(rows) == 0 && extent(count) > 0) return std::nullopt;
  if (!rows.is_constant() || rows.is(0) || random_.chance(50)) return input({DType::i32, {count}});
  const ValueId x = any_integers(count, rows.constant());
  return random_.chance(kIdsOutsidePercent) ? x : clamped(x, rows.constant());
}

/// [count] integers that a graph may take for row numbers: chosen tokens, truth values, positions,
/// arithmetic, entries of a table.
ValueId GraphGenerator::any_integers(Dim count, int64_t rows) {
  using enum OpKind;
  const TensorType type{DType::i32, {count}}, real{DType::f32, {count}};
  const auto counted = [&] {
    return must(iota, {},
                Attributes().set(AttrName::dims, type.dims).set(AttrName::axis, int64_t{0}));
  };
  const auto truths = [&] {
    return must(random_.pick(std::array{less, less_equal, equal}), {value_of(type), integer(3)});
  };
  const auto as_integers = Attributes().set(AttrName::dtype, DType::i32);
  switch (random_.below(7)) {
    case 0: {  // the likeliest token, or a drawn one
      const ValueId scores = value_of({any_float(), {count, Dim(rows)}});
      const ValueId zero = must(constant, {},
                                Attributes()
                                    .set(AttrName::dims, real.dims)
                                    .set(AttrName::dtype, DType::f32)
                                    .set(AttrName::value, 0.0));
      return must(sample, {scores, random_.chance(50) ? zero : value_of(real), value_of(type),
                           value_of(real), value_of(type), value_of(type)});
    }
    case 1:
      return must(cast, {truths()}, as_integers);
    case 2:  // how many there were before
      return must(cumulative_sum, {must(cast, {truths()}, as_integers)}, scan_attributes(0));
    case 3:
      return must(random_.pick(std::array{add, sub, mul}), {value_of(type), value_of(type)});
    case 4:
      return must(random_.pick(std::array{add, sub, mul}),
                  {counted(), integer(static_cast<double>(random_.between(-2, rows)))});
    case 5: {  // a table of row numbers
      const int64_t length = mostly({3, 8}, 1, 12);
      const ValueId table = value_of({DType::i32, {Dim(length), Dim(1)}});
      const ValueId entries = must(embedding, {table, *ids(count, Dim(length))});
      return must(reshape, {entries}, Attributes().set(AttrName::dims, type.dims));
    }
    default:
      return must(where, {truths(), value_of(type), counted()});
  }
}

/// Each integer, or the nearest row.
ValueId GraphGenerator::clamped(ValueId x, int64_t rows) {
  using enum OpKind;
  const ValueId low = integer(0), high = integer(static_cast<double>(rows - 1));
  if (random_.chance(50)) return must(minimum, {must(maximum, {x, low}), high});
  return must(maximum, {low, must(minimum, {high, x})});
}

/// [count] different rows of a state or a cache, from a first one on, or in any order; nullopt
/// where there are too few.
GraphGenerator::Value GraphGenerator::slots(Dim count, Dim all) {
  using enum OpKind;
  if (most(count) > most(all) || extent(count) > extent(all)) return std::nullopt;
  if (!all.is_constant() || most(count) > all.constant() || random_.chance(60))
    return this->input({DType::i32, {count}});
  const int64_t rows = all.constant();
  const Dims dims{count};
  ValueId counted =
      must(iota, {}, Attributes().set(AttrName::dims, dims).set(AttrName::axis, int64_t{0}));
  if (random_.chance(20)) {
    const ValueId ones = must(constant, {},
                              Attributes()
                                  .set(AttrName::dims, dims)
                                  .set(AttrName::dtype, DType::i32)
                                  .set(AttrName::value, 1.0));
    counted =
        must(cumulative_sum, {ones},
             Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::exclusive, int64_t{1}));
  }
  const int64_t free = rows - most(count);
  switch (random_.below(4)) {
    case 0:
      return counted;
    case 1:
      return must(add, {counted, integer(static_cast<double>(random_.between(0, free)))});
    case 2:
      return must(sub, {integer(static_cast<double>(rows - 1)), counted});
    default:  // after a length that is an input
      return must(add, {counted, clamped(value_of({DType::i32, {Dim(1)}}), free + 1)});
  }
}

void GraphGenerator::embedding() {
  // A table without rows has no row number: it is only read where there is nothing to read.
  const int64_t rows = random_.chance(3) ? 0 : mostly({3, 16}, 1, 20);
  const Dim count = rows == 0 ? Dim(0) : random_.chance(80) ? rows_ : any_dim();
  const TensorType type{any_dtype(), {rows == 0 ? Dim(0) : any_rows(rows), any_dim()}};
  if (volume_of(type) > kMaxElements) return;
  if (const Value numbers = ids(count, type.dims[0]))
    op(OpKind::embedding, {value_of(type), *numbers});
}

void GraphGenerator::gather() {
  const Value x = pick([](const TensorType& t) { return t.rank() >= 1; });
  if (!x) return;
  Dims dims = graph_[*x].type.dims;
  const int64_t axis = random_.below(static_cast<int64_t>(dims.size()));
  const Dim rows = dims[axis];
  dims[axis] = random_.chance(40) ? Dim(1) : any_dim();
  if (volume_of({DType::i32, dims}) > kMaxElements) return;
  Value index;
  if (rows.is_constant() && extent(rows) > 0 && random_.chance(50)) {  // the same along other axes
    const ValueId numbers = clamped(any_integers(dims[axis], rows.constant()), rows.constant());
    Dims alone(dims.size(), Dim(1));
    alone[axis] = dims[axis];
    const ValueId column =
        must(OpKind::reshape, {numbers}, Attributes().set(AttrName::dims, alone));
    index = must(OpKind::broadcast, {column}, Attributes().set(AttrName::dims, dims));
  } else if (extent(rows) > 0 || volume_of({DType::i32, dims}) == 0) {
    index = input({DType::i32, dims});
  }
  if (index) op(OpKind::gather, {*x, *index}, Attributes().set(AttrName::axis, axis));
}

void GraphGenerator::scatter() {
  const Dim count = random_.chance(80) ? rows_ : any_dim();
  const Dim rows = any_rows(mostly({1, 3, 16}, 1, 40));
  const TensorType updates{any_float(), {count, any_dim()}};
  if (volume_of(updates) > kMaxElements) return;
  if (volume_of({updates.dtype, {rows, updates.dims[1]}}) > kMaxElements) return;
  if (const Value numbers = ids(count, rows))
    op(OpKind::scatter_add, {*numbers, value_of(updates)}, Attributes().set(AttrName::rows, rows));
}

void GraphGenerator::experts() {
  const DType dtype = any_float();
  const int64_t matrices = mostly({1, 4, 8}, 1, 40), rows = mostly({8, 16}, 1, 70),
                length = mostly({8, 32}, 1, 40);
  const int64_t chosen = 1 + random_.below(std::min<int64_t>(matrices, 8));
  const TensorType x{dtype, {rows_, Dim(chosen), Dim(length)}};
  const TensorType w{dtype, {Dim(matrices), Dim(rows), Dim(length)}};
  if (volume_of(x) > kMaxElements || volume_of(w) > kMaxElements ||
      volume_of({dtype, {rows_, Dim(chosen), Dim(rows)}}) > kMaxElements)
    return;
  const TensorType numbers{DType::i32, {rows_, Dim(chosen)}};
  const Value experts = random_.chance(70)
                            ? op(OpKind::top_k, {value_of({any_float(), {rows_, Dim(matrices)}})},
                                 Attributes().set(AttrName::count, chosen))
                            : Value(input(numbers));
  if (!experts) return;
  const ValueId of_x = random_.chance(50) ? value_of(x) : value_of({dtype, {rows_, Dim(length)}});
  if (random_.chance(60)) sorted_experts(*experts, matrices, of_x, value_of(w));
  ValueId of_w;
  Attributes attrs;
  if (matrices * rows <= kMaxElements / 16 && random_.chance(40)) {
    const CodeFormat format = any_format();
    of_w = builder_.reshape(packed_weight(format, matrices * rows, length),
                            {matrices, rows, row_words(format, length)});
    attrs.set(AttrName::size, Dim(length)).set(AttrName::codes, to_string(format));
  } else {
    of_w = value_of(w);
  }
  const Value products = op(OpKind::expert_linear, {of_x, of_w, *experts}, std::move(attrs));
  if (!products || random_.chance(30)) return;
  const Value read = random_.chance(50) ? op(OpKind::silu, {*products}) : products;
  const ValueId weights = value_of({random_.chance(50) ? dtype : DType::f32, {rows_, Dim(chosen)}});
  if (read) op(OpKind::expert_sum, {*read, weights});
}

/// Rows in the order of their experts, and products of runs of them, where these can be.
void GraphGenerator::sorted_experts(ValueId experts, int64_t matrices, ValueId x, ValueId w) {
  const auto sort = [&](OpKind kind) {
    return op(kind, {experts}, Attributes().set(AttrName::count, matrices));
  };
  const Value positions = sort(OpKind::sorted_positions), places = sort(OpKind::sorted_places),
              ends = sort(OpKind::run_ends);
  if (!positions || !places || !ends || graph_[x].type.rank() != 3) return;
  const Value rows = op(OpKind::embedding, {x, *positions});
  const Value products = rows ? op(OpKind::grouped_linear, {*rows, w, *ends}) : std::nullopt;
  if (products) op(OpKind::embedding, {*products, *places});
}

/// `operands`: the version that the op overwrites, and what it writes.
GraphGenerator::Value GraphGenerator::write(OpKind kind, std::vector<ValueId> operands) {
  const ValueId version = operands[0];
  const Value next = op(kind, std::move(operands));
  if (!next) return next;
  overwritten_.resize(graph_.size(), false);
  overwritten_[version.index] = true;
  for (ValueId& newest : versions_)
    if (newest == version) newest = *next;
  return next;
}

void GraphGenerator::append() {
  const Value any =
      random_.chance(15) ? pick([](const TensorType& t) { return t.rank() >= 1; }) : std::nullopt;
  const ValueId value = any ? *any : pick_float();
  if (llvm::is_contained(versions_, root_of(graph_, value))) return;
  TensorType type = graph_[value].type;
  if (type.dims.empty()) return;
  const Dim count = type.dims.front();
  for (Dim dim : DimsRef(type.dims).drop_front())
    if (!dim.is_constant() && !random_.chance(30)) return;
  std::optional<ValueId> version;
  for (ValueId candidate : versions_) {
    TensorType rows = graph_[candidate].type;
    if (rows.rank() == 0) continue;
    rows.dims[0] = count;
    if (rows == type && random_.chance(60)) version = candidate;
  }
  type.dims[0] = version ? graph_[*version].type.dims[0] : any_rows(state_rows(count));
  if (volume_of(type) > kMaxElements) return;
  const Value slot = slots(count, type.dims[0]);
  if (slot) write(OpKind::kv_append, {version ? *version : state(type), value, *slot});
}

/// A state that is replaced by a formula of its elements, of these in another order, or of others.
void GraphGenerator::store() {
  using enum OpKind;
  const ValueId value = pick_float();
  const TensorType type = graph_[value].type;
  if (llvm::is_contained(versions_, root_of(graph_, value)) || volume_of(type) > kMaxElements)
    return;
  std::optional<ValueId> known;
  for (ValueId candidate : versions_)
    if (graph_[candidate].type == type && random_.chance(60)) known = candidate;
  const ValueId version = known ? *known : this->state(type);
  ValueId kept = version;
  if (random_.chance(40)) kept = must(mul, {kept, this->constant(type.dtype, {})});
  if (type.rank() == 2 && type.dims[0] == type.dims[1] && random_.chance(50))
    kept = must(transpose, {kept}, Attributes().set(AttrName::axes, std::vector<int64_t>{1, 0}));
  if (type.rank() > 0 && random_.chance(20)) {
    const auto last = static_cast<int64_t>(type.rank()) - 1;
    kept = must(reduce_max, {kept}, Attributes().set(AttrName::axes, std::vector<int64_t>{last}));
  }
  const ValueId next = must(random_.pick(std::array{add, sub, mul, maximum}), {kept, value});
  if (random_.chance(30)) must(neg, {version});
  write(OpKind::store, {version, next});
  if (random_.chance(40)) must(mul, {next, value});
}

// Reads a state before and after a write and brings both together, so that fusing the reads would
// move one of them across the write.
void GraphGenerator::old_and_new() {
  using enum OpKind;
  const ValueId value = pick_rows();
  const TensorType type{main_dtype_, {any_rows(state_rows(rows_)), graph_[value].type.dims[1]}};
  if (volume_of(type) > kMaxElements) return;
  const Value slot = slots(rows_, type.dims[0]);
  if (!slot) return;
  const ValueId old_version = this->state(type);
  const auto read = [&](ValueId version) {
    const ValueId x = random_.chance(50)
                          ? must(random_.pick(std::array{neg, abs, tanh, relu}), {version})
                          : version;
    if (random_.chance(50)) return must(mul, {x, x});
    return must(
        sub, {x, must(reduce_max, {x}, Attributes().set(AttrName::axes, std::vector<int64_t>{1}))});
  };
  const ValueId before = read(old_version);
  Value sign;
  if (random_.chance(50)) sign = must(random_.pick(std::array{neg, abs}), {old_version});
  Value newest = write(kv_append, {old_version, value, *slot});
  if (!newest) return;
  const ValueId after = read(*newest);
  if (sign) must(exp_neg_abs, {*sign});
  if (random_.chance(30)) {
    newest = write(kv_append, {*newest, must(neg, {value}), *slot});
    must(add, {after, read(*newest)});
  }
  must(add, {before, after});
}

/// Inputs become states that an op writes as soon as all have read them, so that what a pass
/// computes later than the module does would read the new version. Some are read through views. Row
/// numbers stay inputs.
void GraphGenerator::overwrite_inputs() {
  std::vector<uint32_t> last_reader(graph_.size());
  std::vector<bool> stays(graph_.size());
  for (ValueId output : graph_.outputs) stays[root_of(graph_, output).index] = true;
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const Op& op = graph_.ops()[i];
    if (op_class(op) == OpClass::view) continue;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const uint32_t root = root_of(graph_, op.operands[k]).index;
      last_reader[root] = i;
      if (named_rows(graph_, op, k) || operand_role(op, k).kind == OperandRole::stream)
        stays[root] = true;
    }
  }
  std::multimap<uint32_t, ValueId> overwritten;  // by the last reader
  for (ValueId id : graph_.inputs) {
    if (!stays[id.index] && last_reader[id.index] > 0 && random_.chance(40))
      overwritten.emplace(last_reader[id.index], id);
  }
  for (const auto& [reader, id] : overwritten) {
    graph_[id].kind = OpKind::state;
    result_.module.states.push_back({graph_[id].name, graph_[id].type});
  }
  Graph graph;
  GraphRewriter rewriter(graph_, graph);
  Builder builder(graph, result_.module.symbols);
  const auto through_views = [&](ValueId state) {
    const Dims dims = graph[state].type.dims;
    Dims apart = dims;
    apart.insert(apart.begin(), Dim(1));
    return builder.reshape(builder.reshape(state, apart, name("v")), dims, name("v"));
  };
  rewriter.rewrite_ops([&](ValueId id, Op op) {
    const bool is_input = op.kind == OpKind::input;
    for (ValueId& operand : op.operands)
      if (op_class(op) == OpClass::elementwise && graph[operand].kind == OpKind::state &&
          graph[operand].type.rank() < kMaxAxes && random_.chance(50))
        operand = through_views(operand);
    const ValueId added = rewriter.add(std::move(op));
    if (is_input) graph.inputs.push_back(added);
    for (auto [at, end] = overwritten.equal_range(id.index); at != end; ++at) {
      TensorType rows = graph_[at->second].type;
      if (rows.rank() == 0 || random_.chance(30)) {
        builder.op(OpKind::store,
                   {rewriter[at->second], builder.leaf(OpKind::input, rows, name("x"))}, {},
                   name("v"));
        continue;
      }
      const Dim all = rows.dims[0];
      if (all.is_constant() && !all.is(0) && random_.chance(50)) rows.dims[0] = Dim(1);
      const ValueId slot = builder.leaf(OpKind::input, {DType::i32, {rows.dims[0]}}, name("x"));
      builder.op(OpKind::kv_append,
                 {rewriter[at->second], builder.leaf(OpKind::input, rows, name("x")), slot}, {},
                 name("v"));
    }
    return added;
  });
  for (ValueId id : graph_.outputs) graph.outputs.push_back(rewriter[id]);
  graph_ = std::move(graph);
}

}  // namespace sinter
