#include "differential/generate.h"

#include "differential/graph_generator.h"
#include "ir/attention_operands.h"
#include "ir/infer.h"

namespace sinter {
namespace {

// Around the borders of chunks (8), warps (32) and lanes; odd; zero is added separately.
constexpr int64_t kExtents[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 16,
                                17, 24, 31, 32, 33, 40, 64, 65, 100};
// Most extents are of these: a run compiles a kernel once for all graphs that have it.
constexpr int64_t kUsualExtents[] = {1, 8, 17, 32, 64};
constexpr int64_t kLongExtents[] = {127, 128, 257, 300, 513, 1000};
// The largest values of kLong: rows of a warp, of blocks, of clusters; and the usual limit.
constexpr int64_t kLongBounds[] = {40, 300, 1500, 5000, 70000, 140000};
constexpr int64_t kUsualLong = 300;
// The tokens of a call where they may be many. Calls have as few of them as others.
constexpr int64_t kManyTokens = 300;

// Values are data: no name may reach generated text, and none of these may break it.
constexpr std::string_view kStrangeNames[] = {"threadIdx", "}; int x", "float", "\"quoted\"",
                                              "a\\b",      "// note",  "main",  "été"};

/// One of the ends of the symbol's range, 1, or any value up to `usual`.
int64_t any_value(const Symbol& symbol, int64_t usual, Random& random) {
  if (random.chance(15)) return symbol.low;
  if (random.chance(15) && symbol.high <= usual) return symbol.high;
  if (random.chance(5) && symbol.low <= 1 && symbol.multiple == 1) return 1;
  const int64_t m = symbol.multiple;
  return m * random.between((symbol.low + m - 1) / m, std::min(symbol.high, usual) / m);
}

void fill_symbols(Case& result, Random& random) {
  const auto symbol = [](std::string name, int64_t low, int64_t high, int64_t multiple) {
    Symbol made;
    made.name = std::move(name);
    made.low = low, made.high = high, made.multiple = multiple;
    return made;
  };
  const int64_t low = random.chance(35) ? 0 : 1;
  const int64_t some = 12, most = random.chance(40)   ? kFewTokens
                                  : random.chance(85) ? some
                                                      : kManyTokens;
  std::vector<Symbol>& symbols = result.module.symbols;
  symbols = {symbol("N", low, most, 1), symbol("K", random.chance(70) ? 0 : 8, 64, 8),
             symbol("M", 0, most, 1),
             symbol("L", random.chance(20) ? 0 : 1, random.pick(kLongBounds), 1)};
  symbols[kSomeTokens.index].at_most = kTokens;
  for (const Symbol& each : symbols)
    result.symbol_values.push_back(
        any_value(each, random.chance(10) ? kMaxElements : kUsualLong, random));
  int64_t& tokens = result.symbol_values[kTokens.index];
  if (tokens > some) tokens = random.between(low, some);
  int64_t& of_these = result.symbol_values[kSomeTokens.index];
  of_these = std::min(of_these, tokens);
}

/// The case of a seed, whose ops `grow(generator, random)` adds.
template <typename Grow>
Case grown(const char* name, uint64_t seed, Grow grow) {
  Case result;
  result.module.name = name;
  Random random(seed);
  fill_symbols(result, random);
  GraphGenerator generator(result, random.next());
  grow(generator, random);
  generator.choose_outputs();
  if (random.chance(50)) result.recipe.products = Recipe::Products::own;
  return result;
}

}  // namespace

Case generate(uint64_t seed) {
  return grown("random", seed, [](GraphGenerator& generator, Random& random) {
    generator.grow(static_cast<size_t>(random.between(16, 56)));
  });
}

Case generate_quantized(uint64_t seed) {
  for (uint64_t i = 0;; ++i) {
    Case made = generate((seed << 20) + i);
    for (const Weight& weight : made.module.weights)
      if (weight.init[weight.init.outputs.front()].kind == OpKind::pack_codes) return made;
  }
}

Case generate_attention_gradients(uint64_t seed) {
  return grown("gradients", seed, [](GraphGenerator& generator, Random& random) {
    generator.grow_around_gradients(static_cast<size_t>(random.between(1, 10)));
  });
}

Generate generator_of(std::string_view name) {
  if (name == kQuantizedGraphs) return generate_quantized;
  return name == kGradientGraphs ? generate_attention_gradients : generate;
}

GraphGenerator::GraphGenerator(Case& result, uint64_t seed)
    : result_(result), random_(seed), builder_(graph_, result.module.symbols) {
  main_dtype_ = random_.pick(std::array{DType::f32, DType::f32, DType::f16, DType::bf16});
  const int64_t count = random_.between(1, 3);
  for (int64_t i = 0; i < count; ++i) widths_.push_back(any_extent());
  if (random_.chance(15)) widths_.push_back(random_.pick(kLongExtents));
  rows_ = random_.chance(75)  ? Dim(kTokens)
          : random_.chance(8) ? Dim(0)
                              : Dim(mostly({1, 3, 8}, 1, 8));
  strange_names_ = random_.chance(5);
}

void GraphGenerator::grow(size_t count) {
  static constexpr std::pair<void (GraphGenerator::*)(), int> kMakers[] = {
      {&GraphGenerator::elementwise, 33},
      {&GraphGenerator::of_integers, 6},
      {&GraphGenerator::comparison, 3},
      {&GraphGenerator::logical, 6},
      {&GraphGenerator::select, 4},
      {&GraphGenerator::cast, 7},
      {&GraphGenerator::activation, 6},
      {&GraphGenerator::norm, 5},
      {&GraphGenerator::softmax, 3},
      {&GraphGenerator::reduction, 6},
      {&GraphGenerator::axes_reduction, 17},
      {&GraphGenerator::view, 16},
      {&GraphGenerator::sliced_formula, 4},
      {&GraphGenerator::concat, 4},
      {&GraphGenerator::place, 2},
      {&GraphGenerator::copy, 2},
      {&GraphGenerator::generator, 4},
      {&GraphGenerator::ops_of_a_constant, 2},
      {&GraphGenerator::embedding, 6},
      {&GraphGenerator::gather, 3},
      {&GraphGenerator::scatter, 3},
      {&GraphGenerator::experts, 2},
      {&GraphGenerator::append, 9},
      {&GraphGenerator::store, 5},
      {&GraphGenerator::linear, 5},
      {&GraphGenerator::einsum, 13},
      {&GraphGenerator::attention, 4},
      {&GraphGenerator::decode_attention, 2},
      {&GraphGenerator::tiled_attention, 4},
      {&GraphGenerator::sample, 1},
      {&GraphGenerator::rope, 2},
      {&GraphGenerator::pre_norm_block, 3},
      {&GraphGenerator::post_norm_block, 2},
      {&GraphGenerator::primitive_norm, 2},
      {&GraphGenerator::primitive_softmax, 2},
      {&GraphGenerator::label_sum, 1},
      {&GraphGenerator::padded_formula, 1},
      {&GraphGenerator::logits, 1},
      {&GraphGenerator::old_and_new, 3},
      {&GraphGenerator::linear_chain, 15},
      {&GraphGenerator::running_sum, 10},
      {&GraphGenerator::gemv, 1},
      {&GraphGenerator::tiled_linear, 2},
      {&GraphGenerator::quantized, 3},
      {&GraphGenerator::attention_softmax, 1},
      {&GraphGenerator::attention_gradients, 1},
      {&GraphGenerator::fan_out, 2},
      {&GraphGenerator::literal, 5},
      {&GraphGenerator::custom, 6},
  };
  int total = 0;
  for (const auto& [make, weight] : kMakers) total += weight;
  // A bounded number of tries: a maker may find nothing to work on.
  for (int tries = 0; graph_.size() < count && tries < 400; ++tries) {
    int64_t choice = random_.below(total);
    for (const auto& [make, weight] : kMakers) {
      if (choice < weight) {
        (this->*make)();
        break;
      }
      choice -= weight;
    }
  }
}

void GraphGenerator::grow_around_gradients(size_t count) {
  main_dtype_ = random_.pick(std::array{DType::f16, DType::bf16});
  const auto has_gradient = [&] {
    return llvm::any_of(graph_.ops(), [](const Op& op) { return is_attention_gradient(op); });
  };
  for (int tries = 0; tries < 100 && !has_gradient(); ++tries) attention_gradients();
  grow(graph_.size() + count);
}

void GraphGenerator::choose_outputs() {
  const auto users = graph_.users();
  const int keep_unused = random_.chance(70) ? 100 : 40;
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const ValueId id{i};
    const bool leaf = op_class(graph_[id]) == OpClass::leaf;
    if (!alive(id)) continue;
    const int percent = leaf ? 2 : users[i].empty() ? keep_unused : 8;
    if (random_.chance(percent)) graph_.outputs.push_back(id);
  }
  for (uint32_t i = graph_.size(); graph_.outputs.empty() && i-- > 0;)
    if (alive(ValueId{i})) graph_.outputs.push_back(ValueId{i});
  if (random_.chance(10)) graph_.outputs.push_back(random_.pick(graph_.outputs));
  if (random_.chance(40)) overwrite_inputs();
  result_.module.entries.push_back({"main", std::move(graph_)});
}

bool GraphGenerator::alive(ValueId id) const {
  const ValueId root = root_of(graph_, id);
  return root.index >= overwritten_.size() || !overwritten_[root.index];
}

int64_t GraphGenerator::extent(Dim dim) const {
  return dim.is_constant() ? dim.constant() : result_.symbol_values[dim.symbol().index];
}

int64_t GraphGenerator::volume_of(const TensorType& type) const {
  int64_t volume = 1;
  double most_elements = 1;  // where the symbols are largest: a tensor has at most 2^48 bytes
  for (Dim dim : type.dims) {
    volume = std::min(volume * std::min(extent(dim), kMaxElements + 1), kMaxElements + 1);
    most_elements *= static_cast<double>(std::max<int64_t>(most(dim), 1));
  }
  return most_elements > 0x1p46 ? kMaxElements + 1 : volume;
}

GraphGenerator::Value GraphGenerator::pick(const Predicate& wanted) {
  llvm::SmallVector<ValueId, 16> candidates;
  for (ValueId id : values_)
    if (alive(id) && wanted(graph_[id].type)) candidates.push_back(id);
  if (candidates.empty()) return std::nullopt;
  // Mostly recent values, so that chains grow; sometimes any, so that values have several users.
  const int64_t n = static_cast<int64_t>(candidates.size());
  const int64_t from_end =
      random_.chance(50) ? random_.below(std::min<int64_t>(n, 3)) : random_.below(n);
  return candidates[n - 1 - from_end];
}

ValueId GraphGenerator::pick_float() {
  const auto wanted = [](const TensorType& t) { return is_float(t.dtype) && t.rank() >= 1; };
  if (const Value found = pick(wanted); found && !random_.chance(4)) return *found;
  Dims dims{rows_};
  if (random_.chance(80)) dims.push_back(any_dim());
  if (random_.chance(15)) dims.push_back(any_dim());
  return value_of({any_float(), dims});
}

ValueId GraphGenerator::pick_rows() {
  const auto wanted = [&](const TensorType& t) {
    return t.dtype == main_dtype_ && t.rank() == 2 && t.dims[0] == rows_ &&
           t.dims[1].is_constant() && t.dims[1].constant() > 0;
  };
  if (const Value found = pick(wanted); found && !random_.chance(10)) return *found;
  return value_of({main_dtype_, {rows_, Dim(random_.pick(widths_))}});
}

ValueId GraphGenerator::value_of(const TensorType& type) {
  if (random_.chance(50))
    if (const Value found = pick([&](const TensorType& t) { return t == type; })) return *found;
  const bool constant_dims = llvm::all_of(type.dims, [](Dim dim) { return dim.is_constant(); });
  if (constant_dims && is_float(type.dtype) && random_.chance(50)) return weight(type);
  if (random_.chance(10)) return constant(type.dtype, type.dims);
  return input(type);
}

ValueId GraphGenerator::input(TensorType type) {
  const ValueId id = builder_.leaf(OpKind::input, std::move(type), name("x"));
  values_.push_back(id);
  return id;
}

ValueId GraphGenerator::weight(TensorType type) {
  // Half of the weights are made when they are loaded: a cast, the transpose of the file's tensor,
  // a sum.
  Weight made{name("w"), type, {}};
  Builder init(made.init, result_.module.symbols);
  TensorType stored = type;
  const bool transposed = type.rank() == 2 && random_.chance(30);
  if (transposed) std::swap(stored.dims[0], stored.dims[1]);
  if (random_.chance(30)) stored.dtype = any_float();
  ValueId value = init.op(OpKind::file, {},
                          Attributes()
                              .set(AttrName::dims, stored.dims)
                              .set(AttrName::dtype, stored.dtype)
                              .set(AttrName::tensor, made.name));
  if (transposed) value = init.transpose(value, {1, 0});
  if (random_.chance(10)) value = init.add(init.constant(1.0, stored.dtype), value);
  made.init.outputs.push_back(init.cast(value, type.dtype));
  const ValueId id = builder_.leaf(OpKind::weight, std::move(type), made.name);
  result_.module.weights.push_back(std::move(made));
  values_.push_back(id);
  return id;
}

ValueId GraphGenerator::state(TensorType type) {
  const std::string state_name = name("c");
  result_.module.states.push_back({state_name, type});
  const ValueId id = builder_.leaf(OpKind::state, std::move(type), state_name);
  values_.push_back(id);
  versions_.push_back(id);
  return id;
}

GraphGenerator::Value GraphGenerator::op(OpKind kind, llvm::ArrayRef<ValueId> operands,
                                         Attributes attrs) {
  llvm::SmallVector<TensorType, 3> types;
  for (ValueId id : operands) types.push_back(graph_[id].type);
  const auto type = infer_type(kind, types, attrs, result_.module.symbols);
  if (!type || type->rank() > 8 || volume_of(*type) > kMaxElements) return std::nullopt;
  const ValueId id = builder_.op(kind, operands, std::move(attrs), name("v"));
  values_.push_back(id);
  return id;
}

ValueId GraphGenerator::must(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs) {
  const ValueId id = builder_.op(kind, operands, std::move(attrs), name("v"));
  values_.push_back(id);
  return id;
}

ValueId GraphGenerator::apart(ValueId id) {
  SINTER_CHECK(values_.back() == id, "value {} is not the newest", id.index);
  values_.pop_back();
  return id;
}

Dim GraphGenerator::any_dim() {
  if (random_.chance(5)) return Dim(0);
  if (random_.chance(15)) return any_symbol();
  return Dim(random_.chance(80) ? random_.pick(widths_) : any_extent());
}

Dim GraphGenerator::any_symbol() {
  return Dim(random_.pick(std::array{kKeys, kKeys, kKeys, kTokens, kTokens, kSomeTokens, kLong}));
}

int64_t GraphGenerator::any_extent() {
  return random_.chance(92) ? random_.pick(kUsualExtents) : random_.pick(kExtents);
}

int64_t GraphGenerator::mostly(std::initializer_list<int64_t> usual, int64_t low, int64_t high) {
  return random_.chance(90) ? random_.pick(std::vector<int64_t>(usual))
                            : random_.between(low, high);
}

DType GraphGenerator::any_float() {
  return random_.chance(85) ? main_dtype_
                            : random_.pick(std::array{DType::f32, DType::f16, DType::bf16});
}

DType GraphGenerator::any_dtype() {
  return random_.chance(88)
             ? any_float()
             : random_.pick(std::array{DType::i32, DType::i32, DType::i64, DType::i1});
}

std::string GraphGenerator::name(std::string_view role) {
  const std::string plain = fmt::format("{}{}", role, next_name_++);
  return strange_names_ ? fmt::format("{} {}", random_.pick(kStrangeNames), plain) : plain;
}

}  // namespace sinter
