// The decision record: which implementation computes each matrix product, and the forms of kernels
// that were chosen by timing. Both plans of a comparison load the same record; the promise of the
// strict mode rests on it. Forms change no bits: a kernel that the record lacks has its schedule's.
#pragma once

#include <array>
#include <map>
#include <string>

#include "device/tuned_form.h"
#include "runtime/cuda/gemm_problem.h"

namespace sinter {

/// A cuBLASLt algorithm by its configuration, which names it among those that one version of the
/// library proposes for a product. (The library's own form of it holds bytes that differ from
/// process to process.) In the order of the library's attributes,
/// cublasLtMatmulAlgoConfigAttributes_t.
inline constexpr std::array<const char*, 9> kAlgorithmFields = {
    "id",     "tile",   "split_k",     "reduction",    "swizzle",
    "custom", "stages", "inner_shape", "cluster_shape"};
using CublasLtAlgorithm = std::array<uint32_t, kAlgorithmFields.size()>;

/// One decision.
struct GemmChoice {
  enum class Kind : uint8_t { own, cublaslt };
  Kind kind = Kind::own;
  CublasLtAlgorithm algorithm = {};  // cublaslt
  uint64_t workspace_bytes = 0;      // cublaslt: device memory that the algorithm works in
  double seconds = 0;                // measured by the tuner; 0: not measured

  /// Whether both compute alike, whatever was measured.
  bool same_implementation(const GemmChoice& other) const {
    return kind == other.kind && algorithm == other.algorithm &&
           workspace_bytes == other.workspace_bytes;
  }
  friend bool operator==(const GemmChoice&, const GemmChoice&) = default;
};

/// Decisions for one device and library version.
struct GemmRecord {
  std::string device;   // "NVIDIA H200"
  std::string library;  // "cuBLASLt 130000"
  /// By GemmProblem::key(), or GemmProblem::class_key() for all lengths of a class.
  std::map<std::string, GemmChoice> choices;
  TunedForms forms;

  bool empty() const {
    return device.empty() && library.empty() && choices.empty() && forms.empty();
  }
  /// Sorted by key: equal records have equal text.
  std::string to_json() const;
  /// Errors name `path` and the JSON pointer. Whether an algorithm is one is the library's to say,
  /// whether a form is one and fits its
  /// kernel is the family's.
  static Result<GemmRecord> parse(const std::string& text, const std::string& path);
};

/// Device memory that a cuBLASLt algorithm may work in, in bytes. Part of every decision: it bounds
/// what the library proposes. NVIDIA recommends 32 MiB for Hopper.
inline constexpr uint64_t kGemmWorkspaceBytes = uint64_t{32} << 20;

}  // namespace sinter
