#include "runtime/random_inputs.h"

#include <algorithm>

#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  // low .. high, of fewer than 2^32 values.
  int64_t integer(int64_t low, int64_t high) {
    const auto count = static_cast<uint64_t>(high - low) + 1;
    return low + static_cast<int64_t>(((bits() >> 32) * count) >> 32);
  }
  // Four 16-bit numbers added: a bell of variance 4 / 12 around 2, in exact arithmetic.
  double bell() {
    uint64_t x = bits();
    uint64_t sum = 0;
    for (int i = 0; i < 4; ++i, x >>= 16) sum += x & 0xffff;
    return (static_cast<double>(sum) * 0x1p-16 - 2) * 1.7320508075688772;
  }

 private:
  uint64_t state_;
};

// The uses of an integer input.
struct Role {
  bool slots = false, last = false, first = false, ends = false;
  int64_t rows = INT64_MAX;  // of the smallest table or state that it points into
};

// Integers that name no row are 0 .. 7.
constexpr int64_t kOtherIntegers = 8;

class InputMaker {
 public:
  InputMaker(const Graph& graph, llvm::ArrayRef<int64_t> symbol_values)
      : graph_(graph), values_(symbol_values) {}

  Result<HostTensor> make(ValueId input, uint64_t seed) const {
    const Op& op = graph_[input];
    std::vector<int64_t> dims;
    for (Dim dim : op.type.dims) dims.push_back(extent(dim));
    if (op.type.dtype != DType::i32)
      return random_tensor(op.type.dtype, std::move(dims), seed, {1, 0, kOtherIntegers - 1});
    const Role role = role_of(input);
    if (role.ends) return ends(std::move(dims), seed, role.rows);
    if (!role.slots && !role.last && !role.first) {
      const int64_t rows = role.rows == INT64_MAX ? kOtherIntegers : role.rows;
      if (rows == 0 && !llvm::is_contained(dims, 0))
        return fail(fmt::format("%{} points into an empty table", op.name));
      return random_tensor(op.type.dtype, std::move(dims), seed, {1, 0, rows - 1});
    }
    SINTER_LET(tensor, make_tensor(op.type.dtype, std::move(dims)));
    // The tokens of each sequence see the first rows of its keys; an append writes other rows for
    // each token.
    const int64_t tokens = role.slots || tensor.dims.empty() ? tensor.volume() : tensor.dims.back();
    if (tokens > role.rows)
      return fail(fmt::format("{} tokens, but the state has {} rows", tokens, role.rows),
                  "%" + op.name, "make the state larger");
    Random random(seed);
    int32_t first = 0;
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      const auto token = static_cast<int32_t>(i % tokens);
      if (random.integer(0, 7) == 0 || token == 0) first = token;
      tensor.data<int32_t>()[i] = role.slots || role.last ? token : first;
    }
    return std::move(tensor);
  }

 private:
  /// Ends of runs of `rows` rows, some of them empty.
  static Result<HostTensor> ends(std::vector<int64_t> dims, uint64_t seed, int64_t rows) {
    SINTER_LET(tensor, make_tensor(DType::i32, std::move(dims)));
    Random random(seed);
    int32_t* const data = tensor.data<int32_t>();
    for (int64_t i = 0; i < tensor.volume(); ++i)
      data[i] = static_cast<int32_t>(random.integer(0, rows));
    std::sort(data, data + tensor.volume());
    return std::move(tensor);
  }

  int64_t extent(Dim dim) const {
    return dim.is_constant() ? dim.constant() : values_[dim.symbol().index];
  }

  Role role_of(ValueId input) const {
    Role role;
    for (const Op& op : graph_.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const OperandRole as = operand_role(op, i);
        const std::optional<SymExpr> named = named_rows(graph_, op, i);
        if (!named || !as.is_address() || root_of(graph_, op.operands[i]) != input) continue;
        role.slots |= as.kind == OperandRole::slot;
        role.last |= as.kind == OperandRole::last;
        role.first |= as.kind == OperandRole::first;
        role.ends |= as.kind == OperandRole::group;
        role.rows = std::min(role.rows, named->evaluate(values_).value_or(INT64_MAX));
      }
    return role;
  }

  const Graph& graph_;
  llvm::ArrayRef<int64_t> values_;
};

}  // namespace

Result<HostTensor> random_tensor(DType dtype, std::vector<int64_t> dims, uint64_t seed,
                                 const RandomRange& range) {
  SINTER_LET(tensor, make_tensor(dtype, std::move(dims)));
  Random random(seed);
  const int64_t count = tensor.volume();
  if (dtype == DType::i32) {
    for (int64_t i = 0; i < count; ++i)
      tensor.data<int32_t>()[i] = static_cast<int32_t>(random.integer(range.low, range.high));
  } else if (dtype == DType::i64) {
    for (int64_t i = 0; i < count; ++i)
      tensor.data<int64_t>()[i] = random.integer(range.low, range.high);
  } else if (dtype == DType::i1) {
    for (int64_t i = 0; i < count; ++i)
      tensor.bytes[static_cast<size_t>(i)] = std::byte(random.bits() >> 63);
  } else {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = random.bell() * range.scale;
    store_run<double>(values.data(), count, storage_of(dtype), tensor.bytes.data());
  }
  return std::move(tensor);
}

Result<std::vector<HostTensor>> random_inputs(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                                              llvm::ArrayRef<int64_t> symbol_values,
                                              uint64_t seed) {
  SINTER_CHECK(symbols.size() == symbol_values.size(), "{} values for {} symbols",
               symbol_values.size(), symbols.size());
  const InputMaker maker(graph, symbol_values);
  Random seeds(seed);
  std::vector<HostTensor> inputs;
  for (ValueId input : graph.inputs) {
    SINTER_LET(tensor, maker.make(input, seeds.bits()));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace sinter
