// The tuned form of a gemv kernel: the shape of its load pipeline (kernels/gemv/gemv_pipeline.cuh),
// and the product that it is chosen for. A device's decision record lists the forms measured on it.
// No form changes a bit: every sum has the order of order.h, and a tile's sums are split over
// kTileWarps warps, however many a block has.
#pragma once

#include <optional>
#include <string>

#include "device/tuned_form.h"
#include "ir/code_format.h"
#include "ir/graph.h"

namespace sinter {

struct Tuning;  // kernels/family.h

struct GemvForm {
  int64_t warps = 16;          // of a block: 8 or kTileWarps, no fewer than the splits of a row
  int64_t stage_bytes = 2048;  // of a row in a stage: a multiple of a step of the matrix
  int64_t stages = 4;          // the largest number of a warp

  friend bool operator==(const GemvForm&, const GemvForm&) = default;
};
inline constexpr int64_t kFewGemvWarps = 8;
inline constexpr int64_t kStageStep = 256;  // elements
inline constexpr int64_t kMaxStageBytes = 16 * 1024;

/// The product that a form is chosen for: without prologue and epilogue, so that the fused and the
/// unfused plan of a module have the same forms.
struct GemvProduct {
  DType dtype = DType::f32;  // of the operand, and of a dense matrix
  int64_t rows = 0, length = 0;
  int64_t splits = 1;                    // split-K of a row
  int64_t tokens = 1;                    // the largest number; 1 of a product without tokens
  std::optional<CodeFormat> codes = {};  // of a packed matrix

  /// "bf16[12288, 4096] splits=2 tokens=8"; of a packed matrix "int4 g128 f16, bf16[...] ..."
  std::string key() const;
  /// Elements of a matrix row that a warp reads together, and their bytes.
  int64_t step_length() const;
  int64_t step_bytes() const;
};

/// The product of `op`, a gemv.
GemvProduct gemv_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols);

/// The form as a decision record holds it: numbers `warps`, `stage_bytes` and `stages`.
TunedForm to_form(const GemvForm& form);
/// nullopt: the numbers are no form of a gemv kernel.
std::optional<GemvForm> gemv_form(const TunedForm& form);

extern const Tuning kGemvTuning;

}  // namespace sinter
