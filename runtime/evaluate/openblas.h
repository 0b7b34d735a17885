// OpenBLAS, loaded when the first product is computed.
#pragma once

#include <cblas.h>

#include <optional>

#include "ir/error.h"
#include "runtime/foreign_call.h"

namespace sinter {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
};

/// The right to compute one product. OpenBLAS has a buffer for each product that is computed at a
/// time, and asks the system for one again and again where there is no address space. So this asks
/// first.
class OpenBlasCall {
 public:
  /// Waits for the end of another product where there is address space for that one alone. Errors:
  /// there is none for one product (exit code 6); the library cannot be loaded (5).
  static Result<OpenBlasCall> begin();
  OpenBlasCall(OpenBlasCall&& other) noexcept;
  ~OpenBlasCall();

  const OpenBlas* operator->() const { return library_; }

 private:
  explicit OpenBlasCall(const OpenBlas* library) : library_(library) {}
  const OpenBlas* library_;  // null: moved from
};

}  // namespace sinter
