#include "differential/random_tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "differential/random.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "ir/scalar_math.h"

namespace sinter {
namespace {

// Float bits that break careless arithmetic: zeros, infinities, NaN, subnormals of each type, the
// largest of f16 and what rounds to infinity there, large and tiny.
constexpr uint32_t kSpecialBits[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0x00000001, 0x80000001, 0x33800000, 0x387fc000, 0x477fe000,
                                     0x477ff000, 0x7f7fffff, 0xff7fffff, 0x00800000, 0x42b17218};
constexpr int kSpecialPercent = 4;  // of the elements, in a case that has any

/// The values that an i32 input must have for the ops that read it.
struct Rows {
  int64_t limit = -1;              // values are 0 .. limit-1; -1: any integer
  bool distinct = false;           // slots of an append
  bool ends = false;               // of runs: ascending
  int64_t last_end = -1;           // how large they may be; values that also name rows: limit-1
  std::optional<ValueId> at_most;  // the first key of a token: seldom after this other value's
};

class DataMaker {
 public:
  DataMaker(const Case& test, uint64_t seed)
      : test_(test),
        graph_(test.module.entries[0].graph),
        random_(seed),
        special_(random_.chance(16)) {}

  Result<CaseData> make() {
    CaseData data;
    for (const Weight& weight : test_.module.weights)
      for (const Op& op : weight.init.ops())
        if (op.kind == OpKind::file) {
          SINTER_LET(tensor, numbers(op.type));
          data.files[op.attrs.get<std::string>(AttrName::tensor)] = std::move(tensor);
        }
    // First keys last: they depend on the slots.
    data.inputs.resize(graph_.inputs.size());
    for (const bool dependent : {false, true})
      for (size_t i = 0; i < graph_.inputs.size(); ++i) {
        const TensorType& type = graph_[graph_.inputs[i]].type;
        const Rows rows = rows_read_by(graph_.inputs[i]);
        if (rows.at_most.has_value() != dependent) continue;
        Result<HostTensor> tensor = rows.at_most ? first_keys(type, rows, data.inputs)
                                    : rows.limit >= 0 || rows.ends ? row_numbers(type, rows)
                                                                   : numbers(type);
        if (!tensor) return tl::make_unexpected(std::move(tensor.error()));
        data.inputs[i] = std::move(*tensor);
      }
    return data;
  }

 private:
  Rows rows_read_by(ValueId input) const;
  Result<HostTensor> empty(const TensorType& type) const;
  Result<HostTensor> numbers(const TensorType& type);
  Result<HostTensor> row_numbers(const TensorType& type, const Rows& rows);
  Result<HostTensor> first_keys(const TensorType& type, const Rows& rows,
                                llvm::ArrayRef<HostTensor> inputs);
  float number();

  const Case& test_;
  const Graph& graph_;
  Random random_;
  bool special_;
};

Rows DataMaker::rows_read_by(ValueId input) const {
  Rows rows;
  const auto limit = [&](int64_t& least, const SymExpr& extent) {
    const int64_t n = *extent.evaluate(test_.symbol_values);
    least = least < 0 ? n : std::min(least, n);
  };
  for (const Op& op : graph_.ops())
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const OperandRole role = operand_role(op, i);
      const std::optional<SymExpr> named = named_rows(graph_, op, i);
      if (root_of(graph_, op.operands[i]) != input || !named) continue;
      const bool is_end = role.kind == OperandRole::group;
      limit(is_end ? rows.last_end : rows.limit, *named);
      rows.distinct = rows.distinct || role.kind == OperandRole::slot;
      rows.ends = rows.ends || is_end;
      if (role.kind == OperandRole::first)
        rows.at_most = root_of(graph_, operand_with(op, OperandRole::last));
    }
  return rows;
}

Result<HostTensor> DataMaker::empty(const TensorType& type) const {
  std::vector<int64_t> dims;
  for (Dim dim : type.dims)
    dims.push_back(dim.is_constant() ? dim.constant() : test_.symbol_values[dim.symbol().index]);
  return make_tensor(type.dtype, std::move(dims));
}

float DataMaker::number() {
  if (special_ && random_.chance(kSpecialPercent))
    return math::bits_float(random_.pick(kSpecialBits));
  return 2 * random_.unit();
}

Result<HostTensor> DataMaker::numbers(const TensorType& type) {
  SINTER_LET(tensor, empty(type));
  for (int64_t i = 0; i < tensor.volume(); ++i) {
    switch (type.dtype) {
      case DType::f32:
        tensor.data<float>()[i] = number();
        break;
      case DType::f16:
        tensor.data<uint16_t>()[i] = math::float_to_f16(number());
        break;
      case DType::bf16:
        tensor.data<uint16_t>()[i] = math::float_to_bf16(number());
        break;
      case DType::i32:
        tensor.data<int32_t>()[i] = static_cast<int32_t>(
            special_ && random_.chance(kSpecialPercent) ? random_.next() : random_.between(-9, 20));
        break;
      case DType::i64:
        tensor.data<int64_t>()[i] =
            special_ && random_.chance(kSpecialPercent)
                ? static_cast<int64_t>(random_.next() << 32 | (random_.next() & 0xffffffffu))
                : random_.between(-9, 20);
        break;
      case DType::i1:
        tensor.data<uint8_t>()[i] = static_cast<uint8_t>(random_.below(2));
        break;
    }
  }
  return std::move(tensor);
}

Result<HostTensor> DataMaker::row_numbers(const TensorType& type, const Rows& rows) {
  SINTER_LET(tensor, empty(type));
  const int64_t count = tensor.volume();
  // Ends that name no rows may be the number of rows.
  const int64_t limit = !rows.ends       ? rows.limit
                        : rows.limit < 0 ? rows.last_end + 1
                                         : std::min(rows.limit, rows.last_end + 1);
  if (count > 0 && (limit == 0 || (rows.distinct && limit < count)))
    return fail(fmt::format("{} row numbers below {}", count, limit));
  std::vector<int32_t> all(static_cast<size_t>(limit));
  std::iota(all.begin(), all.end(), 0);
  int32_t* const numbers = tensor.data<int32_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = rows.distinct ? random_.between(i, limit - 1) : random_.below(limit);
    numbers[i] = all[at];
    if (rows.distinct) std::swap(all[i], all[at]);
  }
  if (rows.ends) std::sort(numbers, numbers + count);
  return std::move(tensor);
}

Result<HostTensor> DataMaker::first_keys(const TensorType& type, const Rows& rows,
                                         llvm::ArrayRef<HostTensor> inputs) {
  SINTER_LET(tensor, empty(type));
  const auto slot = llvm::find(graph_.inputs, *rows.at_most);
  for (int64_t i = 0; i < tensor.volume(); ++i) {
    // Slots that are no input are an iota. All sequences may have the same.
    int64_t last = i % std::max<int64_t>(1, tensor.dims.back());
    if (slot != graph_.inputs.end()) {
      const HostTensor& slots = inputs[slot - graph_.inputs.begin()];
      last = slots.data<int32_t>()[i % slots.volume()];
    }
    // A token whose first key comes after its last sees none.
    const int64_t first = random_.chance(50)  ? 0
                          : random_.chance(4) ? std::min(last + 1, rows.limit - 1)
                                              : random_.between(0, last);
    tensor.data<int32_t>()[i] = static_cast<int32_t>(first);
  }
  return std::move(tensor);
}

}  // namespace

Result<CaseData> random_data(const Case& test, uint64_t seed) {
  return DataMaker(test, seed).make();
}

CaseFiles::CaseFiles(const CaseData& data) : data_(data) {}

std::optional<TensorType> CaseFiles::find(std::string_view name) const {
  const auto file = data_.files.find(std::string(name));
  if (file == data_.files.end()) return std::nullopt;
  TensorType type{file->second.dtype, {}};
  for (int64_t extent : file->second.dims) type.dims.push_back(extent);
  return type;
}

Status CaseFiles::read(std::string_view name, std::span<std::byte> out) const {
  const HostTensor& tensor = data_.files.at(std::string(name));
  SINTER_CHECK(out.size() == tensor.bytes.size(), "{} bytes", out.size());
  if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), out.size());
  return {};
}

}  // namespace sinter
