// One random op at a time. A proposal that breaks a constraint of the op is dropped.
#include <array>
#include <limits>

#include "differential/graph_generator.h"

namespace sinter {

namespace {

/// The elementwise ops of that many floats whose result is a float.
std::vector<OpKind> ops_of_floats(int operands) {
  std::vector<OpKind> kinds;
  const auto add = [&](OpKind kind, const OpInfo& info) {
    if (info.min_operands == operands && info.result == OpInfo::Result::same &&
        (info.domain == OpInfo::Domain::real || info.domain == OpInfo::Domain::number))
      kinds.push_back(kind);
  };
#define SINTER_ELEMENTWISE(name, ...) add(OpKind::name, op_info(OpKind::name));
#include "ir/ops.def"
  return kinds;
}

}  // namespace

void GraphGenerator::elementwise() {
  using enum OpKind;
  const ValueId a = pick_float();
  if (random_.chance(35)) {
    const OpKind kind = random_.chance(30) ? random_.pick(std::array{neg, abs, exp_neg_abs, tanh})
                                           : random_.pick(ops_of_floats(1));
    const bool signs = kind == exp_neg_abs && random_.chance(50);
    op(kind, {signs ? must(random_.pick(std::array{neg, abs}), {a}) : a});
    return;
  }
  const OpKind kind = random_.chance(40) ? random_.pick(std::array{add, add, sub, mul, mul})
                                         : random_.pick(ops_of_floats(2));
  const TensorType type = graph_[a].type;
  ValueId b = a;
  if (random_.chance(15)) {
    b = this->constant(type.dtype, {});
  } else if (random_.chance(20)) {
    b = value_of({type.dtype, {type.dims.back()}});  // one row for all
  } else if (random_.chance(10)) {
    TensorType column = type;  // one element for a row
    column.dims.back() = 1;
    b = value_of(column);
  } else if (random_.chance(20)) {
    b = value_of(type);
  } else if (const Value found = pick([&](const TensorType& t) { return t.dtype == type.dtype; })) {
    b = *found;
  }
  if (random_.chance(50)) {
    op(kind, {a, b});
  } else {
    op(kind, {b, a});
  }
}

void GraphGenerator::of_integers() {
  using enum OpKind;
  Value x = pick([](const TensorType& t) { return is_integer(t.dtype); });
  if (!x || random_.chance(30)) {
    const DType dtype = random_.chance(50) ? DType::i32 : DType::i64;
    const ValueId other = pick_float();
    x = random_.chance(50) ? op(OpKind::cast, {other}, Attributes().set(AttrName::dtype, dtype))
                           : value_of({dtype, graph_[other].type.dims});
    if (!x) return;
  }
  if (random_.chance(20)) {
    op(random_.pick(std::array{neg, abs}), {*x});
    return;
  }
  const TensorType type = graph_[*x].type;
  const ValueId y = random_.chance(60) ? this->constant(type.dtype, {}) : value_of(type);
  op(random_.pick(std::array{add,         sub,        mul,         maximum, minimum, div_floor,
                             div_floor,   mod_floor,  mod_floor,   bit_xor, bit_xor, bit_and,
                             bit_and,     bit_xor,    bit_or,      bit_and, bit_or,  shift_left,
                             shift_right, shift_left, shift_right, bit_xor, bit_or}),
     {*x, y});
}

void GraphGenerator::comparison() {
  using enum OpKind;
  const Value a = pick([](const TensorType& t) { return t.dtype != DType::i1; });
  if (!a) return;
  const TensorType type = graph_[*a].type;
  const ValueId b = random_.chance(40) ? this->constant(type.dtype, {}) : value_of(type);
  op(random_.pick(std::array{less, less_equal, equal}), {*a, b});
}

void GraphGenerator::logical() {
  using enum OpKind;
  const Value a = pick([](const TensorType& t) { return t.dtype == DType::i1; });
  if (!a) return comparison();
  if (random_.chance(30)) {
    op(logical_not, {*a});
    return;
  }
  const Value b = pick([](const TensorType& t) { return t.dtype == DType::i1; });
  op(random_.pick(std::array{logical_and, logical_or}), {*a, *b});
}

void GraphGenerator::select() {
  const Value condition = pick([](const TensorType& t) { return t.dtype == DType::i1; });
  if (!condition) return comparison();
  const TensorType wanted{any_dtype(), graph_[*condition].type.dims};
  const ValueId a = random_.chance(60) ? value_of(wanted) : pick_float();
  const ValueId b =
      random_.chance(50) ? constant(graph_[a].type.dtype, {}) : value_of(graph_[a].type);
  op(OpKind::where, {*condition, a, b});
}

void GraphGenerator::cast() {
  const Value x = pick([](const TensorType&) { return true; });
  if (!x) return;
  const DType from = graph_[*x].type.dtype;
  DType to = random_.pick(std::array{DType::f32, DType::f16, DType::bf16});
  if (random_.chance(from == DType::i1 ? 40 : 15))
    to = random_.pick(std::array{DType::i32, DType::i64, DType::i64, DType::i1});
  const Value y = op(OpKind::cast, {*x}, Attributes().set(AttrName::dtype, to));
  if (!y || !random_.chance(15)) return;
  // Back to the type, seen with another axis.
  const Dims dims = graph_[*x].type.dims;
  Dims apart = dims;
  apart.insert(apart.begin(), Dim(1));
  const Value seen = op(OpKind::reshape, {*y}, Attributes().set(AttrName::dims, apart));
  if (!seen) return;  // too many axes
  const ValueId back = must(OpKind::cast, {*seen}, Attributes().set(AttrName::dtype, from));
  must(OpKind::reshape, {back}, Attributes().set(AttrName::dims, dims));
}

void GraphGenerator::activation() {
  using enum OpKind;
  op(random_.pick(std::array{silu, gelu, gelu_tanh, quick_gelu, relu}), {pick_float()});
}

void GraphGenerator::norm() {
  const Value x = pick([](const TensorType& t) {
    return is_float(t.dtype) && t.rank() >= 1 && t.dims.back().is_constant() &&
           !t.dims.back().is(0);
  });
  if (x) normalize(*x);
}

void GraphGenerator::softmax() { op(OpKind::softmax, {pick_float()}); }

void GraphGenerator::reduction() {
  const Value whole =
      random_.chance(10)
          ? pick([](const TensorType& t) { return t.dtype == DType::i32 && t.rank() >= 1; })
          : std::nullopt;
  const ValueId x = whole ? *whole : pick_float();
  const auto rank = static_cast<int64_t>(graph_[x].type.rank());
  std::vector<int64_t> axes;
  if (random_.chance(60)) {
    axes = {rank - 1};
  } else {
    for (int64_t axis = 0; axis < rank; ++axis)
      if (random_.chance(50)) axes.push_back(axis);
    if (axes.empty()) axes = {random_.below(rank)};
  }
  op(random_.chance(60) ? OpKind::reduce_sum : OpKind::reduce_max, {x},
     Attributes().set(AttrName::axes, axes));
}

void GraphGenerator::view() {
  // Chains of views are what index maps must get right.
  for (int64_t count = random_.chance(40) ? random_.between(2, 4) : 1; count > 0; --count) {
    const Value x = pick([](const TensorType& t) { return t.rank() >= 1; });
    if (!x) return;
    view_of(*x);
  }
}

/// The value through a view, or the value where none is found.
ValueId GraphGenerator::view_of(ValueId x) {
  const size_t before = values_.size();
  switch (random_.below(4)) {
    case 0:
      reshape(x);
      break;
    case 1:
      slice(x);
      break;
    case 2:
      broadcast(x);
      break;
    default:
      transpose(x);
  }
  return values_.size() > before ? values_.back() : x;
}

void GraphGenerator::transpose(ValueId x) {
  const auto rank = static_cast<int64_t>(graph_[x].type.rank());
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) axes[i] = i;
  for (int64_t i = rank - 1; i > 0; --i) std::swap(axes[i], axes[random_.below(i + 1)]);
  op(OpKind::transpose, {x}, Attributes().set(AttrName::axes, axes));
}

void GraphGenerator::reshape(ValueId x) {
  Dims dims = graph_[x].type.dims;
  const auto axis = static_cast<size_t>(random_.below(static_cast<int64_t>(dims.size())));
  const Dim dim = dims[axis];
  if (random_.chance(40) && axis + 1 < dims.size() && dim.is_constant() &&
      dims[axis + 1].is_constant()) {
    dims[axis] = dim.constant() * dims[axis + 1].constant();  // merge two axes
    dims.erase(dims.begin() + axis + 1);
  } else if (dim.is_constant() && dim.constant() > 1 && random_.chance(80)) {
    llvm::SmallVector<int64_t, 8> factors;
    for (int64_t f = 2; f <= dim.constant(); ++f)
      if (dim.constant() % f == 0) factors.push_back(f);
    const int64_t factor = random_.pick(factors);
    dims[axis] = dim.constant() / factor;
    dims.insert(dims.begin() + axis + 1, Dim(factor));
    if (random_.chance(30) && dims.size() > 2) {  // merge across the new border
      const size_t at = axis > 0 ? axis - 1 : axis + 1;
      if (at + 1 < dims.size() && dims[at].is_constant() && dims[at + 1].is_constant()) {
        dims[at] = dims[at].constant() * dims[at + 1].constant();
        dims.erase(dims.begin() + at + 1);
      }
    }
  } else {
    dims.insert(dims.begin() + axis, Dim(1));
  }
  op(OpKind::reshape, {x}, Attributes().set(AttrName::dims, dims));
}

void GraphGenerator::slice(ValueId x) {
  const Dims& dims = graph_[x].type.dims;
  const int64_t axis = random_.below(static_cast<int64_t>(dims.size()));
  Dim taken(1);
  int64_t begin = 0;
  if (dims[axis].is_constant()) {
    const int64_t extent = dims[axis].constant();
    const bool none = extent == 0 || random_.chance(extent == 1 ? 50 : 5);
    const int64_t size = none ? 0 : mostly({1, (extent + 1) / 2}, 1, extent);
    taken = Dim(size);
    begin = mostly({0, extent - size}, 0, extent - size);
  } else if (dims[axis] == rows_ && random_.chance(50)) {
    taken = Dim(kSomeTokens);
  }
  op(OpKind::slice, {x},
     Attributes().set(AttrName::axis, axis).set(AttrName::begin, begin).set(AttrName::size, taken));
}

/// A formula that slices alone read, and a formula of each slice.
void GraphGenerator::sliced_formula() {
  using enum OpKind;
  const ValueId x =
      random_.chance(50) ? value_of({any_float(), {Dim(1), any_dim()}}) : pick_float();
  const ValueId y = random_.chance(50) ? must(random_.pick(std::array{neg, abs}), {x})
                                       : must(random_.pick(std::array{add, mul}), {x, x});
  apart(y);
  for (int64_t count = random_.chance(70) ? 1 : 2; count > 0; --count) {
    const size_t before = values_.size();
    this->slice(y);
    if (values_.size() > before) op(tanh, {apart(values_.back())});
  }
}

void GraphGenerator::broadcast(ValueId x) {
  Dims dims = graph_[x].type.dims;
  bool changed = false;
  for (Dim& dim : dims)
    if (dim.is(1) && random_.chance(70)) dim = any_dim(), changed = true;
  if (!changed || random_.chance(20)) dims.insert(dims.begin(), any_dim());
  op(OpKind::broadcast, {x}, Attributes().set(AttrName::dims, dims));
}

void GraphGenerator::concat() {
  const Value any =
      random_.chance(15) ? pick([](const TensorType& t) { return t.rank() >= 1; }) : std::nullopt;
  const ValueId first = any ? *any : pick_float();
  const TensorType type = graph_[first].type;
  const int64_t axis = random_.below(static_cast<int64_t>(type.rank()));
  llvm::SmallVector<ValueId, 4> operands{first};
  for (int64_t count = random_.between(0, 3); count > 0; --count) {
    TensorType wanted = type;
    if (random_.chance(50)) wanted.dims[axis] = random_.pick(widths_);
    const Value found = pick([&](const TensorType& t) {
      if (t.rank() != type.rank()) return false;
      TensorType aligned = t;
      aligned.dims[axis] = type.dims[axis];
      return aligned == type;
    });
    operands.push_back(found && random_.chance(70) ? *found : value_of(wanted));
  }
  op(OpKind::concat, operands, Attributes().set(AttrName::axis, axis));
}

/// A value of parts, each of which is placed behind those before it, or in front of them.
void GraphGenerator::place() {
  const ValueId first = pick_float();
  const TensorType type = graph_[first].type;
  if (type.rank() == 0) return;
  const int64_t axis = random_.below(static_cast<int64_t>(type.rank()));
  if (!type.dims[axis].is_constant()) return;
  llvm::SmallVector<ValueId, 4> parts{first};
  for (int64_t count = random_.between(0, 3); count > 0; --count) {
    TensorType wanted = type;
    if (random_.chance(50)) wanted.dims[axis] = random_.pick(widths_);
    parts.push_back(value_of(wanted));
  }
  place_parts(parts, axis);
}

void GraphGenerator::place_parts(llvm::ArrayRef<ValueId> parts, int64_t axis) {
  TensorType type = graph_[parts[0]].type;
  const auto extent = [&](ValueId part) { return graph_[part].type.dims[axis].constant(); };
  int64_t size = 0, low = 0, high = 0;
  for (ValueId part : parts) size += extent(part);
  type.dims[axis] = size;
  if (volume_of(type) > kMaxElements) return;
  // Parts from `start` on go upwards, the others downwards.
  const auto start = static_cast<size_t>(random_.below(static_cast<int64_t>(parts.size())));
  for (ValueId part : parts.take_front(start)) low += extent(part);
  high = low;
  size_t below = start, above = start;
  ValueId placed;
  while (below > 0 || above < parts.size()) {
    const bool up = below == 0 || (above < parts.size() && random_.chance(50));
    const ValueId part = up ? parts[above++] : parts[--below];
    if (!up) low -= extent(part);
    Attributes attrs;
    attrs.set(AttrName::axis, axis)
        .set(AttrName::begin, up ? high : low)
        .set(AttrName::size, Dim(size));
    if (up) high += extent(part);
    llvm::SmallVector<ValueId, 2> operands{part};
    if (placed.valid()) operands.push_back(placed);
    const ValueId next = must(OpKind::place, operands, std::move(attrs));
    overwritten_.resize(graph_.size(), false);
    if (placed.valid()) overwritten_[placed.index] = true;
    placed = next;
  }
}

void GraphGenerator::copy() {
  if (const Value x = pick([](const TensorType&) { return true; })) op(OpKind::copy, {*x});
}

/// A number that a text may have; `unusual` of a hundred are not ordinary.
double GraphGenerator::any_number(int unusual) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  // Near the ends of the types' ranges, beyond them, and what is no number.
  if (random_.chance(unusual))
    return random_.pick(std::array{1e38, -1e38, 3.4028235e38, -3.5e38, 1e300, 65519.0, 65520.0,
                                   -65520.0, 1e-40, 1e-300, 2147483647.0, -2147483648.0, kInfinity,
                                   kInfinity, -kInfinity, -kInfinity, kNan, kNan});
  return random_.pick(
      std::array{0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-6, 0.1, -3.25, 1000.0, 65504.0});
}

/// An integer that no double is, or the least i64.
Number GraphGenerator::any_long() {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  return random_.pick(std::array{kOdd, -kOdd, (int64_t{1} << 62) + 1, INT64_MAX, INT64_MIN,
                                 INT64_MIN + 1, random_.between(kOdd, INT64_MAX / 2) | 1});
}

ValueId GraphGenerator::constant(DType dtype, Dims dims) {
  Number value = any_number(12);
  if (is_integer(dtype) && !random_.chance(8)) value = random_.between(-3, 20);
  if (dtype == DType::i1) value = random_.below(2);
  if (dtype == DType::i64 && random_.chance(30)) value = any_long();
  return must(OpKind::constant, {},
              Attributes()
                  .set(AttrName::dims, dims)
                  .set(AttrName::dtype, dtype)
                  .set(AttrName::value, value));
}

void GraphGenerator::generator() {
  const Dims dims{random_.chance(50) ? rows_ : any_dim(), any_dim()};
  if (random_.chance(70)) {
    op(OpKind::iota, {},
       Attributes().set(AttrName::dims, dims).set(AttrName::axis, random_.below(2)));
  } else {
    constant(any_dtype(), dims);
  }
}

/// Ops of a constant alone, through views, which passes fold; a kernel that reads memory.
void GraphGenerator::ops_of_a_constant() {
  ValueId x = constant(any_float(), {any_dim(), any_dim()});
  for (int64_t count = random_.between(1, 4); count > 0; --count) {
    Value y;
    if (random_.chance(40)) {
      y = op(random_.pick(std::array{OpKind::neg, OpKind::abs}), {x});
    } else if (random_.chance(50)) {
      Dims dims = graph_[x].type.dims;
      dims.insert(dims.begin() + random_.below(static_cast<int64_t>(dims.size()) + 1), Dim(1));
      y = op(OpKind::reshape, {x}, Attributes().set(AttrName::dims, dims));
    } else {
      y = view_of(x);
    }
    if (y) x = *y;
  }
  const auto rank = static_cast<int64_t>(graph_[x].type.rank());
  if (random_.chance(50)) op(OpKind::cumulative_sum, {x}, scan_attributes(random_.below(rank)));
  // Of one rank; no pass takes its operand for its value.
  if (random_.chance(50))
    op(OpKind::all_reduce, {x}, Attributes().set(AttrName::group, std::string("tp")));
}

void GraphGenerator::literal() {
  const int64_t count = random_.chance(4) ? 0 : random_.between(1, 12);
  std::vector<Number> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(random_.chance(60) ? static_cast<double>(random_.between(-8, 8)) / 4
                                        : any_number(40));
  const DType dtype = random_.chance(10) ? DType::i64 : any_dtype();
  for (Number& value : values)
    if (dtype == DType::i64 && random_.chance(70)) value = any_long();
  op(OpKind::literal, {},
     Attributes()
         .set(AttrName::dims, Dims{Dim(count)})
         .set(AttrName::dtype, dtype)
         .set(AttrName::values, values));
}

/// A value with many readers of all kinds, some of which are added up again.
void GraphGenerator::fan_out() {
  using enum OpKind;
  const ValueId x = pick_float();
  const TensorType type = graph_[x].type;
  Value sum;
  for (int64_t readers = random_.between(kManyReaders, kManyReaders + 10); readers > 0; --readers) {
    Value y;
    switch (random_.below(8)) {
      case 0:
        y = op(random_.pick(std::array{reduce_sum, reduce_max}), {x}, last_axis(x));
        break;
      case 1:
        view_of(x);
        break;
      case 2:
        y = op(OpKind::cast, {x}, Attributes().set(AttrName::dtype, any_float()));
        break;
      case 3:
        y = op(random_.pick(std::array{add, sub, mul, maximum}), {x, value_of(type)});
        break;
      case 4:
        y = op(random_.pick(std::array{less, equal}), {x, this->constant(type.dtype, {})});
        break;
      default:
        y = op(random_.pick(std::array{neg, abs, tanh, sigmoid, silu, relu, sin}), {x});
    }
    if (!y || graph_[*y].type != type || !random_.chance(60)) continue;
    sum = sum ? op(add, {*sum, *y}) : y;
    if (!sum) return;
  }
}

void GraphGenerator::rope() {
  const int64_t heads = random_.between(1, 3), width = 2 * mostly({1, 4}, 1, 5);
  rotate(value_of({main_dtype_, {rows_, Dim(heads * width)}}), heads);
}

}  // namespace sinter
