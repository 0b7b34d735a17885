// The decision record: which implementation computes each matrix product. Both plans of a
// comparison load the same record; the promise of the strict mode rests on it.
#pragma once

#include <array>
#include <map>
#include <string>

#include "runtime/gemm_problem.h"

namespace sinter {

/// One decision.
struct GemmChoice {
  enum class Kind : uint8_t { own, cublaslt };
  Kind kind = Kind::own;
  // cuBLASLt's: the algorithm, which means something to the same version alone, and the device
  // memory that it works in.
  std::array<uint64_t, 8> algorithm = {};
  uint64_t workspace_bytes = 0;
  double seconds = 0;  // measured by the tuner; 0: not measured
  friend bool operator==(const GemmChoice&, const GemmChoice&) = default;
};

/// Decisions for one device and library version.
struct GemmRecord {
  std::string device;                         // "NVIDIA H200"
  std::string library;                        // "cuBLASLt 130000"
  std::map<std::string, GemmChoice> choices;  // by GemmProblem::key()

  /// Sorted by key: equal records have equal text.
  std::string to_json() const;
  /// Errors name `path` and the JSON pointer. Whether an algorithm is one is the library's to say.
  static Result<GemmRecord> parse(const std::string& text, const std::string& path);
};

/// Device memory that a cuBLASLt algorithm may work in, in bytes. Part of every decision: it bounds
/// what the library proposes. NVIDIA recommends 32 MiB for Hopper.
inline constexpr uint64_t kGemmWorkspaceBytes = uint64_t{32} << 20;

}  // namespace sinter
