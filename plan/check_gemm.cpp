// GEMM operands stay inside their values; every element of the result is written once.
#include <algorithm>

#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

// Elements 0 .. extent-1 along one axis of an operand, `stride` apart.
struct Axis {
  SymExpr extent, stride;
};
using Axes = llvm::SmallVector<Axis, 6>;

struct Operand {
  const char* name;
  const GemmOperand& operand;
  Axes axes;  // rows, columns, loops
  const Buffer& buffer;
};

class GemmCheck {
 public:
  GemmCheck(const Program& program, std::string_view where)
      : symbols_(program.symbols), where_(where) {}

  // A product with an extent of 0 touches no element: what follows may take its symbols as 1 or
  // more.
  void assume_elements(const GemmStep& gemm) {
    const auto assume = [&](const SymExpr& extent) {
      if (extent.terms().size() != 1) return;
      for (SymbolId symbol : extent.terms()[0].symbols)
        symbols_[symbol.index].low = std::max<int64_t>(symbols_[symbol.index].low, 1);
    };
    assume(gemm.m);
    assume(gemm.n);
    for (const GemmStep::Loop& loop : gemm.loops) assume(loop.count);
  }

  Status expressions(const GemmStep& gemm) const {
    for (const GemmOperand* operand : {&gemm.a, &gemm.b, &gemm.c})
      for (const SymExpr* expr : {&operand->offset, &operand->row_stride, &operand->column_stride})
        SINTER_TRY(not_negative(*expr));
    for (const SymExpr* extent : {&gemm.m, &gemm.n, &gemm.k}) SINTER_TRY(not_negative(*extent));
    for (const GemmStep::Loop& loop : gemm.loops)
      for (const SymExpr* expr : {&loop.count, &loop.a_stride, &loop.b_stride, &loop.c_stride})
        SINTER_TRY(not_negative(*expr));
    return {};
  }

  // The rows of a row-major operand (columns of a column-major one) follow each other.
  Status matrix(const Operand& x) const {
    const Axis& rows = x.axes[0];
    const Axis& columns = x.axes[1];
    const bool row_major = columns.stride.is(1) &&
                           (rows.extent.is(1) || never_less(rows.stride, columns.extent, symbols_));
    const bool column_major =
        rows.stride.is(1) &&
        (columns.extent.is(1) || never_less(columns.stride, rows.extent, symbols_));
    if (row_major || column_major) return {};
    return violation(fmt::format("operand {} (%{}), {} by {}, has strides {} and {}; one must be 1 "
                                 "and the other span a line",
                                 x.name, printable(x.buffer.value), text(rows.extent),
                                 text(columns.extent), text(rows.stride), text(columns.stride)),
                     where_);
  }

  // An operand ends where its value ends.
  Status inside(const Operand& x) const {
    SymExpr end = x.operand.offset + SymExpr(1);
    for (const Axis& axis : x.axes) end += (axis.extent - SymExpr(1)) * axis.stride;
    const SymExpr elements = volume(x.buffer.type.dims);
    if (never_less(elements, end, symbols_)) return {};
    return violation(fmt::format("operand {} reaches element {} of %{}, which has {}", x.name,
                                 text(end), printable(x.buffer.value), text(elements)),
                     where_);
  }

  // The axes nest: ordered by stride, each steps over all that the smaller ones reach. So no
  // element is written twice. inside() has proved that all lie in the value: when their count is
  // the value's, every element is written. A product without elements is right only for a value
  // without elements.
  Status written_once(const Operand& c) const {
    Axes rest;
    bool is_empty = false;
    for (const Axis& axis : c.axes) {
      is_empty = is_empty || axis.extent.is(0);
      if (!axis.extent.is(1)) rest.push_back(axis);
    }
    // Where a symbol that is an extent is 0, nothing is written at all.
    std::vector<Symbol> symbols(symbols_.begin(), symbols_.end());
    for (const Axis& axis : c.axes)
      for (const SymExpr::Term& term : axis.extent.terms())
        for (SymbolId symbol : term.symbols)
          if (axis.extent.terms().size() == 1)
            symbols[symbol.index].low = std::max<int64_t>(symbols[symbol.index].low, 1);
    SymExpr span = 1;
    while (!rest.empty() && !is_empty) {
      Axis* smallest = &rest[0];
      for (Axis& axis : rest)
        if (never_less(smallest->stride, axis.stride, symbols)) smallest = &axis;
      if (!never_less(smallest->stride, span, symbols))
        return violation(fmt::format("the result %{} is written twice: stride {} inside a block of "
                                     "{} elements",
                                     printable(c.buffer.value), text(smallest->stride), text(span)),
                         where_);
      span += (smallest->extent - SymExpr(1)) * smallest->stride;
      rest.erase(smallest);
    }
    // Only extents that nest are multiplied: the product of any others may have 2^n terms.
    SymExpr count = is_empty ? 0 : 1;
    if (!is_empty)
      for (const Axis& axis : c.axes) count = count * axis.extent;
    if (count == volume(c.buffer.type.dims)) return {};
    return violation(
        fmt::format("{} elements of the result %{} are written, it has {}", text(count),
                    printable(c.buffer.value), text(volume(c.buffer.type.dims))),
        where_);
  }

  Status bias(const Buffer& buffer, const SymExpr& n, DType result) const {
    if (buffer.type.dtype != result)
      return violation(fmt::format("bias %{} is {}, the result {}", printable(buffer.value),
                                   to_string(buffer.type.dtype), to_string(result)),
                       where_);
    if (never_less(volume(buffer.type.dims), n, symbols_)) return {};
    return violation(fmt::format("bias %{} has {} elements, the result {} columns",
                                 printable(buffer.value), text(volume(buffer.type.dims)), text(n)),
                     where_);
  }

  /// As large as the result, whose strides are its own.
  Status residual(const Buffer& buffer, const Buffer& result) const {
    if (buffer.type.dtype == result.type.dtype &&
        volume(buffer.type.dims) == volume(result.type.dims))
      return {};
    return violation(fmt::format("residual %{} is {} with {} elements, the result {} with {}",
                                 printable(buffer.value), to_string(buffer.type.dtype),
                                 text(volume(buffer.type.dims)), to_string(result.type.dtype),
                                 text(volume(result.type.dims))),
                     where_);
  }

  Status element_types(const Operand& a, const Operand& b, const Operand& c) const {
    const DType types[] = {a.buffer.type.dtype, b.buffer.type.dtype, c.buffer.type.dtype};
    if (types[0] == types[1] && is_float(types[0]) && is_float(types[2])) return {};
    return violation(
        fmt::format("element types {} (%{}) times {} (%{}) into {} (%{})", to_string(types[0]),
                    printable(a.buffer.value), to_string(types[1]), printable(b.buffer.value),
                    to_string(types[2]), printable(c.buffer.value)),
        where_);
  }

 private:
  Status not_negative(const SymExpr& expr) const {
    SINTER_TRY(check_expr(expr, symbols_, "a size of the GEMM", where_));
    if (never_less(expr, SymExpr(0), symbols_)) return {};
    return violation(fmt::format("a size of the GEMM, {}, can be negative", text(expr)), where_);
  }
  std::string text(const SymExpr& expr) const { return to_string(expr, symbols_); }

  std::vector<Symbol> symbols_;
  std::string where_;
};

}  // namespace

Status check_gemm(const Program& program, const EntryPlan& entry, const GemmStep& gemm,
                  std::string_view where) {
  Operand a{"A", gemm.a, {}, entry.buffers[gemm.a.buffer]};
  Operand b{"B", gemm.b, {}, entry.buffers[gemm.b.buffer]};
  Operand c{"C", gemm.c, {}, entry.buffers[gemm.c.buffer]};
  a.axes = {{gemm.m, gemm.a.row_stride}, {gemm.k, gemm.a.column_stride}};
  b.axes = {{gemm.k, gemm.b.row_stride}, {gemm.n, gemm.b.column_stride}};
  c.axes = {{gemm.m, gemm.c.row_stride}, {gemm.n, gemm.c.column_stride}};
  for (const GemmStep::Loop& loop : gemm.loops) {
    a.axes.push_back({loop.count, loop.a_stride});
    b.axes.push_back({loop.count, loop.b_stride});
    c.axes.push_back({loop.count, loop.c_stride});
  }
  GemmCheck check(program, where);
  SINTER_TRY(check.expressions(gemm));
  check.assume_elements(gemm);
  SINTER_TRY(check.element_types(a, b, c));
  // With m, n or a loop of 0 the product reads and writes nothing.
  const bool no_result =
      gemm.m.is(0) || gemm.n.is(0) ||
      llvm::any_of(gemm.loops, [](const auto& loop) { return loop.count.is(0); });
  if (no_result) return check.written_once(c);
  for (const Operand* operand : {&a, &b, &c}) {
    if (gemm.k.is(0) && operand != &c) continue;
    SINTER_TRY(check.matrix(*operand));
    SINTER_TRY(check.inside(*operand));
  }
  SINTER_TRY(check.written_once(c));
  if (gemm.bias >= 0)
    SINTER_TRY(
        check.bias(entry.buffers[static_cast<size_t>(gemm.bias)], gemm.n, c.buffer.type.dtype));
  if (gemm.residual >= 0)
    SINTER_TRY(check.residual(entry.buffers[static_cast<size_t>(gemm.residual)], c.buffer));
  return {};
}

}  // namespace sinter::checker
