// custom: an op that a caller has registered. Constraint:
//   C23  custom: an op is registered under the name; the operands fit its signature, the result has
//        at least as many axes as the record's row_axes counts and no value more than 8; `numbers`
//        has as many finite numbers as the record's number_count
#include <cmath>
#include <cstdlib>

#include "ir/custom_op.h"
#include "ir/custom_signature.h"
#include "ir/inference.h"

namespace sinter {
namespace {

/// The error, with the constraint's number and the op's name.
tl::unexpected<Error> reject_custom(const Inference& op, Error error) {
  const auto& name = op.attrs.get<std::string>(AttrName::op);
  error.what = fmt::format("custom \"{}\": {} (C23)", printable(name), error.what);
  return tl::make_unexpected(std::move(error));
}

}  // namespace

Result<TensorType> infer_custom(const Inference& op) {
  const auto& name = op.attrs.get<std::string>(AttrName::op);
  const CustomOp* record = find_custom_op(name);
  if (!record)
    return fail(
        fmt::format("custom: no op is registered under the name \"{}\" (C23)", printable(name)), {},
        "register it in the program that reads the module (ir/custom_op.h)");
  auto type = find_custom_signature(name)->result_of(op.operands, op.symbols);
  if (!type) return reject_custom(op, std::move(type.error()));
  const auto refuse = [&](std::string what) {
    return reject_custom(op, {std::move(what), {}, {}});
  };
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (op.operands[i].rank() > kMaxCustomRank)
      return refuse(fmt::format("operand {} has {} axes, at most {}", i, op.operands[i].rank(),
                                kMaxCustomRank));
  if (type->rank() > kMaxCustomRank)
    return refuse(fmt::format("the result has {} axes, at most {}", type->rank(), kMaxCustomRank));
  if (static_cast<int64_t>(type->rank()) < std::abs(record->row_axes))
    return refuse(fmt::format("the result {} has {} axes, row_axes is {}", op.show(*type),
                              type->rank(), record->row_axes));
  llvm::ArrayRef<double> numbers;
  if (const auto* given = op.attrs.find(AttrName::numbers))
    numbers = std::get<std::vector<double>>(*given);
  if (static_cast<int64_t>(numbers.size()) != record->number_count)
    return refuse(fmt::format("numbers has {} elements, the op takes {}", numbers.size(),
                              record->number_count));
  for (double number : numbers)
    if (!std::isfinite(number)) return refuse(fmt::format("numbers has {}, no number", number));
  return std::move(*type);
}

}  // namespace sinter
