#include "kernels/gemv/form.h"

#include <algorithm>

#include "ir/sym_expr.h"
#include "kernels/family.h"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/schedule.h"

namespace sinter {

std::string GemvProduct::key() const {
  return fmt::format("{}{}[{}, {}] splits={} tokens={}", codes ? to_string(*codes) + ", " : "",
                     to_string(dtype), rows, length, splits, tokens);
}

int64_t GemvProduct::step_length() const {
  return codes ? codes->layout().step_length() : kStageStep;
}
int64_t GemvProduct::step_bytes() const {
  return codes ? codes->layout().step_bytes() : kStageStep * whole_bytes(dtype);
}

GemvProduct gemv_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const TensorType &x = graph[op.operands[0]].type, &matrix = graph[op.operands[1]].type;
  return {.dtype = x.dtype,
          .rows = matrix.dims[0].constant(),
          .length = x.dims[1].constant(),
          .splits = op.attrs.get<int64_t>(AttrName::splits),
          .tokens = std::max<int64_t>(1, SymExpr(op.type.dims[0]).upper_bound(symbols)),
          .codes = op.kind == OpKind::quantized_linear ? std::optional(code_format(op.attrs))
                                                       : std::nullopt};
}

TunedForm to_form(const GemvForm& form) {
  return {{{"warps", form.warps}, {"stage_bytes", form.stage_bytes}, {"stages", form.stages}}, 0};
}

namespace {

/// The numbers' ranges, in the order in which they are checked.
Status check_numbers(const TunedForm& form, GemvForm& result) {
  const auto reject = [](std::string_view name, std::string_view expected, int64_t got) {
    return fail(fmt::format("expected {}, got {}", expected, got), std::string(name));
  };
  const std::pair<std::string_view, int64_t*> fields[] = {
      {"warps", &result.warps}, {"stage_bytes", &result.stage_bytes}, {"stages", &result.stages}};
  for (const auto& [name, field] : fields) {
    const auto at = form.numbers.find(std::string(name));
    if (at == form.numbers.end()) return fail(fmt::format("has no \"{}\"", name));
    *field = at->second;
  }
  for (const auto& [name, number] : form.numbers)
    if (llvm::none_of(fields, [&](const auto& field) { return field.first == name; }))
      return fail("is no number of a gemv's form", name);
  constexpr int64_t kStepBytes = 16;  // every step has a multiple of these
  if (result.warps != kFewGemvWarps && result.warps != kTileWarps)
    return reject("warps", fmt::format("{} or {}", kFewGemvWarps, kTileWarps), result.warps);
  if (result.stage_bytes <= 0 || result.stage_bytes > kMaxStageBytes ||
      result.stage_bytes % kStepBytes != 0)
    return reject("stage_bytes",
                  fmt::format("a multiple of {}, at most {}", kStepBytes, kMaxStageBytes),
                  result.stage_bytes);
  if (result.stages < kMinGemvStages || result.stages > kMaxGemvStages)
    return reject("stages", fmt::format("{} to {}", kMinGemvStages, kMaxGemvStages), result.stages);
  return {};
}

std::string key_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  return gemv_product(graph, op, symbols).key();
}

std::vector<TunedForm> candidates(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols,
                                  const DeviceDescription& device) {
  std::vector<TunedForm> forms;
  for (const GemvForm& form : gemv_form_candidates(gemv_product(graph, op, symbols), device))
    forms.push_back(to_form(form));
  return forms;
}

Status check(const TunedForm& form) {
  GemvForm result;
  return check_numbers(form, result);
}

}  // namespace

std::optional<GemvForm> gemv_form(const TunedForm& form) {
  GemvForm result;
  if (!check_numbers(form, result)) return std::nullopt;
  return result;
}

constinit const Tuning kGemvTuning{.key = key_of, .candidates = candidates, .check = check};

}  // namespace sinter
