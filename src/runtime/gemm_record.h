// The decision record: which implementation computes each matrix product. Both plans of a comparison
// load the same record; the promise of the strict mode rests on it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "ir/types.h"

namespace sinter {

/// A matrix product with concrete sizes, as an executor runs it: C[m, n] = A[m, k] B[k, n] (+ bias[n])
/// in `batch` copies. Element strides; of each operand's two strides one is 1 where the product has
/// an implementation in a library.
struct GemmProblem {
  struct Operand {
    DType dtype = DType::f32;
    int64_t row_stride = 0, column_stride = 0;
    int64_t batch_stride = 0;      // elements; 0: shared by all copies
    int64_t alignment = 256;       // bytes that divide the address, at most 256
  };
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Operand a, b, c;
  std::optional<DType> bias;

  /// Canonical text, the record's key: "f16 1x4096x4096 a=4096,1 b=1,4096 c=4096,1 bias=none ...".
  std::string key() const;
};

/// One decision.
struct GemmChoice {
  enum class Kind : uint8_t { own, cublaslt };
  Kind kind = Kind::own;
  std::array<uint64_t, 8> algorithm = {};  // cuBLASLt's, opaque
  uint64_t workspace_bytes = 0;
  double seconds = 0;  // measured by the tuner; 0: not measured
  friend bool operator==(const GemmChoice&, const GemmChoice&) = default;
};

/// Decisions for one device and library version.
struct GemmRecord {
  std::string device;   // "NVIDIA H200"
  std::string library;  // "cuBLASLt 130000"
  std::map<std::string, GemmChoice> choices;  // by GemmProblem::key()

  std::string to_json() const;
  /// Errors name the JSON pointer.
  static Result<GemmRecord> parse(const std::string& text, const std::string& path);
};

}  // namespace sinter
