// Rows in the order of numbers, for products of runs of rows.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_sorted_rows;
std::optional<ValueId> choose_sorted_rows(Builder& b, const Op& op, Tokens tokens,
                                          const Recipe& recipe);

namespace {

constexpr OpKind kAnchors[] = {OpKind::sorted_positions, OpKind::sorted_places, OpKind::run_ends};

/// One sort has all results of the same numbers, around that one whose kind comes first.
bool is_same_sort(const Op& anchor, const Op& other) {
  return anchor.kind < other.kind && anchor.operands == other.operands &&
         anchor.attrs == other.attrs;
}

}  // namespace

extern const KernelFamily sorted_rows_family;
constinit const KernelFamily sorted_rows_family{
    .name = "sorted_rows",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_sorted_rows,
    .cost = streaming_cost,
    .is_companion = is_same_sort,
    .latency_bound = true,
    .choosing = {.choose = choose_sorted_rows},
};

}  // namespace sinter
