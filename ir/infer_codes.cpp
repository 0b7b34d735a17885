#include "ir/infer_codes.h"

namespace sinter {
namespace {

constexpr int64_t kMaxCodes = int64_t{1} << 28;  // of a row: kernels count its bytes in ints

}  // namespace

Status PackedCodes::check_matrix(const Inference& op, int constraint,
                                 const TensorType& matrix) const {
  const int64_t words = row_words(format, length);
  if (matrix.rank() == 2 && matrix.dims[0].is_constant() && matrix.dtype == DType::i32 &&
      matrix.dims[1].is(words))
    return {};
  return op.reject(constraint,
                   fmt::format("packed matrix {}, must be i32[M, {}]", op.show(matrix), words));
}

Result<PackedCodes> infer_packed_codes(const Inference& op, int constraint) {
  const auto format = parse_code_format(op.attrs.get<std::string>(AttrName::codes));
  if (!format) return op.reject(constraint, format.error().what);
  const Dim size = op.attrs.get<Dim>(AttrName::size);
  if (!size.is_constant() || size.is(0) || size.constant() > kMaxCodes)
    return op.reject(constraint, fmt::format("size must be a constant, 1 .. {}", kMaxCodes));
  return PackedCodes{*format, size.constant()};
}

}  // namespace sinter
