// The host evaluation of a caller's op, on dense arrays of float, double, int32_t, int64_t and
// uint8_t.
#include "ir/custom_op.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// The elements that the caller reads, with the memory that holds them where they are no view's
/// own.
struct DenseOperand {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int32_t> integers;
  std::vector<int64_t> long_integers;
  std::vector<uint8_t> truths;

  const void* read(const HostView& view, DType dtype, bool precise) {
    if (dtype == DType::i32) return dense_elements(view, integers);
    if (dtype == DType::i64) return dense_elements(view, long_integers);
    if (dtype == DType::i1) return dense_elements(view, truths);
    if (precise) return dense_elements(view, doubles);
    return dense_elements(view, floats);
  }
};

template <typename T>
Result<HostView> run_custom(const OpCall& call, const CustomOp& record, CustomOpCall& custom) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t count = value.view.volume();
  std::vector<T> result(static_cast<size_t>(count));
  custom.result = result.data();
  if (!record.evaluate(custom))
    return call.error(fmt::format("the host evaluation of \"{}\" failed", record.name),
                      "it is the function that the op was registered with");
  if constexpr (std::is_same_v<T, uint8_t>)
    for (uint8_t& truth : result) truth = truth != 0;
  store_run(result.data(), count, call.storage, value.out);
  return value.view;
}

}  // namespace

Result<HostView> evaluate_custom(const OpCall& call) {
  const CustomOp& record = custom_op_of(call.op);
  CustomOpCall custom;
  custom.precise = call.options.precise;
  if (const auto* numbers = call.op.attrs.find(AttrName::numbers))
    custom.numbers = std::get<std::vector<double>>(*numbers);
  llvm::SmallVector<DenseOperand, 4> operands(call.operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const HostView& view = call.operands[i];
    const DType dtype = call.operand_type(i).dtype;
    custom.operands.push_back({dtype, std::vector<int64_t>(view.dims.begin(), view.dims.end()),
                               operands[i].read(view, dtype, custom.precise)});
  }
  custom.result_dtype = call.op.type.dtype;
  custom.result_dims.assign(call.dims.begin(), call.dims.end());
  switch (custom.result_dtype) {
    case DType::i32:
      return run_custom<int32_t>(call, record, custom);
    case DType::i64:
      return run_custom<int64_t>(call, record, custom);
    case DType::i1:
      return run_custom<uint8_t>(call, record, custom);
    default:
      return custom.precise ? run_custom<double>(call, record, custom)
                            : run_custom<float>(call, record, custom);
  }
}

}  // namespace sinter
