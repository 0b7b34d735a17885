#include "driver/generate/finite_logits.h"

#include <cmath>
#include <cstring>

#include "driver/text_table.h"
#include "ir/scalar_math.h"

namespace sinter {
namespace {

/// Numbers of this magnitude round to infinity; 0: the type has no infinity.
double rounds_to_infinity(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65520;
    case DType::bf16:
      return 0x1.FFp127;
    case DType::f32:
      return 0x1.FFFFFFp127;
    default:
      return 0;
  }
}

template <typename Bits>
Bits bits_at(const std::byte* bytes, size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

double element(DType dtype, const std::byte* bytes, size_t i) {
  switch (dtype) {
    case DType::f16:
      return math::f16_to_float(bits_at<uint16_t>(bytes, i));
    case DType::bf16:
      return math::bf16_to_float(bits_at<uint16_t>(bytes, i));
    default:
      return bits_at<float>(bytes, i);
  }
}

std::string coordinates(size_t index, const Dims& dims) {
  std::string text;
  for (size_t axis = dims.size(); axis-- > 0;) {
    const auto extent = static_cast<size_t>(dims[axis].constant());
    text = fmt::format("{}{}{}", index % extent, text.empty() ? "" : ", ", text);
    index /= extent;
  }
  return "[" + text + "]";
}

/// An element that is not finite, and what to do.
struct BadElement {
  std::string what, hint;
};

/// The first such element of a tensor that is computed with as `computed`.
Result<std::optional<BadElement>> first_infinite(const TensorSource& source,
                                                 const std::string& name, const TensorType& type,
                                                 DType computed) {
  if (rounds_to_infinity(type.dtype) == 0) return std::nullopt;
  const double own = rounds_to_infinity(type.dtype), other = rounds_to_infinity(computed);
  const double limit = other == 0 ? own : std::min(own, other);
  int64_t count = 1;
  for (const Dim& dim : type.dims) count *= dim.constant();
  std::vector<std::byte> bytes(static_cast<size_t>(storage_bytes(type.dtype, count)));
  SINTER_TRY(source.read(name, bytes));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const double value = element(type.dtype, bytes.data(), i);
    if (std::abs(value) < limit) continue;
    const std::string what = fmt::format("element {} of tensor {} is {}", coordinates(i, type.dims),
                                         printable(name), std::isnan(value) ? NAN : value);
    if (std::abs(value) < own)
      return BadElement{fmt::format("{}, infinite as {}", what, to_string(computed)),
                        "compute in a type of larger range: --dtype bf16 or fp32"};
    return BadElement{what, "the file is damaged: download or export the model again"};
  }
  return std::nullopt;
}

Result<std::optional<BadElement>> first_infinite_weight(const Model& model) {
  if (!model.tensors) return std::nullopt;
  for (const Weight& weight : model.module.weights)
    for (const Op& op : weight.init.ops()) {
      if (op.kind != OpKind::file) continue;
      const DType computed = weight.init[weight.init.outputs[0]].type.dtype;
      SINTER_LET(bad, first_infinite(*model.tensors, op.attrs.get<std::string>(AttrName::tensor),
                                     op.type, computed));
      if (bad) return bad;
    }
  return std::nullopt;
}

}  // namespace

Status check_chosen(int32_t token, int64_t length, std::string_view label) {
  if (token >= 0) return {};  // else it is kNoToken of op `sample`
  return fail(fmt::format("{}the logits after {} are not finite", label,
                          counted(static_cast<uint64_t>(length), "token")),
              {}, {}, ExitCode::check_failed);
}

Status check_chosen(llvm::ArrayRef<int32_t> tokens, llvm::ArrayRef<int32_t> before, int64_t more) {
  for (size_t s = 0; s < tokens.size(); ++s)
    SINTER_TRY(check_chosen(tokens[s], before[s] + more,
                            tokens.size() > 1 ? fmt::format("prompt {}: ", s + 1) : ""));
  return {};
}

Error with_cause(Error error, const Model& model) {
  if (error.code != ExitCode::check_failed || !error.hint.empty()) return error;
  error.where = model.origin;
  const auto bad = first_infinite_weight(model);
  if (!bad) {
    error.hint = "reading the weights for the cause failed: " + bad.error().message();
  } else if (*bad) {
    error.what += ": " + (*bad)->what;
    error.hint = (*bad)->hint;
  } else {
    const bool narrow = model.spec && model.spec->dtype == DType::f16;
    error.hint = fmt::format(
        "all weights are finite: {}`sinter run MODEL --tokens 1,2,3` shows the range of each value",
        narrow ? "a value may exceed 65504, the range of f16: try --dtype bf16 or fp32; " : "");
  }
  return error;
}

}  // namespace sinter
