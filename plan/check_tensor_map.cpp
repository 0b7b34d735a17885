// Tensor maps stay inside their inputs, and are such as the hardware takes.
#include <algorithm>

#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class TensorMapCheck {
 public:
  TensorMapCheck(const Program& program, const Kernel& kernel, const TensorMap& map,
                 std::string where)
      : symbols_(program.symbols),
        input_(kernel.group[kernel.group.inputs[map.input]]),
        map_(map),
        bytes_(whole_bytes(input_.type.dtype)),
        where_(std::move(where)) {}

  Status run() {
    SINTER_TRY(shape());
    SINTER_TRY(expressions());
    assume_elements();
    SINTER_TRY(aligned());
    return inside();
  }

 private:
  Status shape() const {
    const DType dtype = input_.type.dtype;
    if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::i32)
      return bad(fmt::format("elements are {}", to_string(dtype)));
    const size_t rank = map_.dims.size();
    if (rank < 1 || rank > kMaxTensorMapDims || map_.strides.size() + 1 != rank ||
        map_.box.size() != rank)
      return bad(
          fmt::format("{} dims, {} strides and a box of {}; there are 1 to {} dims, one "
                      "stride less and as many extents of a box",
                      rank, map_.strides.size(), map_.box.size(), kMaxTensorMapDims));
    if (map_.swizzle != 0 && map_.swizzle != 32 && map_.swizzle != 64 && map_.swizzle != 128)
      return bad(fmt::format("a swizzle of {} bytes, must be 0, 32, 64 or 128", map_.swizzle));
    for (int64_t extent : map_.box)
      if (extent < 1 || extent > kMaxTensorMapBox)
        return bad(fmt::format("a box of {} elements, must be 1 to {}", extent, kMaxTensorMapBox));
    const int64_t row = map_.box[0] * bytes_;
    if (row % kTensorMapAlignment != 0 || (map_.swizzle != 0 && row > map_.swizzle))
      return bad(fmt::format("rows of a box of {} bytes with a swizzle of {}", row, map_.swizzle));
    return {};
  }

  Status expressions() const {
    SINTER_TRY(not_negative(map_.offset));
    for (const SymExpr& dim : map_.dims) SINTER_TRY(not_negative(dim));
    for (const SymExpr& stride : map_.strides) SINTER_TRY(not_negative(stride));
    return {};
  }

  // A tensor without elements is not encoded: the kernel copies no box of it.
  void assume_elements() {
    for (const SymExpr& dim : map_.dims)
      if (dim.terms().size() == 1)
        for (SymbolId symbol : dim.terms()[0].symbols)
          symbols_[symbol.index].low = std::max<int64_t>(symbols_[symbol.index].low, 1);
  }

  Status aligned() const {
    const auto is_aligned = [&](const SymExpr& elements) {
      return (elements * SymExpr(bytes_)).divisor(symbols_) % kTensorMapAlignment == 0;
    };
    for (const SymExpr& stride : map_.strides)
      if (!is_aligned(stride))
        return bad(fmt::format("rows are {} elements apart, no multiple of {} bytes", text(stride),
                               kTensorMapAlignment));
    if (is_aligned(map_.offset)) return {};
    return bad(fmt::format("element {} is the first, no multiple of {} bytes", text(map_.offset),
                           kTensorMapAlignment));
  }

  Status inside() const {
    SymExpr end = map_.offset + SymExpr(1);
    for (size_t i = 0; i < map_.dims.size(); ++i)
      end += (map_.dims[i] - SymExpr(1)) * (i == 0 ? SymExpr(1) : map_.strides[i - 1]);
    const SymExpr elements = volume(input_.type.dims);
    if (never_less(elements, end, symbols_)) return {};
    return bad(fmt::format("reaches element {} of %{}, which has {}", text(end), input_.name,
                           text(elements)));
  }

  Status not_negative(const SymExpr& expr) const {
    SINTER_TRY(check_expr(expr, symbols_, "a size of a tensor map", where_));
    if (never_less(expr, SymExpr(0), symbols_)) return {};
    return bad(fmt::format("a size, {}, can be negative", text(expr)));
  }
  tl::unexpected<Error> bad(std::string what) const {
    return violation("a tensor map: " + std::move(what), where_);
  }
  std::string text(const SymExpr& expr) const { return to_string(expr, symbols_); }

  std::vector<Symbol> symbols_;
  const Op& input_;
  const TensorMap& map_;
  int64_t bytes_;  // of an element
  std::string where_;
};

}  // namespace

Status check_tensor_maps(const Program& program, const Kernel& kernel, const std::string& where) {
  for (const TensorMap& map : kernel.tensor_maps) {
    if (map.input >= kernel.group.inputs.size())
      return violation(
          fmt::format("a tensor map of input {} of {}", map.input, kernel.group.inputs.size()),
          where);
    SINTER_TRY(TensorMapCheck(program, kernel, map, where).run());
  }
  return {};
}

}  // namespace sinter::checker
