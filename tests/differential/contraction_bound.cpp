#include "differential/contraction_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/attention_dropout.h"
#include "ir/attention_operands.h"
#include "ir/code_format.h"
#include "ir/infer.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit = 0x1p-24;     // unit roundoff of float32
constexpr double kMin = 0x1p-149;     // its smallest positive value
constexpr double kRange = 0x1.fp126;  // sums of at most this much stay finite in float32

/// The largest relative error of n roundings in a row (Higham, Accuracy and Stability of Numerical
/// Algorithms, lemma 3.1).
double gamma(int64_t n) {
  const double roundings = static_cast<double>(n) * kUnit;
  return roundings < 0.5 ? roundings / (1 - roundings) : kInfinity;
}

/// The op alone, in float64; the result is rounded to float32.
Result<std::vector<double>> evaluate_alone(const Graph& graph, Op op,
                                           llvm::ArrayRef<const HostTensor*> operands,
                                           llvm::ArrayRef<Symbol> symbols,
                                           llvm::ArrayRef<int64_t> symbol_values) {
  Graph alone;
  for (ValueId& operand : op.operands) {
    operand = alone.add(
        Op{OpKind::input, graph[operand].type, {}, {}, fmt::format("operand{}", alone.size())});
    alone.inputs.push_back(operand);
  }
  alone.outputs.push_back(alone.add(std::move(op)));
  SINTER_LET(results, evaluate(alone, symbols, symbol_values, operands, {.precise = true}));
  return to_doubles(results[0]);
}

/// |x|, and 0 for infinities and NaN; integers, which name matrices, as they are.
Result<HostTensor> magnitudes(const HostTensor& tensor) {
  if (!is_float(tensor.dtype)) return tensor;
  SINTER_LET(result, make_tensor(DType::f32, tensor.dims));
  const std::vector<double> values = to_doubles(tensor);
  for (size_t i = 0; i < values.size(); ++i)
    result.data<float>()[i] =
        std::isfinite(values[i]) ? static_cast<float>(std::abs(values[i])) : 0.0f;
  return std::move(result);
}

/// Products, or elements, that are added for an element of a linear, an expert_linear, an einsum or
/// a reduce_sum.
Result<int64_t> summed(const Op& op, const HostTensor& a) {
  if (op.kind == OpKind::linear || op.kind == OpKind::expert_linear) return a.dims.back();
  if (op.kind == OpKind::reduce_sum) {
    int64_t count = 1;
    for (int64_t axis : op.attrs.get<std::vector<int64_t>>(AttrName::axes))
      count *= a.dims[static_cast<size_t>(axis)];
    return count;
  }
  SINTER_LET(spec, parse_einsum(op.attrs.get<std::string>(AttrName::spec)));
  int64_t count = 1;
  for (const EinsumAxis& axis : spec.axes)
    if (axis.result < 0) count *= a.dims[static_cast<size_t>(axis.a)];
  return count;
}

/// A sum of products, or of elements, in any order, is as far from its value as gamma times the sum
/// of their magnitudes.
Result<std::vector<double>> sum_errors(const Graph& graph, const Op& op,
                                       llvm::ArrayRef<const HostTensor*> operands,
                                       llvm::ArrayRef<Symbol> symbols,
                                       llvm::ArrayRef<int64_t> symbol_values) {
  std::vector<HostTensor> positive;
  for (const HostTensor* operand : operands) {
    SINTER_LET(tensor, magnitudes(*operand));
    positive.push_back(std::move(tensor));
  }
  SINTER_LET(errors, evaluate_alone(graph, op, addresses_of(positive), symbols, symbol_values));
  SINTER_LET(count, summed(op, *operands[0]));
  std::vector<double> largest_sums = errors;
  if (op.operands.size() > 1 && graph[op.operands[1]].kind == OpKind::dequantize) {
    // Products with codes are added before the sum is scaled, by 0 perhaps.
    const double largest = code_info(code_format(graph[op.operands[1]].attrs).code).largest;
    HostTensor& codes = positive[1];
    std::fill_n(codes.data<float>(), codes.volume(), static_cast<float>(largest));
    SINTER_LET(unscaled, evaluate_alone(graph, op, addresses_of(positive), symbols, symbol_values));
    for (size_t i = 0; i < unscaled.size(); ++i)
      largest_sums[i] = std::max(largest_sums[i], unscaled[i]);
  }
  // A product, the additions, the bias, and the float32 of both evaluations here.
  const double relative = gamma(count + 4);
  for (size_t i = 0; i < errors.size(); ++i)
    errors[i] = largest_sums[i] <= kRange ? relative * errors[i] + static_cast<double>(count) * kMin
                                          : kInfinity;
  return errors;
}

/// The mask of an attention: numbers that are added to scores, or truth values.
class MaskValues {
 public:
  MaskValues(const Op& op, llvm::ArrayRef<const HostTensor*> operands) {
    if (!has_mask(op)) return;
    const HostTensor& mask = *operands[kMaskOperand];
    values_ = to_doubles(mask);
    dims_ = mask.dims;
    leading_.assign(operands[0]->dims.begin(), operands[0]->dims.end() - 2);
    hides_ = mask.dtype == DType::i1;
  }

  bool is_there() const { return !dims_.empty(); }
  /// The number that the mask adds to a score; -inf where the key is hidden.
  double at(int64_t sequence, int64_t head, int64_t token, int64_t key) const {
    llvm::SmallVector<int64_t, 6> index(dims_.size());
    const size_t batch = dims_.size() - 3;
    for (size_t axis = batch; axis-- > 0; sequence /= leading_[axis])
      index[axis] = sequence % leading_[axis];
    index[batch] = head, index[batch + 1] = token, index[batch + 2] = key;
    int64_t place = 0;
    for (size_t axis = 0; axis < dims_.size(); ++axis)
      place = place * dims_[axis] + (dims_[axis] == 1 ? 0 : index[axis]);
    const double value = values_[static_cast<size_t>(place)];
    return !hides_ ? value : value != 0 ? 0 : -kInfinity;
  }

 private:
  std::vector<double> values_;
  std::vector<int64_t> dims_, leading_;
  bool hides_ = false;
};

/// Scores are sums of products; an error E of the scores makes a factor e^±2E of a probability; the
/// probabilities may be rounded to the element type; the result is a sum of products again.
class AttentionErrors {
 public:
  AttentionErrors(const Op& op, llvm::ArrayRef<const HostTensor*> operands)
      : op_(op),
        q_(to_doubles(*operands[0])),
        keys_(to_doubles(*operands[1])),
        values_(to_doubles(*operands[2])),
        first_(operands[3]->data<int32_t>()),
        last_(operands[4]->data<int32_t>()),
        mask_(op, operands),
        all_tokens_(operands[3]->volume()),
        tokens_(operands[3]->dims.back()),
        rows_(operands[1]->dims[operands[1]->dims.size() - 2]),
        heads_(op.attrs.get<int64_t>(AttrName::heads)),
        kv_heads_(op.attrs.get<int64_t>(AttrName::kv_heads)),
        width_(operands[1]->dims.back() / kv_heads_),
        value_width_(operands[2]->dims.back() / kv_heads_),
        dropped_scale_(scale_of_dropout(op)) {}

  std::vector<double> run() const {
    std::vector<double> errors;
    for (int64_t token = 0; token < all_tokens_; ++token)
      for (int64_t head = 0; head < heads_; ++head) add(token, head, errors);
    return errors;
  }

 private:
  /// The factor of the weights that a dropout leaves.
  static double scale_of_dropout(const Op& op) {
    const AttrValue* dropout = op.attrs.find(AttrName::dropout);
    return dropout ? dropout_scale(dropout_threshold(std::get<double>(*dropout))) : 1;
  }
  struct Score {
    double value, error;
  };
  /// The keys that a token sees, and how wrong the scores may be of those whose weight is not 0.
  struct Scores {
    std::vector<int64_t> keys;
    std::vector<double> values;
    double largest = -kInfinity, error = 0;

    int64_t count() const { return static_cast<int64_t>(values.size()); }
  };

  Score dot_product(int64_t token, int64_t head, int64_t key) const {
    double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < width_; ++i) {
      const double product = q_[(token * heads_ + head) * width_ + i] *
                             keys_[(row_of(token, key) * kv_heads_ + kv_head(head)) * width_ + i];
      sum += product, magnitude += std::abs(product);
    }
    const double scale = op_.attrs.get<double>(AttrName::scale);
    // The sum is scaled when it is complete.
    const double largest = magnitude * std::max(1.0, std::abs(scale));
    sum *= scale, magnitude *= std::abs(scale);
    if (!(largest <= kRange)) return {sum, kInfinity};
    const double error = gamma(width_ + 8) * magnitude + static_cast<double>(width_) * kMin;
    if (!op_.attrs.has(AttrName::softcap)) return {sum, error};
    const double cap = op_.attrs.get<double>(AttrName::softcap);
    const double capped = std::tanh(sum / cap) * cap;  // its derivative is at most 1
    return {capped, error + gamma(16) * std::abs(capped)};
  }

  Score score(int64_t token, int64_t head, int64_t key) const {
    Score score = dot_product(token, head, key);
    if (!mask_.is_there()) return score;
    const double added = mask_.at(token / tokens_, head, token % tokens_, key);
    score.value += added;
    if (added == -kInfinity) return score;
    return {score.value, score.error + gamma(2) * std::abs(score.value)};
  }

  std::vector<int64_t> seen_by(int64_t token) const {
    const int64_t last = last_[token], sink = attention_sink(op_.attrs);
    int64_t first = first_[token];
    if (op_.attrs.has(AttrName::window))
      first = std::max(first, last + 1 - op_.attrs.get<int64_t>(AttrName::window));
    std::vector<int64_t> keys;
    for (int64_t key = sink > 0 ? 0 : first; key <= last; ++key)
      if (key >= first || key < sink) keys.push_back(key);
    return keys;
  }

  Scores scores(int64_t token, int64_t head) const {
    Scores found{.keys = seen_by(token), .values = {}};
    std::vector<double> errors;
    double least = -kInfinity;  // that the largest score may be found to be
    for (const int64_t key : found.keys) {
      const Score one = score(token, head, key);
      found.values.push_back(one.value);
      errors.push_back(one.error);
      found.largest = std::max(found.largest, one.value);
      least = std::max(least, one.value - one.error);
    }
    // exp of less than -104 is 0 in float32.
    for (size_t i = 0; i < errors.size(); ++i)
      if (!(found.values[i] + errors[i] < least - 104))
        found.error = std::max(found.error, errors[i]);
    return found;
  }

  /// Rows that the token does not see may be multiplied too, with their probability 0.
  double largest_value(int64_t token, int64_t head, int64_t i) const {
    double most = 0;
    for (int64_t key = 0; key < rows_; ++key)
      most = std::max(most, std::abs(value(token, key, head, i)) < kInfinity ? 0 : kInfinity);
    return most;
  }

  void add(int64_t token, int64_t head, std::vector<double>& errors) const {
    Scores seen = scores(token, head);
    const int64_t count = seen.count();
    const bool none = seen.largest == -kInfinity && seen.error < kInfinity;
    double sum = 0;
    for (double& one : seen.values) sum += one = std::exp(one - seen.largest);
    // Arguments of exp down to -104, below which it is 0 in float32, are rounded too.
    const double relative = std::expm1(4 * seen.error + 512 * kUnit) + gamma(16 * (count + 8)) +
                            4 * tolerance(op_.type.dtype, 1).relative;
    for (int64_t i = 0; i < value_width_; ++i) {
      double magnitude = 0, most = largest_value(token, head, i);
      if (none) {  // NaN, or 0 times a value
        errors.push_back(op_.attrs.is_set(AttrName::empty_zero) ? most : 0);
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        const double size = std::abs(value(token, seen.keys[static_cast<size_t>(j)], head, i));
        magnitude += seen.values[static_cast<size_t>(j)] / sum * size;
        most = std::max(most, size);
      }
      // A probability that is too small for the element type loses 2^-25 at most (f16), and every
      // operation on a number that is too small for float32 half of the least one.
      const auto keys = static_cast<double>(count);
      double bound = relative * magnitude + keys * 0x1p-25 * most + (4 * keys + 16) * kMin;
      // The values may be added before the division by the sum of their weights, each at most 1.
      if (keys * most > kRange) bound = kInfinity;
      bound *= dropped_scale_;
      errors.push_back(bound < kInfinity ? bound : kInfinity);
    }
  }

  double value(int64_t token, int64_t key, int64_t head, int64_t i) const {
    return values_[(row_of(token, key) * kv_heads_ + kv_head(head)) * value_width_ + i];
  }
  int64_t kv_head(int64_t head) const { return head / (heads_ / kv_heads_); }
  /// A row of the token's sequence, counted over all sequences.
  int64_t row_of(int64_t token, int64_t key) const { return token / tokens_ * rows_ + key; }

  const Op& op_;
  std::vector<double> q_, keys_, values_;
  const int32_t *first_, *last_;
  MaskValues mask_;
  int64_t all_tokens_, tokens_, rows_, heads_, kv_heads_, width_, value_width_;
  double dropped_scale_;
};

/// The numbers, rounded once to a float type.
Result<std::vector<double>> rounded(const std::vector<double>& values, DType dtype) {
  SINTER_LET(tensor, make_tensor(dtype, {static_cast<int64_t>(values.size())}));
  store_run(values.data(), tensor.volume(), storage_of(dtype), tensor.bytes.data());
  return to_doubles(tensor);
}

/// First and last row that each token of an attention sees, of those that are there. What a plan
/// computes does not depend on numbers beyond them, and the evaluation of the op refuses them.
struct SeenRows {
  HostTensor first, last;
  SeenRows(const Op& op, llvm::ArrayRef<const HostTensor*> operands)
      : first(*operands[3]), last(*operands[4]) {
    const int64_t rows = operands[1]->dims[operands[1]->dims.size() - 2];
    const AttrValue* window = op.attrs.find(AttrName::window);
    for (int64_t i = 0; i < first.volume(); ++i) {
      int32_t &from = first.data<int32_t>()[i], &to = last.data<int32_t>()[i];
      int64_t least = std::max<int64_t>(from, 0);
      if (window) least = std::max(least, int64_t{to} - std::get<int64_t>(*window) + 1);
      to = static_cast<int32_t>(std::min<int64_t>(to, rows - 1));
      // A token that sees none stays one.
      from = static_cast<int32_t>(std::min<int64_t>(least, std::max<int64_t>(rows, from)));
    }
  }
};

}  // namespace

Result<BoundedValue> bounded_contraction(const Graph& graph, const Op& op,
                                         llvm::ArrayRef<const HostTensor*> operands,
                                         llvm::ArrayRef<Symbol> symbols,
                                         llvm::ArrayRef<int64_t> symbol_values) {
  BoundedValue bounded;
  llvm::SmallVector<const HostTensor*> used(operands.begin(), operands.end());
  std::optional<SeenRows> seen;
  if (op.kind == OpKind::attention) {
    seen.emplace(op, operands);
    used[3] = &seen->first;
    used[4] = &seen->last;
  }
  SINTER_LET(values, evaluate_alone(graph, op, used, symbols, symbol_values));
  bounded.values = std::move(values);
  if (op.kind == OpKind::attention) {
    bounded.errors = AttentionErrors(op, used).run();
  } else {
    SINTER_LET(errors, sum_errors(graph, op, operands, symbols, symbol_values));
    bounded.errors = std::move(errors);
  }
  return bounded;
}

Status check_bound(std::string_view what, const HostTensor& tensor, const BoundedValue& bounded,
                   BoundedElements& elements) {
  const size_t count = bounded.values.size();
  SINTER_CHECK(tensor.volume() == static_cast<int64_t>(count), "{} elements, {} values",
               tensor.volume(), count);
  std::vector<double> low(count), high(count);
  for (size_t i = 0; i < count; ++i) {
    low[i] = bounded.values[i] - bounded.errors[i];
    high[i] = bounded.values[i] + bounded.errors[i];
  }
  SINTER_LET(least, rounded(low, tensor.dtype));
  SINTER_LET(most, rounded(high, tensor.dtype));
  const std::vector<double> actual = to_doubles(tensor);
  for (size_t i = 0; i < count; ++i) {
    if (bounded.errors[i] == kInfinity) {
      ++elements.unbounded;
      continue;
    }
    ++elements.compared;
    const bool inside = std::isnan(bounded.values[i])
                            ? std::isnan(actual[i])
                            : least[i] <= actual[i] && actual[i] <= most[i];
    if (!inside)
      return fail(fmt::format("element {} is {}, float64 gives {}, rounded {} .. {}", i, actual[i],
                              bounded.values[i], least[i], most[i]),
                  std::string(what), "", ExitCode::check_failed);
  }
  return {};
}

}  // namespace sinter
