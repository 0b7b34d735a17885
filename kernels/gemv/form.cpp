#include "kernels/gemv/form.h"

#include "ir/sym_expr.h"
#include "kernels/family.h"
#include "kernels/gemv/layout.h"
#include "kernels/gemv/schedule.h"

namespace sinter {

std::string MatvecProduct::key() const {
  return fmt::format("{}[{}, {}] splits={} tokens={}", to_string(dtype), rows, length, splits,
                     tokens);
}

MatvecProduct matvec_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const TensorType& matrix = graph[op.operands[1]].type;
  return {.dtype = matrix.dtype,
          .rows = matrix.dims[0].constant(),
          .length = matrix.dims[1].constant(),
          .splits = op.attrs.get<int64_t>(AttrName::splits),
          .tokens = SymExpr(op.type.dims[0]).upper_bound(symbols)};
}

TunedForm to_form(const MatvecRing& ring) {
  return {{{"warps", ring.warps}, {"piece_bytes", ring.piece_bytes}, {"stages", ring.stages}}, 0};
}

namespace {

/// The numbers' ranges, in the order in which they are checked.
Status check_numbers(const TunedForm& form, MatvecRing& ring) {
  const auto reject = [](std::string_view name, std::string_view expected, int64_t got) {
    return fail(fmt::format("expected {}, got {}", expected, got), std::string(name));
  };
  const std::pair<std::string_view, int64_t*> fields[] = {
      {"warps", &ring.warps}, {"piece_bytes", &ring.piece_bytes}, {"stages", &ring.stages}};
  for (const auto& [name, field] : fields) {
    const auto at = form.numbers.find(std::string(name));
    if (at == form.numbers.end()) return fail(fmt::format("has no \"{}\"", name));
    *field = at->second;
  }
  for (const auto& [name, number] : form.numbers)
    if (llvm::none_of(fields, [&](const auto& field) { return field.first == name; }))
      return fail("is no number of a matvec's form", name);
  constexpr int64_t kStepBytes = kPieceElements * 2;  // of the smallest elements
  if (ring.warps != kFewMatvecWarps && ring.warps != kTileWarps)
    return reject("warps", fmt::format("{} or {}", kFewMatvecWarps, kTileWarps), ring.warps);
  if (ring.piece_bytes <= 0 || ring.piece_bytes > kMostPieceBytes ||
      ring.piece_bytes % kStepBytes != 0)
    return reject("piece_bytes",
                  fmt::format("a multiple of {}, at most {}", kStepBytes, kMostPieceBytes),
                  ring.piece_bytes);
  if (ring.stages < kLeastMatvecStages || ring.stages > kMostMatvecStages)
    return reject("stages", fmt::format("{} to {}", kLeastMatvecStages, kMostMatvecStages),
                  ring.stages);
  return {};
}

std::string key_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  return matvec_product(graph, op, symbols).key();
}

std::vector<TunedForm> candidates(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols,
                                  const DeviceDescription& device) {
  std::vector<TunedForm> forms;
  for (const MatvecRing& ring : matvec_ring_candidates(matvec_product(graph, op, symbols), device))
    forms.push_back(to_form(ring));
  return forms;
}

Status check(const TunedForm& form) {
  MatvecRing ring;
  return check_numbers(form, ring);
}

}  // namespace

std::optional<MatvecRing> ring_of(const TunedForm& form) {
  MatvecRing ring;
  if (!check_numbers(form, ring)) return std::nullopt;
  return ring;
}

constinit const Tuning kMatvecTuning{.key = key_of, .candidates = candidates, .check = check};

}  // namespace sinter
