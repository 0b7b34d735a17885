#include "kernels/gemv/form.h"

#include "ir/sym_expr.h"
#include "kernels/family.h"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/schedule.h"

namespace sinter {

std::string GemvProduct::key() const {
  return fmt::format("{}[{}, {}] splits={} tokens={}", to_string(dtype), rows, length, splits,
                     tokens);
}

GemvProduct gemv_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const TensorType& matrix = graph[op.operands[1]].type;
  return {.dtype = matrix.dtype,
          .rows = matrix.dims[0].constant(),
          .length = matrix.dims[1].constant(),
          .splits = op.attrs.get<int64_t>(AttrName::splits),
          .tokens = SymExpr(op.type.dims[0]).upper_bound(symbols)};
}

TunedForm to_form(const GemvForm& ring) {
  return {{{"warps", ring.warps}, {"stage_bytes", ring.stage_bytes}, {"stages", ring.stages}}, 0};
}

namespace {

/// The numbers' ranges, in the order in which they are checked.
Status check_numbers(const TunedForm& form, GemvForm& ring) {
  const auto reject = [](std::string_view name, std::string_view expected, int64_t got) {
    return fail(fmt::format("expected {}, got {}", expected, got), std::string(name));
  };
  const std::pair<std::string_view, int64_t*> fields[] = {
      {"warps", &ring.warps}, {"stage_bytes", &ring.stage_bytes}, {"stages", &ring.stages}};
  for (const auto& [name, field] : fields) {
    const auto at = form.numbers.find(std::string(name));
    if (at == form.numbers.end()) return fail(fmt::format("has no \"{}\"", name));
    *field = at->second;
  }
  for (const auto& [name, number] : form.numbers)
    if (llvm::none_of(fields, [&](const auto& field) { return field.first == name; }))
      return fail("is no number of a gemv's form", name);
  constexpr int64_t kStepBytes = kStageStep * 2;  // of the smallest elements
  if (ring.warps != kFewGemvWarps && ring.warps != kTileWarps)
    return reject("warps", fmt::format("{} or {}", kFewGemvWarps, kTileWarps), ring.warps);
  if (ring.stage_bytes <= 0 || ring.stage_bytes > kMaxStageBytes ||
      ring.stage_bytes % kStepBytes != 0)
    return reject("stage_bytes",
                  fmt::format("a multiple of {}, at most {}", kStepBytes, kMaxStageBytes),
                  ring.stage_bytes);
  if (ring.stages < kMinGemvStages || ring.stages > kMaxGemvStages)
    return reject("stages", fmt::format("{} to {}", kMinGemvStages, kMaxGemvStages),
                  ring.stages);
  return {};
}

std::string key_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  return gemv_product(graph, op, symbols).key();
}

std::vector<TunedForm> candidates(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols,
                                  const DeviceDescription& device) {
  std::vector<TunedForm> forms;
  for (const GemvForm& ring : gemv_form_candidates(gemv_product(graph, op, symbols), device))
    forms.push_back(to_form(ring));
  return forms;
}

Status check(const TunedForm& form) {
  GemvForm ring;
  return check_numbers(form, ring);
}

}  // namespace

std::optional<GemvForm> gemv_form(const TunedForm& form) {
  GemvForm ring;
  if (!check_numbers(form, ring)) return std::nullopt;
  return ring;
}

constinit const Tuning kGemvTuning{.key = key_of, .candidates = candidates, .check = check};

}  // namespace sinter
