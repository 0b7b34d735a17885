// The form in which a matvec's kernel streams its matrix (kernels/gemv/matvec_stream.cuh), and
// what it is chosen for. Forms that were measured on a device stand in its decision record. No form
// changes a bit: every sum has the order of order.h, and sums of tiles are those of
// kTileWarps warps, however many a block has.
#pragma once

#include <optional>
#include <string>

#include "device/tuned_form.h"
#include "ir/graph.h"

namespace sinter {

struct Tuning;  // kernels/family.h

struct MatvecRing {
  int64_t warps = 16;          // of a block: 8 or kTileWarps, no fewer than the splits of a row
  int64_t piece_bytes = 2048;  // of one bulk copy: a multiple of 256 elements
  int64_t stages = 4;          // the most pieces of a warp in flight

  friend bool operator==(const MatvecRing&, const MatvecRing&) = default;
};
inline constexpr int64_t kFewMatvecWarps = 8;
inline constexpr int64_t kPieceElements = 256;  // a piece is a multiple of these
inline constexpr int64_t kMostPieceBytes = 16 * 1024;

/// What a form is chosen for: the product alone and not what stands around it, so that the fused
/// and the unfused plan of a module have the same forms.
struct MatvecProduct {
  DType dtype = DType::f32;  // of the matrix
  int64_t rows = 0, length = 0;
  int64_t splits = 1;  // parts of a row
  int64_t tokens = 1;  // the most

  /// "bf16[12288, 4096] splits=2 tokens=8"
  std::string key() const;
};

/// The product of `op`, a matvec.
MatvecProduct matvec_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols);

/// The form as a decision record holds it: numbers `warps`, `piece_bytes` and `stages`.
TunedForm to_form(const MatvecRing& ring);
/// nullopt: the numbers are no form of a matvec's kernel.
std::optional<MatvecRing> ring_of(const TunedForm& form);

extern const Tuning kMatvecTuning;

}  // namespace sinter
